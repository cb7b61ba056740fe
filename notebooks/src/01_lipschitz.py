# %% [markdown]
# # 01 · Lipschitz, by number
#
# **The question of this lesson:** if the weights of a layer may change by so much, how wildly can its answers change,
# and which input shows it (Eq. 14, 15)?
#
# - **You will be able to** read the constant of a linear layer off its weights, build the input that hurts it most,
#   and tell a proof from an estimate.
# - **Time:** 25 minutes; the cells themselves run in seconds.
# - **Needs:** what a matrix does to a vector, and a little PyTorch. No lesson before this one.
# - **Exercises:** `mars_norm` ★ · `worst_x` ★ · `estimate_constant` ★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Run the cells from top to bottom (Shift + Enter). Where it is your turn, a cell says *not attempted* until you fill
# it in; nothing below breaks meanwhile. Stuck? `hint("mars_norm", 1)`, then 2, then 3, then `solution("mars_norm")`.

# %%
import torch

import ftp
from ftp.lab.exercises import check, hint, solution
from ftp.lab.lesson import BLUE, GREEN, PURPLE, VERMILLION, app_link, band, begin, card, claim, figure, outcome, predict
from ftp.lipschitz import worst_input, worst_pair

torch.set_default_dtype(torch.float64)  # enough digits to say "exactly"
begin("01", seconds=8)

# %% [markdown]
# ## The picture
#
# A pre-trained layer stands at a post. Fine-tuning lets it walk away, on a leash: its weights may change, but only so
# far. That is a statement about *weights*. What we care about are the layer's *answers*: if the weights may change by
# so much, how wildly can the answers change?
#
# Picture a hand that shakes the input. Every entry may move, each by at most 1, all at the same time. The output
# jumps. The longest jump that any shake can cause is the **Lipschitz constant**: the leash on the answers.
#
# In symbols: $W_0$ are the pre-trained weights of a layer, $W_f$ the fine-tuned ones, and $W = W_f - W_0$ is what
# fine-tuning has added; the $d$ in $L_d$ stands for this difference. The size of a vector is its largest entry, signs
# aside (the *max norm*, $\|x\|_\infty$), and sup means the largest value over all pairs of inputs:
#
# $$L_d = \sup_{x \neq x'} \frac{\|W (x - x')\|_\infty}{\|x - x'\|_\infty} \qquad \text{(Eq. 14)}$$
#
# Only the shake $x - x'$ matters, not where it starts. So let us shake a small matrix.

# %%
W = torch.tensor([[3.0, -4.0, 2.0], [1.0, 1.0, -1.0]])
shake = torch.tensor([1.0, 1.0, 1.0])
print("the output moves by", (W @ shake).tolist(), "so its largest entry moves by", (W @ shake).abs().max().item())

# %% [markdown]
# ## Predict
#
# Here are four shakes, all of size 1. Which of them makes the output jump the farthest? Decide before you run on:
# put one of the names in place of the dots, and say how `sure` you are, in percent. The cells below wait for that, and
# what stands there when you first see the answer is the guess that counts. (It is kept in a small
# file on your machine; lesson 11 shows how good your feeling for these things is. `guess = None` skips it.)

# %%
shakes = {
    "all together": [1.0, 1.0, 1.0],
    "the largest weight alone": [0.0, -1.0, 0.0],
    "signs of the first row": [1.0, -1.0, 1.0],
    "signs of the second row": [1.0, 1.0, -1.0],
}
guess = "signs of the first row"
predict("01.which_shake", guess, options=list(shakes), sure=50)

# %%
jumps = {name: (W @ torch.tensor(entries)).abs().max().item() for name, entries in shakes.items()}
for name, jump in jumps.items():
    print(f"{name:26} {jump:.0f}")
outcome("01.which_shake", max(jumps, key=jumps.get))

# %% [markdown]
# Nine. Perhaps another shake does better? Let us try a hundred thousand.

# %%
many = 2 * torch.rand(100_000, 3, generator=torch.Generator().manual_seed(0)) - 1
farthest = (many @ W.T).abs().max()
claim("not one of 100,000 random shakes beats the signs of the first row", farthest <= 9)

# %% [markdown]
# ## Explain
#
# Look at one output, that is, at one row $w$. However you shake,
#
# $$|w_1 s_1 + w_2 s_2 + \dots| \;\le\; |w_1||s_1| + |w_2||s_2| + \dots \;\le\; |w_1| + |w_2| + \dots$$
#
# The first step loses nothing when all terms pull the same way, the second when every $s_j$ goes all the way to 1 or
# -1. Both happen at once when $s_j$ is the **sign of** $w_j$. So a row reaches exactly the sum of its absolute
# values, its *l1 norm*, and the longest row decides for the matrix: the **m**aximum **a**bsolute **r**ow **s**um, MARS.
# In symbols it is $\|W\|_{\infty,\infty}$, and $w^i$ is row $i$.
#
# That is why a leash of length $L_d$ can be checked row by row:
#
# $$\|W\|_{\infty,\infty} \le L_d \iff \|w^i\|_1 \le L_d \text{ for every row } i \qquad \text{(Eq. 15)}$$
#
# ## Exercise 1: the MARS norm ★
#
# Write it for any matrix. One line is enough.


# %%
def my_mars_norm(weight):
    # region solution
    return weight.abs().sum(dim=1).max()
    # stub
    # raise NotImplementedError("the largest absolute row sum of a matrix")
    # endregion


check("mars_norm", my_mars_norm)

# %% [markdown]
# The kit has the same as `ftp.mars_norm`. Torch knows it as the matrix norm of order infinity, written by other
# people for other reasons. A good witness:

# %%
draw = torch.Generator().manual_seed(1)
matrices = [torch.randn(8, 20, generator=draw) for _ in range(100)]
same = [torch.isclose(ftp.mars_norm(M), torch.linalg.matrix_norm(M, torch.inf)) for M in matrices]
claim("ftp.mars_norm and torch's infinity norm agree on 100 random matrices", all(same))

# %% [markdown]
# ## Exercise 2: the worst input ★
#
# Build the input, with entries between -1 and 1, that a matrix answers most strongly. No search: read it off the
# weights.


# %%
def my_worst_x(weight):
    # region solution
    longest = weight[weight.abs().sum(dim=1).argmax()]
    return longest.sign()
    # stub
    # raise NotImplementedError("an input with entries in [-1, 1] that the matrix answers most strongly")
    # endregion


check("worst_x", my_worst_x)

# %%
reached = [(M @ worst_input(M)).abs().max() for M in matrices]
exact = [torch.isclose(top, ftp.mars_norm(M), rtol=1e-12, atol=0) for top, M in zip(reached, matrices, strict=True)]
claim("the MARS norm is reached to 12 digits, so it is the constant and not only a bound", all(exact))

# %% [markdown]
# ## Exercise 3: a constant that you cannot look up ★★
#
# Now the function is a closed box: you may call it, not look inside. All you can do is take the sup of Eq. 14 over
# the pairs that you have. Write that: the steepest of the pairs `(x[i], other[i])`. Rows are inputs; `h` takes a
# whole batch. One trap: two equal points.


# %%
def my_estimate(h, x, other):
    # region solution
    moved = (h(x) - h(other)).abs().amax(dim=1)
    distance = (x - other).abs().amax(dim=1)
    apart = distance > 0
    return (moved[apart] / distance[apart]).max()
    # stub
    # raise NotImplementedError("the largest ratio of moved output to moved input over the given pairs")
    # endregion


check("estimate_constant", my_estimate)

# %% [markdown]
# ## How good is an estimate?
#
# A layer with 256 inputs and 16 outputs. You try 1,000 random shakes and keep the best. Which share of the true
# constant do you find?

# %%
options = ("about 90 %", "about 50 %", "less than 25 %")
guess = "less than 25 %"
predict("01.random_search", guess, options=options, sure=50)

# %% [markdown]
# Three searchers compete, on layers with more and more inputs, over ten seeds: 1,000 random shakes; 1,000 random sign
# vectors; and a search that climbs the gradient of the ratio (`ftp.lipschitz.worst_pair`).


# %%
def shares(inputs, seed):
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(16, inputs, generator=draw)
    tries = 2 * torch.rand(1000, inputs, generator=draw) - 1
    random, signs = ((s @ weight.T).abs().amax(dim=1) / s.abs().amax(dim=1) for s in (tries, tries.sign()))
    climbed = worst_pair(lambda x: x @ weight.T, tries[:8], steps=60, generator=draw)[2]
    return [float(best.max() / ftp.mars_norm(weight)) for best in (random, signs, climbed)]


# %%
seeds, sizes = range(10), [4, 16, 64, 256, 1024]
found = torch.tensor([[shares(inputs, seed) for seed in seeds] for inputs in sizes])  # (sizes, seeds, searchers)
at_256 = found[sizes.index(256), :, 0].mean()
outcome("01.random_search", "less than 25 %" if at_256 < 0.25 else "about 50 %" if at_256 < 0.7 else "about 90 %")

# %% tags=["signature"]
fig = figure("Chance does not find the worst case; the MARS norm knows it", "number of inputs", "share of the constant")
for k, (name, color) in enumerate([("random shakes", BLUE), ("random signs", VERMILLION), ("climbing", PURPLE)]):
    band(fig, sizes, found[:, :, k], name, color)
fig.add_scatter(x=sizes, y=[1] * len(sizes), name="signs of the longest row", line={"color": GREEN, "width": 3})
fig.update_xaxes(type="log", tickvals=sizes).update_yaxes(range=[0, 1.06], tickformat=".0%")
card(fig, seeds=seeds)

# %%
claim("no searcher ever beats the MARS norm", found.max() <= 1 + 1e-12)
random, signs, climbed = found[2:].unbind(dim=2)  # 64 inputs and more
claim("from 256 inputs on, random shakes find less than a quarter of it, on all ten seeds", (random[1:] < 0.25).all())
claim("from 64 inputs on, climbing finds more than random signs, on all ten seeds", (climbed > signs).all())

# %% [markdown]
# **What this means.** Trying inputs gives a *lower* bound: "the constant is at least this". In high dimension chance
# alone finds little of it, because all entries would have to agree at once. Noise that does no harm is therefore no
# proof of robustness. Climbing does much better, yet it stops short of the top, sometimes on a row that is not
# the longest. The norm is one line of arithmetic and says "never more than this".
#
# ## Negative control: would any norm do?
#
# If this lesson were empty talk, another norm would serve as well. Take the sums of the *columns* instead of the rows,
# or the Frobenius norm (the root of the sum of all squares).

# %%
columns, frobenius = W.abs().sum(dim=0).max(), torch.linalg.matrix_norm(W)
jump = (W @ worst_input(W)).abs().max()
print(f"columns: {columns:.0f}   Frobenius: {frobenius:.2f}   the jump: {jump:.0f}")
claim("one input breaks the bound of the column sums, and that of the Frobenius norm", jump > max(columns, frobenius))

# %% [markdown]
# ## Where this stops being true
#
# - **Another ruler, another constant.** Measured by Euclidean length, the constant is the spectral norm, and a sign
#   vector is in general not the worst input. The cell below shows it.
# - **One linear layer only.** For a network the product of its layers' constants is a bound, rarely a tight one. A bias
#   changes nothing: it drops out of every difference. A convolution is a matrix too; at the border its rows are cut
#   short (lesson 02).
# - **All inputs count, also absurd ones.** No photograph is a sign vector. The constant is a promise about every
#   input, not a forecast for yours.

# %%
euclid = torch.linalg.matrix_norm(W, 2)
stretch = [(W @ s).norm() / s.norm() for s in (worst_input(W), torch.linalg.svd(W).Vh[0])]
claim("with the Euclidean ruler the sign vector is not the worst input", stretch[0] < 0.99 * euclid)
claim("with the Euclidean ruler the first singular vector is", torch.isclose(stretch[1], euclid))

# %% [markdown]
# ## What you have seen
#
# ![Share of the constant that each search finds](figures/01_lipschitz.png)
#
# The leash on the answers has an exact length, and it is the length of the longest row of weights. So to keep the
# answers on a leash, keep every *row* on one. Pull at one yourself: start the app with `make app`, then open the
# address below.
#
# Next: [02 · Lemma 1 and Lemma 2](02_lemmas.ipynb).

# %%
print(app_link("geometry", x=1.5, y=0.6, gamma=1))
