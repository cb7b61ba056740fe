# %% [markdown]
# # 04b · Moving the leash
#
# **The question of this lesson:** the next batch says which way a leash should go; how far does it go (Eq. 5, Alg. 2),
# and what does the very first step do, before any batch has been asked (Alg. 1)?
#
# - **You will be able to** move a leash by one step of Adam, say what κ does and what it cannot do, and tell a leash
#   that learns from one that follows noise.
# - **Time:** 25 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 04](04_learning_the_leash.ipynb): the slope of a leash.
# - **Exercises:** `anneal` ★ · `adam_update` ★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("anneal", 1)`, then 2, then 3, then `solution("anneal")`.

# %%
from functools import partial

import torch

import ftp
from ftp.constraint import adam_update, anneal, clip, gamma_grad
from ftp.lab import walks
from ftp.lab.exercises import check, hint, solution
from ftp.lab.lesson import BLUE, GREEN, GREY, VERMILLION, app_link, band, begin, card, claim, figure, outcome, predict

torch.set_default_dtype(torch.float64)
begin("04b", seconds=10)

# %% [markdown]
# ## The picture
#
# A batch has called, and lesson 04 has read off the slope: this leash should be longer, that one shorter. By how much?
# A walker who lets out a metre at every bark soon has no leash at all; one who waits for certainty never moves. FTP's
# walker is steady: a small, nearly fixed piece of leash in each step, out if the calls have mostly gone that way, in if
# not. And at the very first step, when nobody has called yet?
#
# ## Exercise 1: κ, the benefit of the doubt ★
#
# Batches are noisy, and a leash that is too short learns too little. So what would *shorten* the leash counts only κ
# times, with κ (`k` in the code) between 0 and 1:
#
# $$\nabla\gamma_t \leftarrow \kappa \nabla\gamma_t \quad\text{if}\quad \nabla\gamma_t > 0 \qquad \text{(Eq. 5)}$$
#
# Write it for the slopes of many layers at once.


# %%
def my_anneal(slope, k):
    # region solution
    return torch.where(slope > 0, k * slope, slope)
    # stub
    # raise NotImplementedError("the slopes, those above 0 multiplied by κ")
    # endregion


check("anneal", my_anneal)

# %% [markdown]
# ## Exercise 2: Adam moves the leash ★★
#
# The slope says which way; how far? FTP takes one step of Adam (Alg. 2), with μ = 0.01, $\beta_1$ = 0.9 and
# $\beta_2$ = 0.999. In words: $m$ is a running mean of the slopes, $v$ of their squares; both begin at 0, so they are
# corrected; and γ moves by μ times the usual slope in units of its usual size.
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1) \nabla\gamma \qquad v \leftarrow \beta_2 v + (1 - \beta_2) \nabla\gamma^2$$
#
# $$\gamma \leftarrow \gamma - \mu \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}$$
#
# Return the new γ, and $m$ and $v$ for the next step.


# %%
def my_adam_update(gamma, grad, m, v, t, mu=0.01, b1=0.9, b2=0.999, eps=1e-8):
    # region solution
    m = b1 * m + (1 - b1) * grad
    v = b2 * v + (1 - b2) * grad**2
    m_hat, v_hat = m / (1 - b1**t), v / (1 - b2**t)
    return gamma - mu * m_hat / (v_hat**0.5 + eps), m, v
    # stub
    # raise NotImplementedError("the new γ, m and v of Alg. 2")
    # endregion


check("adam_update", my_adam_update)

# %% [markdown]
# One detail. In Alg. 1 the first step only sets γ, so the first *update* happens at t = 2, and is corrected as if it
# were the second. Put t = 2 into Alg. 2 with a single slope, and the size of the slope cancels: what is left is μ times
# $\frac{0.1 / (1 - 0.9^2)}{\sqrt{0.001 / (1 - 0.999^2)}}$. That is 0.744 μ, where a textbook Adam would move by μ. The
# released code does it so, and so does the kit (`gamma_count="updates"` is the textbook's way).


# %%
def walk(slopes, k=1.0, count="steps", gamma=1.0):
    gamma, m, v = torch.tensor([gamma, 0.0, 0.0]).unbind()
    for t, slope in enumerate(slopes, start=2):
        gamma, m, v = adam_update(gamma, anneal(torch.tensor(slope), k), m, v, t, count=count)
    return gamma.item()


# %%
first_moves = [1 - walk([slope]) for slope in (0.01, 1.0, 100.0)]
print("first move, in units of μ:", [round(move / 0.01, 3) for move in first_moves])
claim("the first move is 0.744 μ, whatever the slope", all(abs(move - 0.00744) < 1e-5 for move in first_moves))
claim("counted as the textbook counts, it is μ", abs(1 - walk([1.0], count="updates") - 0.01) < 1e-8)

# %%
noisy = torch.randn(60, generator=torch.Generator().manual_seed(2)).tolist()
peer = torch.nn.Parameter(torch.tensor(1.0))
adam = torch.optim.Adam([peer], lr=0.01)
for slope in noisy:
    peer.grad = torch.tensor(slope)
    adam.step()
claim(
    "the textbook's way is torch's own Adam, after 60 slopes", abs(walk(noisy, count="updates") - peer.item()) < 1e-12
)

# %% [markdown]
# And one line that Alg. 1 does not have, but the released code does: after the update γ is kept between 1e-8 and the
# distance of the farthest row. A leash beyond that would be slack, and would have to be wound in again before it holds.

# %%
wound_in = clip(torch.tensor([5.0, 0.7, -1.0]), norms_max=torch.tensor(2.0))
claim("γ = 5, 0.7 and -1 become 2, 0.7 and 1e-8", torch.allclose(wound_in, torch.tensor([2.0, 0.7, 1e-8])))

# %% [markdown]
# ## Predict: half of every slope
#
# A leash of length 1, and 50 batches that all say "shorter", with the same slope 1. With κ = 1 it gets shorter at some
# speed. And with κ = 0.5, which halves every one of these slopes?

# %%
options = ("half as fast", "just as fast", "not at all")
guess = "just as fast"
predict("04b.kappa", guess, options=options, sure=50)

# %%
full, half, none = [1 - walk([1.0] * 50, k=k) for k in (1.0, 0.5, 0.0)]
outcome("04b.kappa", options[1] if abs(half / full - 1) < 0.01 else options[0] if half > 0 else options[2])
claim("if all batches agree, κ = 0.5 shortens the leash just as fast as κ = 1", abs(half - full) < 1e-6)
claim("κ = 0 never shortens it", none == 0)

# %% [markdown]
# **Explain.** Adam divides by the usual size of the slopes, so half of everything is the same as all of it. κ weighs
# the batches that say "shorter" *against* those that say "longer"; where there is no quarrel, it decides nothing.
# That is where a κ between 0 and 1 works:

# %%
quarrel = [1.0, -0.8] * 25  # "shorter" is a little louder
ends = [walk(quarrel, k=k) for k in (1.0, 0.5, 0.0)]
claim("where batches quarrel, κ = 1 shortens the leash, and κ = 0.5 lengthens it", ends[0] < 1 < ends[1])
claim("κ = 0 lengthens it most", ends[2] > ends[1])

# %% [markdown]
# The optimizer itself, on the layer and the two batches of lesson 04:

# %%
draw = torch.Generator().manual_seed(1)
W0 = torch.randn(6, 8, generator=draw)  # the anchor: six rows of eight weights
moves = torch.nn.functional.normalize(torch.randn(6, 8, generator=draw), p=1)
task = W0 + torch.linspace(0.1, 1, 6).view(-1, 1) * moves  # what the new task wants


def batch(wish, draw, noise=0.25):
    x = torch.randn(10, 8, generator=draw)
    return x, x @ wish.T + noise * torch.randn(10, 6, generator=draw)


# %%
def loss(W, data):
    x, y = data
    return (x @ W.T - y).square().sum(dim=1).mean()


first, second = batch(task, draw), batch(task, draw)

# %% [markdown]
# ## Predict: the very first step
#
# You fine-tune with SGDP (the kit's SGD on leashes; you build it in lesson 05), and out of carelessness with a
# learning rate of 10. How far is the layer from its anchor after the first step?

# %%
options = ("very far", "about 0.01, one μ", "nowhere: it is where it was")
guess = "nowhere: it is where it was"
predict("04b.step_one", guess, options=options, sure=50)

# %%
layer = torch.nn.Parameter(W0.clone())
optimizer = ftp.SGDP([("layer", layer)], lr=10.0)
loss(layer, first).backward()
g1 = layer.grad.clone()
optimizer.step()
far = ftp.mars_norm(layer.detach() - W0)
outcome("04b.step_one", options[2] if far < 1e-6 else options[1] if far < 0.1 else options[0])

# %% [markdown]
# **Explain.** γ begins at 1e-8: before the second batch has spoken, nobody knows how long the leash may be. So the
# projection takes the whole first step back. It is not lost, though: the optimizer remembers where the row *wanted* to
# go, $\tilde W_1 - W_0$, and not where it ended. (If it remembered the projected way, 1e-8 long, little more than
# rounding would be left of it.)

# %%
remembered = optimizer.state[layer]["deviation"].clone()
claim("after step 1 no row is farther than 1e-8 from its anchor", far <= 1.001e-8)
claim("what is remembered is the step that SGD wanted to make", torch.allclose(remembered, -10 * g1))

# %% [markdown]
# The second batch then answers. With SGD the remembered way is the first gradient turned round, $d = -\alpha g_1$, so
# the first slope of all is *minus the agreement of two gradients*: batches that agree lengthen the leash.

# %%
layer.grad = None
loss(layer, second).backward()
agreement = ((layer.grad * g1).sum(dim=1) / ftp.row_l1(g1)).sum()
claim("the slope of step 2 is minus the agreement", torch.isclose(gamma_grad(layer.grad, remembered), -agreement))
optimizer.step()
grown = optimizer.constraints()["layer"]
claim("the two batches agree, and the leash has grown by 0.744 μ", agreement > 0 and abs(grown - 0.00744) < 1e-5)

# %% [markdown]
# That also tames the learning rate of 10. What would plain SGD have done with it, on the same two batches?

# %%
plain, far = W0, ftp.mars_norm(layer.detach() - W0)
for data in (first, second):
    plain = plain - 10 * torch.func.grad(loss)(plain, data)
print(f"from the anchor after two steps: plain SGD {ftp.mars_norm(plain - W0):,.0f}, SGDP {far:.5f}")

# %% [markdown]
# ## Step by step
#
# Three rows of two weights, each with its post (×) and its goal (☆), and one leash for all. Move the slider: SGD calls
# and each row runs; the batch is asked about the step before, and γ changes; who is too far is pulled back.

# %%
taken = walks.walk(steps=8)
card(walks.step_by_step(taken), seeds=0)

# %%
lengths = torch.tensor([step.gamma for step in taken])
claim(
    "at step 1 the leash has no length, and no later step lets out more than μ",
    lengths[0] < 1e-7 and (lengths.diff() < 0.0101).all(),
)

# %% [markdown]
# And eighty of them, played. Watch the reach: it is let out while the batches agree, and breathes when they do not.

# %%
card(walks.playing(walks.walk(steps=80)), seeds=0)

# %% [markdown]
# ## Watch it learn
#
# All of it together, for 200 steps and ten seeds. On the left the task of this lesson, with more noise. On the right a
# **Negative control**: the same noise, but *nothing to learn*, because the layer is where it should be already.
# You see how far the farthest row is from its anchor. With FTP that is γ itself, because of the clip.


# %%
def learn(wish, make, steps=200, noise=1.0):
    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    layers, far = [torch.nn.Parameter(W0.clone()) for _ in seeds], []
    optimizer = make([(f"seed {n}", layer) for n, layer in enumerate(layers)], lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        sum(loss(layer, batch(wish, draw, noise)) for layer, draw in zip(layers, draws, strict=True)).backward()
        optimizer.step()
        far.append([ftp.mars_norm(layer.detach() - W0).item() for layer in layers])
    return torch.tensor(far)  # one row for each step, one column for each seed


# %%
seeds = range(10)
ways = {"no leash": torch.optim.SGD} | {f"κ = {k:g}": partial(ftp.SGDP, k=k) for k in (0.0, 0.5, 1.0)}
learned = {name: learn(task, make) for name, make in ways.items()}
idle = {name: learn(W0, make) for name, make in ways.items()}

# %% tags=["signature"]
panels = ("a task: rows should move by 0.1 to 1", "nothing to learn")
fig = figure("A leash grows when batches agree", "step", "how far the farthest row is", panels=panels)
for name, color in zip(ways, (GREY, VERMILLION, GREEN, BLUE), strict=True):
    for panel, runs in enumerate((learned, idle), start=1):
        band(fig, range(1, 201), runs[name], name, color, panel=panel)
fig.update_layout(yaxis_range=[0, 1.5], yaxis2_range=[0, 1.5])
card(fig, seeds=seeds)

# %%
late = {name: (learned[name][150:].mean(dim=0), idle[name][150:].mean(dim=0)) for name in ways}  # of each seed
there, nothing = late["κ = 1"]
claim("with a task, the leash gets at least 3 times as long as with nothing to learn", there.min() > 3 * nothing.max())
claim("with nothing to learn, SGD strays at least 3 times as far", late["no leash"][1].min() > 3 * nothing.max())
claim("with κ = 0 the leash grows all the same, on noise alone", late["κ = 0"][1].min() > 2 * nothing.max())

# %% [markdown]
# **Explain.** Where there is nothing to learn, consecutive batches agree only by chance: the leash is let out and
# wound in again, and the layer stays home, while plain SGD follows the noise. With κ = 0 every chance agreement counts
# and no disagreement does, so the leash creeps out like a ratchet. κ is a price: less of it learns faster, and follows
# more noise.
#
# And where there is a task? The farthest row should move by 1. Plain SGD goes there and a little beyond; FTP ends
# short of it:

# %%
print("farthest row at step 200:", ", ".join(f"{name}: {runs[-1].mean():.1f}" for name, runs in learned.items()))
calm = learn(task, ftp.SGDP, steps=400, noise=0.0)
alike = learn(W0 + moves, ftp.SGDP, steps=400)
patient = learn(task, ftp.SGDP, steps=400)
print(f"κ = 1, 400 steps: {patient[-1].mean():.1f} as it is, {calm[-1].mean():.1f} without noise,", end=" ")
print(f"{alike[-1].mean():.1f} if every row should move by 1")

# %% [markdown]
# More steps do not help. *One* length serves all rows, and noise does the rest. The rows that had little to learn have
# learned it; now they follow the noise beyond their goal, the next batch calls them back, and that is a vote for
# "shorter", against the rows that still have far to go. Take away either, the noise or the difference between the
# rows, and the leash gets about as long as it should.
#
# ## Where this stops being true
#
# - **γ cannot hurry.** While batches agree it moves by about μ per step, however steep the slope: after 100 steps a
#   leash is about 1 long, even if every batch calls from far out. One slope that is suddenly a thousand times as steep
#   moves it by some two μ. The cell below shows both. A short training on a long way stays short; so the digits of the
#   other lessons have μ = 0.1, ten times that of this one.
# - **One length for all rows of a layer.** Rows that should stay and rows that should go far share it, and it settles
#   in between.
# - **κ decides only where batches quarrel.** If all of them say "shorter", any κ above 0 shortens just as fast.

# %%
longest = walk([-1.0] * 99, gamma=1e-8)  # steps 2 to 100, and every batch says "longer"
print(f"after 100 steps at full speed the leash is {longest:.1f} long")
claim("100 steps make about 100 μ of leash, and no more", abs(longest - 100 * 0.01) < 0.02)
calm = [0.001] * 500
jolt = (walk(calm, gamma=10.0) - walk([*calm, 1.0], gamma=10.0)) / 0.01
print(f"one slope that is 1,000 times as steep moves it by {jolt:.1f} μ")

# %% [markdown]
# ## What you have seen
#
# ![How far the farthest row goes, with a task and with nothing to learn](figures/04b_moving_the_leash.png)
#
# Adam walks the leash, a piece of about μ in each step; κ gives it the benefit of the doubt; and the first step only
# listens. Watch one step at a time: `make app`, then the address below.
#
# Before: [04 · Learning the leash](04_learning_the_leash.ipynb). Next: [05 · Build SGDP](05_build_sgdp.ipynb).

# %%
print(app_link("microscope", layer="blocks.0.conv1.weight", step=1))
