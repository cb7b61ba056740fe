# %% [markdown]
# # 03 · Projection by hand
#
# **The question of this lesson:** what exactly does a leash do to a layer that has run too far (Eq. 2, 10), and to
# whom?
#
# - **You will be able to** project a layer of any shape with four lines of code, draw what that does, and say how it
#   differs from the other leashes that people use.
# - **Time:** 30 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 01](01_lipschitz.ipynb): the sum of sizes of a row is what counts. For two sentences also
#   [lesson 02](02_lemmas.ipynb): Lemma 2, and what $L_d$ is.
# - **Exercises:** `shrink_factor` ★ · `project_mars` ★★ · `nearer_point` ★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("project_mars", 1)`, then 2, then 3, then `solution("project_mars")`.

# %%
import math

import torch

import ftp
from ftp.lab import walks
from ftp.lab.exercises import check, hint, solution
from ftp.lab.lesson import BLUE, GREEN, VERMILLION, app_link, begin, card, claim, figure, outcome, predict
from ftp.lipschitz import worst_input

torch.set_default_dtype(torch.float64)
begin("03", seconds=3)

# %% [markdown]
# ## The picture
#
# Every row of a layer is a dog, tied to a post: its pre-trained weights $w_0$, the **anchor**. All dogs of a layer have
# leashes of the same length γ. Training calls, and each dog runs to some $\tilde w$. Then the leash decides:
#
# - a dog within reach stays where it is;
# - a dog beyond reach is pulled straight back towards its post, until it stands at the end of its leash.
#
# How far a dog is from its post is measured in steps along the axes, $|x| + |y| + \dots$, the l1 norm of the row.
# Lesson 01 showed why: that length is the leash on the answers. In symbols, for each row
#
# $$w_p = w_0 + \min\!\left(1, \frac{\gamma}{\|\tilde w - w_0\|_1}\right)(\tilde w - w_0) \qquad \text{(Eq. 10)}$$
#
# (Eq. 2 of the paper is the same formula, printed without the $\min$. For a row beyond reach both say the same; a row
# within reach Eq. 2 would push *out* to the end of its leash. Lesson 04 comes back to that.)
#
# One dog, by hand. It stands at (3, -1), its post is at (0, 0), the leash is 1 long:

# %%
wanted, anchor, gamma = torch.tensor([[3.0, -1.0]]), torch.zeros(1, 2), 1.0
way = wanted - anchor
length = way.abs().sum().item()
print(f"by hand: it is {length:g} away, so it keeps {gamma / length:g} of its way, {(gamma / length * way).tolist()}")
print("the kit says:", ftp.project_mars(wanted, anchor, gamma).round(decimals=6).tolist())

# %% [markdown]
# (The kit divides by the length + 1e-8, so that a row that has not moved at all does not divide by zero. You would see
# it in the ninth digit.)
#
# ## Exercise 1: the factor ★
#
# Which share of its way may each row keep? You get the lengths of the rows, and γ.


# %%
def my_shrink(norms, gamma):
    # region solution
    return (gamma / (norms + 1e-8)).clamp(max=1)
    # stub
    # raise NotImplementedError("min(1, γ / length) for each row")
    # endregion


check("shrink_factor", my_shrink)

# %% [markdown]
# ## Exercise 2: the projection ★★
#
# Now the whole of it. `unconstrained` is where the rows want to be, `anchor` where their posts are. It should also
# work for a convolution, whose weight has shape (out, in, height, width): there a row is a whole output channel.


# %%
def my_project(unconstrained, anchor, gamma):
    # region solution
    way = (unconstrained - anchor).flatten(1)
    length = way.abs().sum(dim=1, keepdim=True)
    factor = (gamma / (length + 1e-8)).clamp(max=1)
    return anchor + (factor * way).reshape(anchor.shape)
    # stub
    # raise NotImplementedError("each row pulled back to within γ of its anchor")
    # endregion


check("project_mars", my_project)

# %% [markdown]
# ## Predict: what happens to the neighbours?
#
# A layer of 50 rows, all within reach. Then one row runs far away. What does the projection do to the other 49?

# %%
options = ("nothing", "all shrink a little", "the nearest shrink most")
guess = "nothing"
predict("03.neighbours", guess, options=options, sure=50)

# %%
draw = torch.Generator().manual_seed(0)
anchor = torch.randn(50, 8, generator=draw)
calm = anchor + 0.1 * torch.randn(50, 8, generator=draw)
wild = calm.clone()
wild[7] += 100
after = ftp.project_mars(wild, anchor, gamma=2.0)
moved = (after != wild).any(dim=1)
outcome("03.neighbours", "nothing" if moved.nonzero().tolist() == [[7]] else "all shrink a little")

# %% [markdown]
# Nothing, not even in the last bit: a row is its own dog. Now the rest of the claim, on a layer whose rows strayed by
# very different amounts.

# %%
stray = torch.logspace(-2, 2, 50).view(-1, 1)
wanted = anchor + stray * torch.randn(50, 8, generator=draw)
gamma = 2.0
kept = ftp.project_mars(wanted, anchor, gamma)
before, now = ftp.row_l1(wanted - anchor), ftp.row_l1(kept - anchor)
print(f"{int((before > gamma).sum())} of 50 rows were beyond reach")

# %%
within = before < gamma
claim("a row within reach stays as it is, bit for bit", torch.equal(kept[within], wanted[within]))
claim("a row beyond reach ends at the end of its leash", torch.allclose(now[~within], torch.tensor(gamma)))
claim("no row ends farther from its anchor than it was", (now <= before).all())
claim("twice is once", torch.allclose(ftp.project_mars(kept, anchor, gamma), kept, rtol=0, atol=1e-7))

# %%
share = (now / before).view(-1, 1)
claim("straight back: each row keeps its direction", torch.allclose(kept - anchor, share * (wanted - anchor)))
jump = ((kept - anchor) @ worst_input(kept - anchor)).abs().max().item()
claim(
    "the worst input of size 1 changes the answers by γ, and so no input by more",
    math.isclose(jump, gamma, rel_tol=1e-6),
)

# %% [markdown]
# The last line is Lemma 2: a leash of length γ on the rows is a leash of length γ on the answers, $L_d$ = γ.
#
# ## See it: MARS beside L2
#
# Two weights per row, so a row is a point. Twenty-four rows stand in a wide circle around one post and are pulled
# back, on the left by the MARS leash (reach: a diamond), on the right by an l2 leash of the same length (reach: a
# circle).

# %% jupyter={"source_hidden": true}
turn = torch.arange(24) * 2 * math.pi / 24 + 0.13
points = 2 * torch.stack([turn.cos(), turn.sin()], dim=1)
post = torch.zeros_like(points)
mars = ftp.project_mars(points, post, 1.0)
l2 = points / points.norm(dim=1, keepdim=True)  # all are outside, so this is the l2 projection
diamond = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0]]
circle = [[math.cos(t / 20), math.sin(t / 20)] for t in range(127)]
left, right = {"xaxis": "x", "yaxis": "y"}, {"xaxis": "x2", "yaxis": "y2"}


# %% jupyter={"source_hidden": true}
def pull(fig, ends, axes):
    for start, end in zip(points, ends, strict=True):
        x, y = torch.stack([start, end]).T.tolist()
        color = GREEN if ftp.row_l1(end) < 1 + 1e-9 else VERMILLION
        marker = {"symbol": ["circle-open", "circle"], "size": [6, 10], "color": color, "opacity": 1}
        fig.add_scatter(x=x, y=y, line_color=color, marker=marker, mode="lines+markers", hoverinfo="skip", **axes)


def reach(fig, corners, axes, **line):
    x, y = torch.tensor(corners).T.tolist()
    fig.add_scatter(x=x, y=y, line={"color": BLUE, "width": 3, **line}, mode="lines", hoverinfo="skip", **axes)


# %% tags=["signature"]
panels = ("MARS leash: |x| + |y| at most γ", "l2 leash: √(x² + y²) at most γ")
fig = figure("Straight back, with two kinds of leash", "first weight", "second weight", height=500, panels=panels)
for ends, corners, axes in ((mars, diamond, left), (l2, circle, right)):
    reach(fig, corners, axes)
    pull(fig, ends, axes)
reach(fig, diamond, right, dash="dot")
fig.update_xaxes(dtick=1).update_yaxes(dtick=1)
fig.update_layout(showlegend=False, yaxis_scaleanchor="x", yaxis2_scaleanchor="x2")
card(fig)

# %% [markdown]
# A green end is within γ by the sum of sizes, an orange one beyond. All ends of the l2 leash are beyond: it lets a row
# that moves *all* its weights a little go much farther. With two weights up to √2 times as far, with m weights √m
# times.

# %%
spread = torch.full((1, 100), 0.1)  # a hundred weights, each moved by 0.1
print(f"l2 length {spread.norm():.0f}, sum of sizes {ftp.mars_norm(spread):.0f}")
claim("on an l2 leash of length 1, a row of 100 weights can change an answer by 10", ftp.mars_norm(spread) > 9.99)

# %% [markdown]
# ## Try it: a leash of any length
#
# Three rows and one post. Move the slider, and the leash gets longer or shorter; the list above the figure shows one
# row alone. Which row is free first, and from which γ on? (The picture holds every position, so it needs no kernel.)

# %%
rows = torch.tensor([[1.5, 0.6], [-0.5, 1.4], [0.4, -0.3]])
card(walks.leash_and_row(rows, lengths=[n / 4 for n in range(1, 11)]))

# %% [markdown]
# The same in space: three weights per row, and the reach of the MARS leash is an octahedron. Turn it with the mouse.

# %% jupyter={"source_hidden": true}
corners = torch.cat([torch.eye(3), -torch.eye(3)])
faces = {"i": [0, 0, 0, 0, 3, 3, 3, 3], "j": [1, 1, 4, 4, 1, 1, 4, 4], "k": [2, 5, 2, 5, 2, 5, 2, 5]}
rim = corners[[0, 1, 2, 4, 5, 1, 3, 4, 0, 2, 3, 5, 0]]  # once along every edge
starts = torch.tensor([[1.5, 0.3, 0.5], [-0.5, -1.3, 0.7], [0.4, -0.3, 1.5], [0.3, -0.3, 0.1]])
ends = ftp.project_mars(starts, torch.zeros_like(starts), 1.0)


def space(fig, points, **style):
    fig.add_scatter3d(**dict(zip("xyz", points.T.tolist(), strict=True)), hoverinfo="skip", **style)


# %% jupyter={"source_hidden": true}
fig = figure("Three weights: the reach is an octahedron", height=520)
fig.add_mesh3d(**dict(zip("xyz", corners.T.tolist(), strict=True)), **faces, color=BLUE, opacity=0.2, hoverinfo="skip")
space(fig, rim, mode="lines", line={"color": BLUE, "width": 4})
for start, end in zip(starts, ends, strict=True):
    color = GREEN if ftp.row_l1(start.view(1, 3)) <= 1 else VERMILLION
    space(fig, torch.stack([start, end]), line={"color": color, "width": 6}, marker={"color": color, "size": [6, 10]})
    space(fig, torch.stack([end, 0 * end]), mode="lines", line={"color": color, "width": 3, "dash": "dot"})

# %%
axis = {"range": [-1.6, 1.6], "dtick": 1, "title": "", "showticklabels": False, "gridcolor": "#C9CED6"}
camera = {"eye": {"x": 0.75, "y": -1.15, "z": 0.5}}
fig.update_layout(showlegend=False, scene={"xaxis": axis, "yaxis": axis, "zaxis": axis, "camera": camera}, margin_t=50)
card(fig)

# %% [markdown]
# Three rows were beyond reach and walked to the surface, each along its own line to the post in the middle. The green
# one was inside and stayed.
#
# ## Negative control: one leash for the whole layer
#
# Would one leash around the whole layer do as well, with the norm of all weights together, as many penalties have it?
# Take the layer from before, where 49 rows behave and one runs away.

# %%
total = (wild - anchor).abs().sum()
whole = anchor + (wild - anchor) * min(1.0, 50 * 2.0 / total)  # 50 rows with a leash of 2 each, tied together
innocent = torch.arange(50) != 7
claim("one leash for all moves rows that never strayed", (whole[innocent] != wild[innocent]).all())
claim("and it still lets the one wild row go far beyond 2", ftp.mars_norm(whole - anchor) > 10)

# %% [markdown]
# It punishes everybody for one, and does not even hold the one: the answers can change by as much as that row moved.
#
# ## Predict: is it the nearest point?
#
# A projection is often defined as the *nearest* allowed point. The row wants to be at (2, 0.5), the post is at (0, 0),
# γ is 1, and FTP puts the row at (0.8, 0.2). Measured with an ordinary ruler (Euclidean length): is there an allowed
# point that is nearer to (2, 0.5)?

# %%
guess = "yes"
predict("03.nearest", guess, options=("no", "yes"), sure=50)

# %% [markdown]
# ## Exercise 3: search ★★
#
# Look for a point (x, y) with |x| + |y| at most 1 that is nearer to (2, 0.5) than (0.8, 0.2) is. Try a few, also if you
# have guessed that there is none.

# %%
# region solution
my_point = (1.0, 0.0)
# stub
# my_point = ...
# endregion

check("nearer_point", my_point)

# %%
wish, chosen, corner = torch.tensor([[2.0, 0.5]]), torch.tensor([[0.8, 0.2]]), torch.tensor([[1.0, 0.0]])
outcome("03.nearest", "yes" if (wish - corner).norm() < (wish - chosen).norm() else "no")
claim("by the Euclidean ruler, the corner of the diamond is nearer", (wish - corner).norm() < (wish - chosen).norm())

# %%
tries = 2 * torch.rand(100_000, 2, generator=torch.Generator().manual_seed(0)) - 1
allowed = tries[ftp.row_l1(tries) <= 1]
nearest = ftp.row_l1(allowed - wish).min()
claim("by the sum of sizes, none of 50,000 allowed points is nearer", nearest >= ftp.row_l1(wish - chosen) - 1e-9)

# %% [markdown]
# **Explain.** By the sum of sizes, the row is 2.5 from its post and may be 1 away, so it must come at least 1.5 nearer;
# straight back does exactly that. (So does the corner: there are many nearest points, and FTP takes one of them.) By
# the Euclidean ruler the corner is nearer, but it would set the second weight to its anchor and so *turn* the row.
# Straight back keeps the direction that training chose, all weights in proportion, and costs one division.
#
# ## Where this stops being true
#
# - **"Never farther" is about the anchor, not about each other.** Two rows can be farther apart after the projection
#   than before. The cell below shows a pair.
# - **The ruler matters.** "None is nearer" is true by the sum of sizes and false by the Euclidean ruler, as you saw.
# - **It says nothing about a network.** Lemma 2 is about one linear layer; between layers there are activations.
# - **γ is given here.** How its length is learned while training is the next story.

# %%
pair = torch.tensor([[1.0, 0.0], [1.0, 0.5]])
pulled = ftp.project_mars(pair, torch.zeros_like(pair), 1.0)
apart = [ftp.row_l1((rows[0] - rows[1]).view(1, -1)).item() for rows in (pair, pulled)]
print(f"apart before: {apart[0]:.2f}, after: {apart[1]:.2f}")
claim("two rows can end farther from each other than they were", apart[1] > apart[0] + 0.1)

# %% [markdown]
# ## What you have seen
#
# ![Rows pulled straight back by a MARS leash and by an l2 leash](figures/03_projection.png)
#
# Each row by itself, straight back, only if it is beyond reach. That is all the projection there is in FTP, and it is
# enough to hold the answers of the layer on a leash of the same length. Move the point yourself: `make app`, then the
# address below.
#
# Before: [02 · Lemma 1 and Lemma 2](02_lemmas.ipynb). Next: [04 · Learning the leash](04_learning_the_leash.ipynb).

# %%
print(app_link("geometry", x=2, y=0.5, gamma=1))
