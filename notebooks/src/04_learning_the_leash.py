# %% [markdown]
# # 04 · Learning the leash
#
# **The claim of this lesson:** the length of a leash can be learned for free: what TPGM finds with a second pass
# through the network (Eq. 3), FTP reads off a gradient that training has computed anyway (Eq. 4), and it is the same
# number.
#
# - **You will be able to** derive the slope of a leash in one line, check it in two other ways, say which rows it
#   speaks for, and explain what κ, Adam and the very first step do to γ.
# - **Time:** 40 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 03](03_projection.ipynb): the projection, row by row. What a gradient is.
# - **Exercises:** `gamma_grad` ★★ · `anneal` ★ · `adam_update` ★★
#
# Stuck in an exercise? `hint("gamma_grad", 1)`, then 2, then 3, then `solution("gamma_grad")`.

# %%
from functools import partial

import torch

import ftp
from ftp.constraint import adam_update, anneal, clip, gamma_grad
from ftp.lab.exercises import check, hint, solution  # noqa: F401
from ftp.lab.lesson import BLUE, GREEN, GREY, VERMILLION, app_link, band, begin, card, claim, figure, outcome, predict

torch.set_default_dtype(torch.float64)
begin("04", seconds=12)

# %% [markdown]
# ## The picture
#
# Lesson 03 took the length γ as given. But how long should a leash be? Nobody knows, and every layer needs another.
# So let the next batch decide.
#
# The dog stands at the end of its leash, where the last batch has led it. Now the next batch comes, and calls from
# somewhere else. Does it call from *farther out*? Then the leash is too short. Does it call the dog *back*? Then it is
# too long. Only one thing counts: the part of the call that goes along the leash.
#
# In symbols: for each row, $d$ is the way from the anchor to where the row wanted to be, $d^i = \tilde w^i_{t-1} -
# w^i_0$, and $g$ is the gradient of the next batch. A leash that is longer by 1 moves the row by $d^i / \|d^i\|_1$, so
# the loss changes by
#
# $$\nabla\gamma_t = \sum_i g_t^i \cdot \frac{d^i}{\|d^i\|_1} \qquad \text{(Eq. 4)}$$
#
# One row, by hand. It wanted to be at (3, -1), seen from its anchor:

# %%
g, d = torch.tensor([[0.2, 0.4]]), torch.tensor([[3.0, -1.0]])
unit = d / d.abs().sum()
print(f"by hand: one more unit of leash moves the row by {unit.tolist()}")
print(f"by hand: the loss changes by {(g * unit).sum():.2f} per unit")
print(f"the kit says: {gamma_grad(g, d):.2f}")

# %% [markdown]
# ## Predict: longer or shorter?
#
# The slope is positive, 0.05. Which way should this leash go? (μ is the learning rate of γ; it comes in exercise 3.)

# %%
options = ("longer", "shorter", "it depends on μ")
guess = "longer"
predict("04.sign", guess, options=options, sure=50)

# %%
far, near = [(g * gamma * unit).sum() for gamma in (1.1, 0.9)]  # the loss, nearly: g · w
outcome("04.sign", "shorter" if near < far else "longer")
claim("a positive slope means: the loss falls when the leash gets shorter", near < far)

# %% [markdown]
# The batch calls the dog back. Keep this in mind, it is easily turned round: **positive slope, shorter leash**.
#
# ## A layer, and two batches
#
# A layer of six rows. The new task wants some rows to move a little and some a lot. The first batch has led the layer
# to `wanted`, the $\tilde W$ of the paper; then comes the second batch. Both are small and noisy, as batches are.

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
wanted = W0
for _ in range(40):
    wanted = wanted - 0.05 * torch.func.grad(loss)(wanted, first)
way = wanted - W0

# %% [markdown]
# **TPGM** is the method before FTP (the *trainable projected gradient method*). It asks directly: how does the loss of
# *other* data depend on γ? It projects with γ, sends a validation batch through the projected network, and lets the
# gradient run back through the projection (Eq. 3). That is one more pass forward and one more back, in every step, only
# for γ.

# %%
gamma = torch.tensor(0.2, requires_grad=True)
loss(ftp.project_mars(wanted, W0, gamma), second).backward()  # an extra pass, for γ alone
nested = gamma.grad

# %% [markdown]
# **FTP** waits one step. The layer stands at the projected weights already, and the next training batch will ask for
# the gradient there anyway. Eq. 4 needs nothing else: that gradient, and the way $d$, kept from the step before.

# %%
W = ftp.project_mars(wanted, W0, 0.2).requires_grad_()  # where the layer stands
loss(W, second).backward()  # the next training step does this anyway
cached = gamma_grad(W.grad, way)

# %% [markdown]
# A third witness knows no calculus at all: make the leash a hair longer, a hair shorter, and look at the loss.

# %%
nudged = [loss(ftp.project_mars(wanted, W0, 0.2 + hair), second) for hair in (1e-6, -1e-6)]
numeric = (nudged[0] - nudged[1]) / 2e-6
claim("Eq. 4 is what TPGM's nested loop finds, to 12 digits", torch.isclose(cached, nested, rtol=1e-12))
claim("and it is what the loss does when one pulls at the leash", torch.isclose(cached, numeric, rtol=1e-6))

# %% [markdown]
# So the second pass is gone. Two liberties were taken for that. The next training batch plays the part of the
# validation batch. And FTP does not go back: TPGM would now project the *old* $\tilde W$ again with the new γ, FTP
# uses the new γ for the next $\tilde W$. The paper calls it smoothness: γ must not jump. If it moves by 0.01, the
# old step was wrong by no more than that:

# %%
late, rolled_back = [ftp.project_mars(wanted, W0, length) for length in (0.2, 0.21)]
claim("not going back costs a row at most the change of γ", ftp.mars_norm(rolled_back - late) <= 0.01 + 1e-9)

# %% [markdown]
# ## Exercise 1: the slope of a leash ★★
#
# Write Eq. 4 for a layer of any shape: `grad` is $g$, `deviation` is $d$. In a convolution a row is a whole output
# channel. One trap: a row that has not moved at all.


# %%
def my_gamma_grad(grad, deviation):
    # region solution
    g, d = grad.flatten(1), deviation.flatten(1)
    slopes = (g * d).sum(dim=1) / (d.abs().sum(dim=1) + 1e-8)
    return slopes.sum()
    # stub
    # raise NotImplementedError("the sum over rows of g · d / (length of d)")
    # endregion


check("gamma_grad", my_gamma_grad)

# %% [markdown]
# ## Predict: rows within reach
#
# At γ = 0.2 all six rows were at the end of their leash. Make it longer, and one row after the other comes within
# reach. Eq. 4 as it is printed, and the authors' released code, go on adding up *all* rows. Compared with the true
# slope, which autograd finds: what will you see?

# %%
options = ("always the same", "different once a row is within reach", "different everywhere")
guess = "always the same"
predict("04.rows", guess, options=options, sure=50)


# %%
def slopes(gamma, data):
    leash = gamma.clone().requires_grad_()
    W = ftp.project_mars(wanted, W0, leash)
    (nested,) = torch.autograd.grad(loss(W, data), leash)  # Eq. 3
    g = torch.func.grad(loss)(W.detach(), data)  # what training has anyway
    outside, all_rows = [gamma_grad(g, way, gamma, rows=rows) for rows in ("outside", "all")]  # Eq. 4
    nudged = [loss(ftp.project_mars(wanted, W0, gamma + hair), data) for hair in (1e-6, -1e-6)]
    return torch.stack([nested, outside, all_rows, (nudged[0] - nudged[1]) / 2e-6])


# %%
reach = ftp.row_l1(way)  # how far each row wants to go
lengths = torch.linspace(0.03, 0.99, 150) * reach.max()
true, outside, all_rows, numeric = torch.stack([slopes(gamma, second) for gamma in lengths]).T
free = lengths < reach.min()  # no row is within reach yet
apart = (true - all_rows).abs() > 1e-9
outcome("04.rows", options[1] if torch.equal(apart, ~free) else options[0] if not apart.any() else options[2])

# %%
heights = {
    name: [loss(ftp.project_mars(wanted, W0, gamma), data).item() for gamma in lengths]
    for name, data in (("first batch", first), ("second batch", second))
}
x, right = lengths.tolist(), {"xaxis": "x2", "yaxis": "y2"}
dots = {"mode": "markers", "marker": {"color": GREEN, "size": 8}}

# %% tags=["signature"]
panels = ("the loss, along the leash", "its slope, for the second batch")
fig = figure("One product per row finds the slope of the leash", "leash γ", panels=panels, height=460)
for (name, y), dash in zip(heights.items(), ("dash", "solid"), strict=True):
    fig.add_scatter(x=x, y=y, name=name, line={"color": GREY, "width": 3, "dash": dash})
for length in reach.tolist():
    fig.add_shape(x0=length, x1=length, y0=0, y1=1, xref="x2", yref="y2 domain", line={"color": GREY, "dash": "dot"})
fig.add_scatter(x=x, y=outside.tolist(), name="Eq. 4, rows outside", line={"color": BLUE, "width": 3}, **right)
fig.add_scatter(x=x, y=all_rows.tolist(), name="all rows", line={"color": VERMILLION, "dash": "dash"}, **right)
fig.add_scatter(x=x[::6], y=numeric[::6].tolist(), name="pulled by a hair", **dots, **right)
card(fig, seeds=1)

# %%
claim("Eq. 4 over the rows outside is the true slope at all 150 lengths", torch.allclose(outside, true, rtol=1e-9))
claim("and so says the loss itself, when one pulls", torch.allclose(outside, numeric, atol=1e-5))
claim("all rows are the same while no row is within reach", torch.allclose(all_rows[free], true[free]))
claim("and something else afterwards", apart[~free].all())

# %% [markdown]
# ## Explain
#
# A row within reach does not feel its leash: longer or shorter, it stays where it is. Its part of the true slope is 0,
# and at each dotted line one more row falls silent. The released code lets these rows go on speaking.
#
# Where does that come from? Eq. 2, as the paper prints it, has no $\min$: there every row stands *exactly* γ away from
# its anchor, also the ones that would rather be nearer. For that projection all rows do count:

# %%
leash = torch.tensor(0.9, requires_grad=True)
pushed = W0 + leash * way / reach.view(-1, 1)  # Eq. 2 as printed: short rows are pushed out, too
(exact,) = torch.autograd.grad(loss(pushed, second), leash)
g = torch.func.grad(loss)(pushed.detach(), second)
claim("without the min of Eq. 10, the sum over all rows is the true slope", torch.isclose(exact, gamma_grad(g, way)))

# %% [markdown]
# The code has the $\min$ in its projection and not in its slope. That is no disaster: it lets rows vote that have
# slack. It even has a use. When *all* rows are within reach, the true slope is 0, and the leash would never hear that
# it should be shorter; with all rows it does. `ftp.SGDP` is the kit's optimizer, SGD with these leashes (you build
# it in lesson 05). Its default is the released code, so that the paper's numbers come out; with `gamma_rows="outside"`
# it takes the true slope.

# %%
slack = reach.max() + 0.1
quiet, voting = slopes(slack, second)[1:3]
claim("when every row has slack, the true slope is 0", quiet == 0)
claim("and here all rows together still call for a shorter leash", voting > 0.1)

# %% [markdown]
# ## Negative control: the same batch twice
#
# Why must it be the *next* batch? Look at the dashed line on the left: it is the first batch, the one that led the
# layer to $\tilde W$. It only falls. Asked about the leash, it answers "longer", whatever the length:

# %%
same = torch.stack([slopes(gamma, first)[1] for gamma in lengths])
claim("the batch that made the step always wants a longer leash", (same < 0).all())
claim("the next batch does not: for it, a leash can be too long", (true > 0.1).any())

# %% [markdown]
# So a leash learned on one batch alone would be no leash. What holds the dog is that two independent batches have to
# agree.
#
# ## Exercise 2: κ, the benefit of the doubt ★
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
# ## Exercise 3: Adam moves the leash ★★
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
# length of the longest row. A leash beyond that would be slack, and would have to be wound in again before it holds.

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
guess = "half as fast"
predict("04.kappa", guess, options=options, sure=50)

# %%
full, half, none = [1 - walk([1.0] * 50, k=k) for k in (1.0, 0.5, 0.0)]
outcome("04.kappa", options[1] if abs(half / full - 1) < 0.01 else options[0] if half > 0 else options[2])
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
# ## Predict: the very first step
#
# Now the optimizer itself. You fine-tune with SGDP, and out of carelessness with a learning rate of 10. How far is the
# layer from its anchor after the first step?

# %%
options = ("very far", "about 0.01, one μ", "nowhere: it is where it was")
guess = "very far"
predict("04.step_one", guess, options=options, sure=50)

# %%
layer = torch.nn.Parameter(W0.clone())
optimizer = ftp.SGDP([("layer", layer)], lr=10.0)
loss(layer, first).backward()
g1 = layer.grad.clone()
optimizer.step()
far = ftp.mars_norm(layer.detach() - W0)
outcome("04.step_one", options[2] if far < 1e-6 else options[1] if far < 0.1 else options[0])

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
# ## Watch it learn
#
# All of it together, for 200 steps and ten seeds. On the left the task of this lesson, with more noise. On the right a
# second **negative control**: the same noise, but *nothing to learn*, because the layer is where it should be already.
# You see how far the farthest row is from its anchor. With FTP that is γ itself, because of the clip.


# %%
def learn(wish, make, steps=200, noise=1.0):
    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    layers, far = [torch.nn.Parameter(W0.clone()) for _ in seeds], []
    optimizer = make(layers, lr=0.02)
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

# %%
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
# - **Eq. 4 is exact at the end of the leash.** Rows within reach make it a vote instead of a derivative, as you saw.
# - **γ cannot hurry.** It moves by about μ per step, however steep the slope: after 100 steps a leash is about 1 long,
#   even if every batch calls from far out. The cell below shows it. A short training on a long way stays short.
# - **The two batches must be independent.** The same batch twice, or two batches that share their noise, always call
#   for more leash.
# - **One step late.** Eq. 4 speaks about $\tilde W_{t-1}$, and is used for $\tilde W_t$. Slow leashes forgive that.
# - **What is a row?** In a bias or a norm's gain, the released code takes the whole vector as one row. The paper speaks
#   of matrices only.

# %%
longest = walk([-1.0] * 99, gamma=1e-8)  # steps 2 to 100, and every batch says "longer"
print(f"after 100 steps at full speed the leash is {longest:.1f} long")
claim("100 steps make about 100 μ of leash, and no more", abs(longest - 100 * 0.01) < 0.02)

# %% [markdown]
# ## What you have seen
#
# ![The slope of the leash by three ways, and the sum over all rows](figures/04_learning_the_leash.png)
#
# A leash learns from the part of the next gradient that goes along it: one product per row, no second pass. Adam walks
# it, κ gives it the benefit of the doubt, and the first step only listens. Watch one step at a time: `make app`, then
# the address below.
#
# Next: [05 · Build SGDP](05_build_sgdp.ipynb).

# %%
print(app_link("microscope", layer="blocks.5.conv2.weight", step=1))
