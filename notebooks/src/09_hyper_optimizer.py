# %% [markdown]
# # 09 · FTP is a hyper-optimizer
#
# **The question of this lesson:** a leash learns its length from the next gradient (Eq. 4); can a learning rate learn
# its size in the same way (Eq. 6-8)?
#
# - **You will be able to** find the slope of any knob of an optimizer in two lines, build an SGD that learns its own
#   rate, and say what such an optimizer cannot see.
# - **Time:** 30 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 04](04_learning_the_leash.ipynb): the slope of a leash.
# - **Exercises:** `rate_slope` ★★ · `decay_slope` ★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("rate_slope", 1)`, then 2, then 3, then `solution("rate_slope")`.

# %%
import torch

import ftp
from ftp.constraint import gamma_grad
from ftp.hyper import hyper_gradient
from ftp.lab.exercises import check, hint, solution
from ftp.lab.lesson import BLUE, GREY, VERMILLION, app_link, band, begin, card, claim, figure, outcome, predict

torch.set_default_dtype(torch.float64)
begin("09", seconds=12)

# %% [markdown]
# ## The picture
#
# Whoever walks a dog has two things to decide: how long the **leash** is, and how long a **stride** is. Nobody knows
# either in advance. But after each step one can look back and ask: *had I given a little more, where would the dog
# stand now?* That is an arrow. Then the next call comes. If it calls along the arrow, a little more would have been
# better; if against it, a little less.
#
# So every knob of an optimizer has an **arrow**: the way the weights move when the knob is turned up by 1. And its
# slope is always the same thing, the next gradient $g_t$ times the arrow:
#
# | knob | the step before | its arrow | its slope |
# |---|---|---|---|
# | the leash γ | $W_{t-1} = W_0 + \gamma\, u$ (Eq. 2) | $u$ | $g_t \cdot u$ (Eq. 4) |
# | the rate α | $W_{t-1} = W_{t-2} - \alpha\, g_{t-1}$ (Eq. 6) | $-g_{t-1}$ | $-g_t \cdot g_{t-1}$ (Eq. 7) |
#
# Here $u = d / \lVert d \rVert_1$ is the way from the anchor, made 1 long; each row of a layer has its own, and the
# slopes of all rows are added. $g_{t-1}$ is the gradient at $W_{t-2}$, the one that made the step. Then the knob
# moves against its slope, and the new setting makes the next step:
#
# $$\alpha_t = \alpha_{t-1} + \kappa\, g_t \cdot g_{t-1} \quad \text{(Eq. 7)} \qquad W_t = W_{t-1} - \alpha_t\, g_t
# \quad \text{(Eq. 8)}$$
#
# By hand: the step before followed (3, 4), and the next gradient is (1, 2).

# %%
g, before = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
print(f"by hand: the arrow is {(-before).tolist()}, the slope 1 · (-3) + 2 · (-4) = {1 * -3 + 2 * -4}")
print(f"the kit says: {hyper_gradient([g], [before]):.0f}")

# %% [markdown]
# ## Predict: two gradients that agree
#
# The slope is negative, -11: the two gradients point the same way. What happens to the rate?

# %%
options = ("it grows", "it shrinks", "it stays")
guess = "it grows"
predict("09.agree", guess, options=options, sure=50)

# %%
weight = torch.nn.Parameter(torch.zeros(2))
optimizer = ftp.HyperSGD([weight], lr=0.1, hyper_lr=0.001)
for grad in (before, g):
    weight.grad = grad.clone()
    optimizer.step()
rate = float(optimizer.param_groups[0]["lr"])
outcome("09.agree", "it grows" if rate > 0.1 else "it shrinks" if rate < 0.1 else "it stays")
claim("0.1 has become 0.1 + 0.001 · 11", abs(rate - 0.111) < 1e-12)

# %% [markdown]
# Two steps in the same direction could have been one longer step. Two steps against each other have overshot.
#
# ## Exercise 1: the slope of the rate ★★
#
# Write the slope in Eq. 7 for a whole network: `grads` has the new gradient of each layer, `previous` the one that made
# the step before.


# %%
def my_rate_slope(grads, previous):
    # region solution
    return -sum((g * p).sum() for g, p in zip(grads, previous, strict=True))
    # stub
    # raise NotImplementedError("minus the product of the two gradients, summed over all layers")
    # endregion


check("rate_slope", my_rate_slope)

# %% [markdown]
# ## One recipe, two knobs, three witnesses
#
# A layer of six rows, and two batches. The first one makes a step, with the rate or with the leash; the second one is
# asked what it thinks of it.

# %%
draw = torch.Generator().manual_seed(0)
wish, W0 = torch.randn(6, 8, generator=draw), torch.zeros(6, 8)


def batch(draw, wish, noise=0.5):
    x = torch.randn(20, 8, generator=draw)
    return x, x @ wish.T + noise * torch.randn(20, 6, generator=draw)


# %%
passes = 0


def loss(W, data):
    global passes
    passes += 1
    x, y = data
    return (x @ W.T - y).square().sum(dim=1).mean()


# %%
first, second = batch(draw, wish), batch(draw, wish)
g1 = torch.func.grad(loss)(W0, first)


def stride(alpha):
    return W0 - alpha * g1  # Eq. 6


def leash(gamma):
    return ftp.project_mars(W0 - 0.3 * g1, W0, gamma)  # Eq. 2


# %% [markdown]
# The first witness is the formula, with the arrow from the table. The second is **nested differentiation**: autograd
# goes back through the step into the knob. The third knows no calculus: it turns the knob a hair and looks at the loss.


# %%
def witnesses(step, knob, arrow):
    g2 = torch.func.grad(loss)(step(torch.tensor(knob)), second)  # what training has anyway
    nested = torch.func.grad(lambda k: loss(step(k), second))(torch.tensor(knob))  # an extra pass
    up, down = [loss(step(torch.tensor(knob + hair)), second) for hair in (1e-6, -1e-6)]
    return torch.stack([(g2 * arrow).sum(), nested, (up - down) / 2e-6])


way = -0.3 * g1
rate, bound = witnesses(stride, 0.05, -g1), witnesses(leash, 0.7, way / ftp.row_l1(way).view(-1, 1))

# %%
for name, (formula, nested, numeric) in (("rate", rate), ("leash", bound)):
    claim(f"{name}: the arrow times the next gradient is what autograd finds", torch.isclose(formula, nested))
    claim(f"{name}: and what the loss does when one turns the knob", torch.isclose(formula, numeric, rtol=1e-6))
g2_stride, g2_leash = [torch.func.grad(loss)(W, second) for W in (stride(0.05), leash(0.7))]
claim("the kit's Eq. 7 is the first line", torch.isclose(hyper_gradient([g2_stride], [g1]), rate[0]))
claim("the kit's Eq. 4 is the second", torch.isclose(gamma_grad(g2_leash, way), bound[0]))

# %% [markdown]
# They are closer than sisters. For a single row, and right after the first step, the way $d$ *is* minus the gradient
# (times α), and the two slopes differ by one factor, the length of that gradient:

# %%
row, row_before = g2_leash[:1], g1[:1]
as_leash, as_rate = gamma_grad(row, -0.3 * row_before), hyper_gradient([row], [row_before])
same = torch.isclose(as_leash * ftp.row_l1(row_before), as_rate, rtol=1e-6).all()
claim("one row: slope of the leash × length of the gradient = slope of the rate", same)

# %% [markdown]
# ## What it costs
#
# `passes` counts how often data go through the layer. Thirty steps with each optimizer:


# %%
def train(make, seed=0, steps=30, scale=1.0):
    draw = torch.Generator().manual_seed(seed)
    wish, W = torch.randn(6, 8, generator=draw), torch.nn.Parameter(torch.zeros(6, 8))
    optimizer, rates, losses = make([("W", W)]), [], []
    for _ in range(steps):
        losses.append(loss(W, batch(draw, wish)))
        (W.grad,) = torch.autograd.grad(scale * losses[-1], W)
        optimizer.step()
        rates.append(float(optimizer.param_groups[0]["lr"]))
    return torch.tensor(rates), torch.stack(losses).detach(), optimizer


# %%
spent = {}
for name in ("SGD", "HyperSGD", "SGDP"):
    passes = 0
    train(lambda named, name=name: getattr(torch.optim if name == "SGD" else ftp, name)(named, lr=0.01))
    spent[name] = passes
print(spent)
claim("learning the rate or the leash costs no pass: 30 steps are 30 passes", set(spent.values()) == {30})

# %% [markdown]
# ## Predict: a rate that is much too small
#
# We start with a rate of 0.0001, far too small, with SGD and with HyperSGD, and train for 100 steps.
# How will the learned rate behave?

# %%
options = ("creeps up a little", "grows by hundreds of times, then settles", "grows without end")
guess = "grows by hundreds of times, then settles"
predict("09.rate", guess, options=options, sure=50)


# %%
class RandomArrow(ftp.HyperSGD):
    def step(self):
        for kept in self.state.values():
            arrow = torch.randn_like(kept["previous_grad"])
            kept["previous_grad"] = arrow * kept["previous_grad"].norm() / arrow.norm()
        super().step()


# %%
seeds, learn = range(10), {"lr": 1e-4, "hyper_lr": 3e-5}
ways = {
    "SGD": lambda named: torch.optim.SGD(named, lr=1e-4),
    "HyperSGD": lambda named: ftp.HyperSGD(named, **learn),
    "a random arrow": lambda named: RandomArrow(named, **learn),
}
torch.manual_seed(0)
runs = {name: [train(make, seed, steps=100) for seed in seeds] for name, make in ways.items()}
rates, losses = ({name: torch.stack([run[i] for run in runs[name]], 1) for name in ways} for i in (0, 1))

# %% tags=["signature"]
panels = ("the learning rate", "the loss")
fig = figure("An SGD that learns its own rate", "step", panels=panels)
for name, color in zip(ways, (GREY, BLUE, VERMILLION), strict=True):
    band(fig, range(1, 101), rates[name], name, color)
    band(fig, range(1, 101), losses[name], name, color, panel=2)
fig.update_layout(yaxis2={"type": "log", "dtick": 1})
card(fig, seeds=seeds)

# %%
early, middle, end = rates["HyperSGD"][0], rates["HyperSGD"][49], rates["HyperSGD"][99]
settled = ((end / middle - 1).abs() < 0.1).all()
outcome("09.rate", options[0] if end.max() < 0.001 else options[1] if settled else options[2])
claim("for each of ten seeds the rate grows more than 200 times", (end > 200 * early).all())
claim("and changes by less than a tenth from step 50 to step 100", settled)
late = {name: losses[name][80:].mean(0) for name in ways}
claim("its loss ends at a tenth of SGD's, or less", (late["HyperSGD"] < 0.1 * late["SGD"]).all())

# %% [markdown]
# ## Explain
#
# While there is a way to go, every batch calls in the same direction: the product of two gradients is positive, and the
# rate grows. Near the goal the gradients are noise, and noise of two batches agrees only by chance: the rate stays.
# Nobody has told it when to stop growing.
#
# ## Negative control: a random arrow
#
# The orange band keeps an arrow of exactly the right length in a random direction. If any arrow would do, it would
# learn as well:

# %%
wrong = witnesses(stride, 0.05, -g1.flatten()[torch.randperm(48, generator=draw)].view(6, 8))
claim("the same numbers in another order are not the slope", (wrong[0] - wrong[1]).abs() > 0.1 * wrong[1].abs())
claim(
    "with a random arrow the rate ends below half of the learned one",
    2 * rates["a random arrow"][99].max() < end.min(),
)

# %% [markdown]
# ## Exercise 2: a third knob ★★
#
# Weight decay λ pulls the weights towards zero: $W_{t-1} = W_{t-2} - \alpha\,(g_{t-1} + \lambda W_{t-2})$. Find its
# arrow, and write its slope. `grad` is the next gradient $g_t$, `before` is $W_{t-2}$, `lr` is α.


# %%
def my_decay_slope(grad, before, lr):
    # region solution
    arrow = -lr * before
    return (grad * arrow).sum()
    # stub
    # raise NotImplementedError("the next gradient times the arrow of weight decay")
    # endregion


check("decay_slope", my_decay_slope)

# %% [markdown]
# ## Predict: the same loss, in other units
#
# Somebody reports the loss in cents instead of euros: every loss, and so every gradient, is 100 times as large. How
# much larger is the first move of the *rate*? And of the *leash*?

# %%
options = ("both 100 times", "the rate 10,000 times, the leash not at all", "neither moves differently")
guess = "the rate 10,000 times, the leash not at all"
predict("09.units", guess, options=options, sure=50)


# %%
def first_moves(scale):
    rates, _, _ = train(lambda named: ftp.HyperSGD(named, lr=0.0, hyper_lr=1e-9), steps=2, scale=scale)
    _, _, leashed = train(lambda named: ftp.SGDP(named, lr=0.01), steps=2, scale=scale)
    return rates[1].item(), leashed.constraints()["W"]


(rate_1, leash_1), (rate_100, leash_100) = first_moves(1.0), first_moves(100.0)
ratio = (round(rate_100 / rate_1), round(leash_100 / leash_1, 3))
outcome("09.units", {(10_000, 1.0): options[1], (100, 100.0): options[0]}.get(ratio, options[2]))

# %%
claim("the rate moves 10,000 times as far: its slope has two gradients in it", ratio[0] == 10_000)
claim("the leash moves as before: Adam divides by the usual size of the slope", ratio[1] == 1)

# %% [markdown]
# That is the practical difference. Eq. 7 moves the knob with plain SGD, and its `hyper_lr` has to be found anew for
# every problem. FTP moves γ with Adam (Alg. 2), and its μ has a plain meaning everywhere: μ = 0.01 is a hundredth of
# leash per step. (What is a good μ still differs: for the digits validation chose 0.1.)
#
# (Beware of one letter: κ in Eq. 7 is the rate of the rate, `hyper_lr` in the kit. κ in Eq. 5 is the benefit of the
# doubt of lesson 04b. They have nothing to do with each other.)
#
# ## Where this stops being true
#
# - **The arrow belongs to the rule.** $-g_{t-1}$ is the arrow of plain SGD. With momentum the step follows the running
#   sum of gradients, and so does the arrow; the cell below shows that Eq. 7 as it stands would be wrong there.
# - **One step ahead.** The slope asks what the *next* batch says. What is good for one step need not be good for a
#   thousand: a hyper-optimizer never takes a detour.
# - **The knob must move slowly.** The old step is not taken again with the new setting. A `hyper_lr` that is too large
#   makes the rate jump, and the last cell shows where that ends.
# - **A slope of 0 is silence.** In the true slope a row within reach of its leash says nothing about γ, as lesson 04
#   showed (the released code lets it speak); a rate has no such dead zone.

# %%
running = 0.9 * torch.func.grad(loss)(wish / 2, batch(draw, wish)) + g1  # what momentum 0.9 has gathered


def with_momentum(alpha):
    return W0 - alpha * running


momentum, plain = witnesses(with_momentum, 0.05, -running), witnesses(with_momentum, 0.05, -g1)
claim("with momentum, the arrow is the running sum", torch.isclose(momentum[0], momentum[1]))
claim("and the last gradient alone is not", not torch.isclose(plain[0], plain[1], rtol=0.001))

# %%
wild = [train(lambda named: ftp.HyperSGD(named, lr=1e-4, hyper_lr=0.1), seed, steps=30)[1] for seed in seeds]
claim(
    "with a hyper_lr far too large, the loss ends at infinity or as no number, for each of ten seeds",
    not any(loss[-1] < float("inf") for loss in wild),
)

# %% [markdown]
# ## What you have seen
#
# ![The learning rate and the loss of SGD, HyperSGD and a random arrow](figures/09_hyper_optimizer.png)
#
# Keep the arrow, wait for the next gradient, multiply. FTP does it with a leash for each layer, HyperSGD with a rate,
# you have done it with weight decay. Watch the leashes of a network learn: `make app`, then the address below.
#
# Before: [08 · Reading the constraints](08_constraints.ipynb). Next: [10 · When it does not help](10_when_not.ipynb).

# %%
print(app_link("live", method="ftp", seed=0))
