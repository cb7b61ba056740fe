# %% [markdown]
# # 05 · Build SGDP
#
# **The question of this lesson:** what is there in SGDP besides SGD (Alg. 1), and how do you know that yours is right?
#
# - **You will be able to** write a projected optimizer, stop and resume it, and judge a test by the bugs that it kills.
# - **Time:** 60 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 03](03_projection.ipynb), the projection, and lessons [04](04_learning_the_leash.ipynb) and
#   [04b](04b_moving_the_leash.ipynb), where γ is learned.
# - **Exercises:** `step` ★★ · `exclude` ★ · `resume` ★★ · `kill_mutants` ★★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("step", 1)`, then 2, then 3, then `solution("step")`.

# %%
import torch

import ftp
from ftp.lab.exercises import check, hint, solution
from ftp.lab.exercises.kill_mutants import MUTANTS, Thirteenth, Twin, apart, beside, gallery, walk
from ftp.lab.exercises.step import Layer
from ftp.lab.lesson import BLUE, VERMILLION, app_link, begin, card, claim, figure, outcome, predict

torch.set_default_dtype(torch.float64)
begin("05", seconds=12)

# %% [markdown]
# ## The picture
#
# A walk with many dogs, one for each row of weights. Every step of the walk goes like this:
#
# 1. **Run.** SGD calls, and each dog runs from where it is to some $\tilde w$ (Eq. 1).
# 2. **Look back.** Did this batch call *farther out* along the way that the dogs took before? Then the leash was too
#    short: lengthen it. Did it call them back? Shorten it (Eq. 4, 5, Alg. 2). That was lesson 04.
# 3. **Take in the slack.** No leash is longer than the farthest dog of its layer needs.
# 4. **Pull.** Whoever is beyond the end of the leash comes straight back to it (Eq. 2, 10). That was lesson 03.
#
# In symbols, for one layer with anchor $W_0$:
#
# $$\tilde W_t = \mathrm{SGD}(W_{t-1}, g_t), \qquad \gamma_t = \mathrm{Adam}(\gamma_{t-1}, \nabla\gamma_t), \qquad
# W_t = \Pi(\tilde W_t, W_0, \gamma_t) \qquad \text{(Alg. 1)}$$
#
# Between two steps, a layer must remember six things. At the start they are these:

# %%
layer = Layer(torch.tensor([[1.0, -2.0], [0.5, 0.0]]))
for name, value in vars(layer).items():
    print(f"{name:10}", value if name == "t" else value.tolist())

# %% [markdown]
# `gamma` begins at 1e-8, a leash so short that nothing can move. `deviation` is lesson 04's $d$: where the rows
# *wanted* to be, less the anchor. `m` and `v` are Adam's means of the slope and of its square, `t` counts the steps.
#
# ## Exercise 1: one step of one layer ★★
#
# SGD has already moved the layer from its old weights to `unconstrained`. Do the rest, and return the new weights.
# Begin by adding 1 to `layer.t`, so that the first step is t = 1. What the next step needs goes back into `layer`, all
# of it. You have the pieces:
#
# | piece | gives |
# |---|---|
# | `gamma_grad(grad, deviation)` | the slope of γ (Eq. 4), along the deviation of the step *before* |
# | `anneal(slope, k)` | the slope, counted κ times if it would shorten the leash (Eq. 5) |
# | `adam_update(gamma, slope, m, v, t)` | the new γ, m and v (Alg. 2) |
# | `clip(gamma, farthest)` | γ, not longer than the farthest row needs |
# | `ftp.mars_norm(deviation)` | how far the farthest row is |
# | `ftp.project_mars(unconstrained, anchor, gamma)` | the rows, pulled back (Eq. 2, 10) |


# %%
def my_step(unconstrained, grad, layer, k):
    from ftp.constraint import adam_update, anneal, clip, gamma_grad

    # region solution
    layer.t += 1
    slope = anneal(gamma_grad(grad, layer.deviation), k)  # Eq. 4, 5
    layer.gamma, layer.m, layer.v = adam_update(layer.gamma, slope, layer.m, layer.v, layer.t)  # Alg. 2
    layer.deviation = unconstrained - layer.anchor
    layer.gamma = clip(layer.gamma, ftp.mars_norm(layer.deviation))
    return ftp.project_mars(unconstrained, layer.anchor, layer.gamma)  # Eq. 2, 10
    # stub
    # raise NotImplementedError("the leash of one layer: learn γ, clip it, pull the rows back")
    # endregion


check("step", my_step)

# %% [markdown]
# Now a small network to walk with: three layers of 4 units, `first`, `second` and `third`, and a `head` without a
# leash. `walk` fine-tunes it with an optimizer class and returns every weight after every step. The first two steps of
# `ftp.SGDP`:

# %%
path = walk(ftp.SGDP, steps=2)
far = {name: (path[name] - path[name][0]).abs().sum(-1).amax(-1) for name in ("second.weight", "head.weight")}
claim("after step 1 a layer on its leash is back at its anchor", far["second.weight"][1] < 1e-7)
claim("from step 2 on it moves", far["second.weight"][2] > 1e-3)
claim("the head, which has no leash, moves at once", far["head.weight"][1] > 1e-3)

# %% [markdown]
# ## Exercise 2: who has a leash ★
#
# A new head has nothing to be tied to. `exclude_set` names what runs free, by name (`"head.bias"`) or by pattern
# (`"head.*"`). Return the names that *do* get a leash. A pattern that matches nothing is surely a typing mistake:
# answer it with a `ValueError`. (`fnmatchcase(name, pattern)` of Python's `fnmatch` compares the two.)


# %%
def my_leashed(names, exclude_set):
    from fnmatch import fnmatchcase

    # region solution
    for pattern in exclude_set:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{pattern!r} matches no parameter")
    return [name for name in names if not any(fnmatchcase(name, pattern) for pattern in exclude_set)]
    # stub
    # raise NotImplementedError("the names that no pattern matches; a ValueError for a pattern without a match")
    # endregion


check("exclude", my_leashed)


# %% [markdown]
# ## Your SGDP
#
# That is all there is to invent. The rest is torch's own SGD, and a loop over the layers.


# %%
class MySGDP(torch.optim.SGD):
    def __init__(self, named, k=1.0, exclude_set=(), **options):
        self.named, self.k = dict(named), k
        super().__init__(self.named.values(), **options)
        self.layers = {name: Layer(self.named[name]) for name in my_leashed(list(self.named), exclude_set)}

    def step(self):
        super().step()  # Eq. 1
        for name, layer in self.layers.items():
            if (param := self.named[name]).grad is not None:
                param.data = my_step(param.data, param.grad, layer, self.k)


# %% [markdown]
# Put it beside the kit's, for 200 steps, with momentum, weight decay and a κ below 1. The museum below has a third
# one, the `Twin`: SGDP written again from the paper, which shares no line with `ftp.SGDP`.

# %%
beside(MySGDP, steps=200, momentum=0.9, weight_decay=0.01, k=0.5)
gap = apart(Twin, steps=200, momentum=0.9, weight_decay=0.01, k=0.5)
claim("SGDP, written twice, gives the same weights after each of 200 steps, to 9 digits", gap < 1e-9)

# %% [markdown]
# Why is the kit's longer than yours? It moves many layers at once, never waits for a GPU, works over several machines,
# and it refuses, with a sentence, what would go wrong silently. The next two sections are about that.
#
# ## Predict: stop and resume
#
# A run of 40 steps is stopped half-way. A new process builds the network with its pre-trained weights, then the
# optimizer; it loads what both have saved, and goes on. But the leash was kept *beside* the optimizer's state, as yours
# is (`self.layers`), and as it is in the code that was released with the paper: the checkpoint has the momentum, but no
# γ. Where are the weights one step later?

# %%
options = ("where they would have been", "a little off", "back at W₀")
guess = "back at W₀"
predict("05.resume", guess, options=options, sure=50)

# %%
museum = {mutant.name: mutant.optimizer for mutant in MUTANTS}
paths = {"γ is saved": walk(ftp.SGDP, resume="same"), "γ is lost": walk(museum["forgets γ"], resume="same")}
far = {name: (p["second.weight"] - p["second.weight"][0]).abs().sum(-1).amax(-1) for name, p in paths.items()}
kept, lost = (rows[21].item() for rows in far.values())
outcome("05.resume", options[2] if lost < 1e-6 else options[0] if abs(lost - kept) < 1e-9 else options[1])

# %%
fig = figure("A resume that forgets the leash", "step", "farthest row of a layer, from W₀")
for (name, rows), color, dash in zip(far.items(), (BLUE, VERMILLION), ("solid", "dash"), strict=True):
    fig.add_scatter(y=rows.tolist(), name=name, line={"color": color, "width": 3, "dash": dash})
fig.add_vline(x=20, line={"dash": "dot", "width": 1.5, "color": "#5B6270"})
fig.add_annotation(x=20, y=0.02, yref="paper", text="stopped and resumed", xanchor="right", xshift=-6, showarrow=False)
card(fig, seeds=0)

# %%
claim("with γ lost, one step throws the layer back to its pre-trained weights", lost < 1e-6 < kept)
same = torch.allclose(paths["γ is saved"]["loss"], walk(ftp.SGDP)["loss"])
claim("ftp.SGDP goes on as if it had never been stopped", same)
beside(MySGDP, resume="same")
losses = paths["γ is lost"]["loss"].tolist()
print(
    f"with γ lost, the loss: {losses[19]:.3f} before the stop, {losses[21]:.3f} after it, {losses[-1]:.3f} at the end"
)

# %% [markdown]
# **Explain.** A new leash is 1e-8 long, and so the first step after the resume is a *first step*: it goes nowhere, that
# is, home. Twenty steps of fine-tuning are gone, and no error is raised. The loss recovers, so nobody looks.
#
# ## Exercise 3: resume ★★
#
# `layers` are the new process's, by name, as new: `Layer(weight)` of the weights that were just loaded. `saved` are the
# layers as they were when the run stopped, by name. Fill `layers` so that the run goes on as if nothing had happened.
# The new process may list its layers in another order; the old one may still be running.


# %%
def my_resume(layers, saved):
    import copy

    # region solution
    for name, layer in layers.items():
        for key, value in vars(saved[name]).items():
            setattr(layer, key, copy.deepcopy(value))
    # stub
    # raise NotImplementedError("every layer filled with what was saved under its name")
    # endregion


check("resume", my_resume)


# %%
class MyResumableSGDP(MySGDP):
    def state_dict(self):
        return {**super().state_dict(), "layers": self.layers}

    def load_state_dict(self, saved):
        super().load_state_dict({"state": saved["state"], "param_groups": saved["param_groups"]})
        my_resume(self.layers, saved["layers"])


beside(MyResumableSGDP, resume="late")
beside(MyResumableSGDP, resume="reordered")

# %% [markdown]
# "Yours accepts what ftp.SGDP refuses" is no praise. Your layers are now found by name, in whatever order they come.
# But the momentum lies in torch's own SGD, which finds it by *position*: listed in another order, a layer gets the
# momentum of another one. `ftp.SGDP` refuses such a checkpoint with a `ValueError`. In the next exercise, to accept it
# counts as a bug.
#
# ## The bug museum
#
# Here are twelve copies of the twin, and each has one bug. None is invented: some are in the released code,
# some are what you get from the paper as it is printed, some are what people write on a Friday. They are called
# mutants, and a test **kills** a mutant if it says no to it.

# %%
print(" · ".join(mutant.name for mutant in MUTANTS))

# %% [markdown]
# ## Predict: the test that everybody has
#
# The most common test of an optimizer: train a little, and see whether the loss falls, say to less than half. How many
# of the twelve does it kill?

# %%
options = ("none", "about half", "all")
guess = "none"
predict("05.loss", guess, options=options, sure=50)

# %%
losses = [walk(mutant.optimizer)["loss"] for mutant in MUTANTS]
killed = sum((loss[-1] > loss[0] / 2).item() for loss in losses)
outcome("05.loss", {0: options[0], len(MUTANTS): options[2]}.get(killed, options[1]))
claim("all twelve bring the loss below a third in 40 steps", all(loss[-1] < loss[0] / 3 for loss in losses))

# %% [markdown]
# They train happily. That is why such bugs live for years.
#
# ## Exercise 4: kill them ★★★
#
# Write a test: a function that takes an optimizer class and returns `True` if it is right, `False` if not (or use
# `assert`). It must pass `ftp.SGDP` and the `Twin`, which is right too, and kill as many mutants as it can.
#
# Your tool is `apart(SGDP, ...)`: the largest difference to `ftp.SGDP` over a whole walk. You choose the situation:
#
# | situation | what happens |
# |---|---|
# | `steps=40`, `lr=0.02`, `momentum=0.9`, `weight_decay=0.0`, `k=1.0` | the defaults; change any of them |
# | `exclude_set={"head.*"}` | the default; any set of names. If both optimizers refuse it, they are 0 apart |
# | `missing="first"` | the layer of this name has no gradient in every other step |
# | `resume="same"` | stopped half-way; network and optimizer are built, then both are loaded |
# | `resume="late"` | the same, but the weights are loaded *before* the optimizer is built |
# | `resume="reordered"` | as "same", but with the parameters in another order; `ftp.SGDP` refuses this |
#
# A first try is `return apart(SGDP) < 1e-9`. It kills five. Below your score stands the story of one that got away.


# %%
def my_test(SGDP):
    # region solution
    from ftp.lab.exercises.kill_mutants import apart

    situations = [{"weight_decay": 0.1}, {"k": 0.2}, {"missing": "second"}, {"exclude_set": {"haed.*"}}]
    situations += [{"resume": how} for how in ("same", "late", "reordered")]
    return all(apart(SGDP, **situation) < 1e-9 for situation in situations)
    # stub
    # raise NotImplementedError("a test that returns True for a right SGDP and False for a broken one")
    # endregion


check("kill_mutants", my_test)
gallery(my_test)

# %% [markdown]
# ## See it: which situation shows which bug
#
# Do not scroll on before you have tried: the picture tells it all. How far is each mutant from `ftp.SGDP`, in each
# situation? An empty field: not at all, to 9 digits, or both refuse. "No error": it accepts what `ftp.SGDP` refuses.

# %%
resumed = {"resume": {"resume": "same"}, "resume,<br>weights first": {"resume": "late"}}
resumed |= {"resume,<br>other order": {"resume": "reordered"}}
situations = {"a plain<br>run": {}, "weight<br>decay": {"weight_decay": 0.1}, "κ = 0.2": {"k": 0.2}}
situations |= {"a missing<br>gradient": {"missing": "second"}, **resumed}
situations |= {"a typing<br>mistake": {"exclude_set": ("haed.*",)}}
rows = [[apart(mutant.optimizer, **situation) for situation in situations.values()] for mutant in MUTANTS]
gaps = torch.tensor(rows)
seen = gaps > 1e-9

# %% tags=["signature"]
fig = figure("Which situation shows which bug: how far from ftp.SGDP", height=560)
words = [["" if g < 1e-9 else "no error" if g > 1e9 else f"{g:.1g}" for g in row] for row in gaps.tolist()]
scale = [[0, "#EEF1F5"], [0.1, "#2F78AC"], [1, "#00446C"]]
cells = {"z": gaps.clamp(1e-6, 1).log10().tolist(), "text": words, "colorscale": scale, "showscale": False}
names = {"x": list(situations), "y": [mutant.name for mutant in MUTANTS]}
fig.add_heatmap(**cells, **names, texttemplate="%{text}", xgap=3, ygap=3, hoverinfo="skip", textfont_color="#FFFFFF")
fig.update_xaxes(side="top", showgrid=False, showline=False, ticks="")
fig.update_yaxes(autorange="reversed", showgrid=False, showline=False, ticks="")
card(fig.update_layout(showlegend=False, margin={"l": 140, "t": 96, "b": 10}), seeds=0)

# %%
claim("a plain run shows five of the twelve", seen[:, 0].sum() == 5)
claim("no situation shows more than seven", seen.sum(0).max() == 7)
claim("the seven situations after the first show all of them", seen[:, 1:].any(1).all())
claim("and each of the last seven bugs is shown by one or two situations only", (seen[-7:].sum(1) <= 2).all())

# %% [markdown]
# ## Explain
#
# A bug can be seen only where its part has work to do. At κ = 1 a wrong κ is right; at lr = 0.01, which is μ, one rate
# for both is right; without a resume nothing can be forgotten; if every layer has a gradient, their order never
# changes. And if the layer without a gradient is the last one on a leash, there is nobody behind it to be shifted: try
# `missing="third"`. So the question for a test is not "how long does it run" but "which situations does it know". Two
# hundred steps of a plain run show no more than forty:

# %%
longer = sum(apart(mutant.optimizer, steps=200) > 1e-9 for mutant in MUTANTS)
claim("five times as many steps, and still five of twelve", longer == 5)
claim("at lr = μ nobody can see that there is one rate for both", apart(museum["one rate for both"], lr=0.01) < 1e-9)

# %% [markdown]
# ## Negative control: a test that kills too much
#
# A test that says no to everything kills twelve of twelve. What makes a score worth anything is what the test lets
# *live*. Here is one that is only a little too strict: it wants the weights equal to the last bit.


# %%
def strict(SGDP):
    return apart(SGDP, steps=200) == 0


claim("it kills every mutant of the plain run", not any(strict(m.optimizer) for m in MUTANTS[:5]))
claim("but it condemns the twin, which has no bug", not strict(Twin) and apart(Twin, steps=200) < 1e-9)

# %% [markdown]
# The twin adds up in another order, so it rounds differently, in the sixteenth digit. A right optimizer on another
# machine does so too. That is why the tests of this kit compare to 9 digits in float64.
#
# ## Where this stops being true
#
# - **Twelve of twelve is not "no bugs".** It means: none of these twelve. Meet the thirteenth, below: every situation
#   of the picture lets it live. Its rows are wrong for *convolutions* only, and our network had none.
# - **To 9 digits, in float64.** In float32 rounding alone moves the seventh digit, so the test must allow more, and
#   small bugs hide there.
# - **A comparison needs something right to compare with.** Here that is `ftp.SGDP`. Where there is nothing, write it
#   twice, as the twin was; two people rarely plant the same bug.
# - **Some mutants cannot be killed, because they are right.** Leave out γ's update at step 1: the deviation is still 0
#   there, so the slope is 0, and nothing changes.

# %%
worst = max(apart(Thirteenth, **situation) for situation in situations.values())
claim("all eight situations let the thirteenth live", worst < 1e-9)
claim("one walk with convolutions kills it", apart(Thirteenth, conv=True) > 1e-3)
claim("and the twin passes there too", apart(Twin, conv=True) < 1e-9)

# %% [markdown]
# ## What you have seen
#
# ![Twelve bugs, and the situations in which they are seen](figures/05_build_sgdp.png)
#
# Run, look back, take in the slack, pull: six lines after SGD. They are easy to write and easy to get wrong, and a
# wrong one trains as happily as a right one. Watch a right one at work on a real network, layer by layer: `make app`,
# then the address below.
#
# Before: [04b · Moving the leash](04b_moving_the_leash.ipynb). Next: [06 · Fine-tune and corrupt](06_corrupt.ipynb).

# %%
print(app_link("microscope", layer="blocks.0.conv1.weight", step=2))
