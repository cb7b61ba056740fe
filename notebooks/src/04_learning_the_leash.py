# %% [markdown]
# # 04 · Learning the leash
#
# **The question of this lesson:** who decides how long a leash should be, and must one pay a second pass through the
# network for it (Eq. 3, 4)?
#
# - **You will be able to** derive the slope of a leash in one line, check it in two other ways, say which rows it
#   speaks for, and which two batches may be asked.
# - **Time:** 25 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 03](03_projection.ipynb): the projection, row by row. What a gradient is.
# - **Exercises:** `gamma_grad` ★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("gamma_grad", 1)`, then 2, then 3, then `solution("gamma_grad")`.

# %%
import torch

import ftp
from ftp.constraint import gamma_grad
from ftp.lab.exercises import check, hint, solution
from ftp.lab.lesson import BLUE, GREEN, GREY, VERMILLION, app_link, band, begin, card, claim, figure, outcome, predict

torch.set_default_dtype(torch.float64)
begin("04", seconds=6)

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
# The slope is positive, 0.05. Which way should this leash go? (μ is the learning rate of γ; lesson 04b has it.)

# %%
options = ("longer", "shorter", "it depends on μ")
guess = "shorter"
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
claim("Eq. 4 is what TPGM's nested loop finds, to 12 digits", torch.isclose(cached, nested, rtol=1e-12, atol=0))
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
guess = "different once a row is within reach"
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

# %% jupyter={"source_hidden": true}
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
claim("here, the batch that made the steps wants a longer leash at all 150 lengths", (same < 0).all())
claim("the next batch does not: for it, a leash can be too long", (true > 0.1).any())

# %% [markdown]
# So a leash learned on one batch alone would hold little: what holds the dog is that two independent batches have to
# agree.
#
# ## Predict: always longer?
#
# Now a whole training with SGDP that sees nothing but the first batch, 300 times over, at one learning rate after the
# other. Does that batch ever call for a *shorter* leash?

# %%
options = ("never, at any rate", "at the smallest rates", "at the largest rates")
guess = "at the largest rates"
predict("04.same_batch", guess, options=options, sure=50)


# %%
def shortened(lr, steps=300):
    """In how many steps the leash got shorter, if every step has the same batch."""
    layer = torch.nn.Parameter(W0.clone())
    optimizer, leashes = ftp.SGDP([("layer", layer)], lr=lr), []
    for _ in range(steps):
        (layer.grad,) = torch.autograd.grad(loss(layer, first), layer)
        optimizer.step()
        leashes.append(optimizer.constraints()["layer"])
    return int((torch.tensor(leashes).diff() < -1e-12).sum())


# %%
counts = {lr: shortened(lr) for lr in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)}
small, large = [n for lr, n in counts.items() if lr < 0.5], [n for lr, n in counts.items() if lr >= 0.5]
never = not any(counts.values())
outcome("04.same_batch", options[0] if never else options[1] if any(small) else options[2])
print("steps of 299 that shortened the leash:", ", ".join(f"lr {lr:g}: {n}" for lr, n in counts.items()))
claim("up to a rate of 0.2, the same batch never shortens the leash", not any(small))
claim("at 0.5 and at 1 it does so in more than a hundred steps", min(large) > 100)

# %% [markdown]
# **Explain.** As long as the steps are short, one batch sees its own loss fall along the way that it has chosen, so it
# wants more of it. At a rate of 0.5 the steps *overshoot*: the row runs past what the batch wants, and the very same
# batch calls it back. So "longer" is not a law of nature; it is what a batch says that has not yet had its way. In
# practice that is the usual case, and it is no evidence.
#
# ## Where this stops being true
#
# - **Eq. 4 is exact at the end of the leash.** Rows within reach make it a vote instead of a derivative, as you saw.
# - **The two batches must be independent.** The same batch twice, or two batches that share their noise, call for more
#   leash as long as the steps do not overshoot: that is no evidence that the way is good.
# - **One step late.** Eq. 4 speaks about $\tilde W_{t-1}$, and is used for $\tilde W_t$. Slow leashes forgive that.
# - **What is a row?** In a bias or a norm's gain, the released code takes the whole vector as one row. The paper speaks
#   of matrices only.
#
# ## What you have seen
#
# ![The slope of the leash by three ways, and the sum over all rows](figures/04_learning_the_leash.png)
#
# A leash learns from the part of the next gradient that goes along it: one product per row, no second pass. How far it
# then moves, and what the first step does, is the next lesson. Watch one step at a time: `make app`, then the address
# below.
#
# Before: [03 · Projection by hand](03_projection.ipynb). Next: [04b · Moving the leash](04b_moving_the_leash.ipynb).

# %%
print(app_link("microscope", layer="blocks.5.conv2.weight", step=1))
