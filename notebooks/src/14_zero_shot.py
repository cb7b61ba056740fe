# %% [markdown]
# # 14 · Zero-shot, WiSE and FTP
#
# **The question of this lesson:** a network can name things before anyone has shown it the task. Fine-tuning makes it
# better at home. What does it cost elsewhere, and can one have both, by mixing the two networks weight by weight?
#
# - **You will be able to** find pictures by your own words, build a head out of words, interpolate two networks and say
#   what the ends must be, choose α without looking at the shifts, and name two cases in which mixing weights fails.
# - **Time:** 40 minutes; the cells themselves run in half a minute, from recorded runs and a few live steps.
# - **Needs:** [lesson 06](06_corrupt.ipynb): what a shift costs. [Lesson 10](10_when_not.ipynb): when a difference is
#   more than chance.
# - **Exercises:** `zero_shot_head` ★★ · `choose_alpha` ★★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("choose_alpha", 1)`, then 2, then 3, then `solution("choose_alpha")`.

# %%
from statistics import fmean

import torch
from IPython.display import Markdown

from ftp.lab import alpha as rules
from ftp.lab import evaluate, robustness, table, worlds
from ftp.lab.emoji.words import TEMPLATES, read
from ftp.lab.exercises import check, hint, solution
from ftp.lab.exercises.zero_shot_head import looped
from ftp.lab.figures import draw

# %%
from ftp.lab.lesson import app_link, begin, card, claim, outcome, pictures, predict
from ftp.lab.models.caption_model import zero_shot_head
from ftp.lab.noise import beyond_noise, paired
from ftp.lab.record import LabError
from ftp.lab.recordings import by_method, recorded
from ftp.lab.recordings.extras import extra
from ftp.lab.train import finetune
from ftp.lab.wise import interpolate
from ftp.lab.worlds.captions import towers

# %%
TRAIN = False  # this lesson replays; your own runs: ftp-lab table captions --seeds 5
torch.set_num_threads(1)  # a network as small as this is slower on two
begin("14", seconds=30)

# %% [markdown]
# ## The picture
#
# A child has looked at picture books by five illustrators, and somebody read the words under the pictures. Now a sixth
# illustrator draws a tiger, and the child says "tiger". Nobody ever trained it to tell 150 things apart: it compares
# what it sees with what the words mean to it.
#
# Two networks do the same here. One turns a picture into 64 numbers $f$, the other a caption into 64 numbers $t$, and
# both were trained until a picture lies near its own caption (CLIP, in miniature: 1,410 emoji by five artists). A class
# $c$ is then nothing but its name, and
#
# $$\text{logit}_c = s \cdot \cos(f, t_c)$$
#
# with one learned scale $s$. This is the paper's Tab. 3 and Fig. 3: there CLIP and ImageNet, here emoji.
#
# **Type a word.** Change the caption, run the cell, and see which of 300 pictures by the artist *nobody has shown it*
# lie nearest to your words.

# %%
world, both = worlds.load("captions"), towers()
shown = {artist: world.split(artist).batch(torch.arange(300)) for artist in (world.home, "fluent_3d")}
with torch.no_grad():
    seen = {artist: both.encode_pictures(pixels) for artist, (pixels, _) in shown.items()}


def nearest(caption, artist, count=10):
    cosines = seen[artist] @ both.encode_text([caption])[0]
    return shown[artist][0][cosines.topk(count).indices]


# %%
caption = "a car"  # your own words
print(read(caption).remark or "every word is known")
card(pictures(f"Nearest to “{caption}”", {a: nearest(caption, a).detach() for a in shown}), seeds=0)

# %% [markdown]
# Try `star`, `a cat`, then `a drink`, `snow`: words that name a thing find it, words for a kind of thing often do not.
# The text tower is small, and mostly a closed table of words. It tells you which of yours are not in it:

# %%
print(read("a purple tyger").remark)
for text in ("", "qwertz"):
    try:
        read(text)
    except LabError as error:
        print(error)

# %% [markdown]
# ## Exercise 1: a head made of words ★★
#
# One sentence is a noisy witness for a name, so eight are asked: "a picture of a tiger", "this is a tiger", ... For
# each class: give every vector the length 1, take the mean over the templates, give that the length 1 again, multiply
# by the scale. `vectors` has the shape (classes, templates, numbers).


# %%
def my_zero_shot_head(vectors, scale):
    # region solution
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    mean = unit.mean(dim=1)
    return scale * mean / mean.norm(dim=-1, keepdim=True)
    # stub
    # raise NotImplementedError("normalise each vector, take the mean over the templates, normalise again, scale")
    # endregion


check("zero_shot_head", my_zero_shot_head)

# %%
texts = [template.format(name=name) for name in world.classes for template in TEMPLATES]
with torch.no_grad():
    vectors = both.encode_text(texts).view(len(world.classes), len(TEMPLATES), -1)
    scale = both.logit_scale.exp().item()
head = zero_shot_head(both, world.classes)
truth = torch.tensor(looped(vectors, scale))
claim("the kit's head is that of a loop over names and templates", torch.allclose(head, truth, atol=1e-4))
claim("every row of it is as long as the scale", torch.allclose(head.norm(dim=1), torch.tensor(scale)))

# %% [markdown]
# The scale is *in* the head, as in CLIP and WiSE. That matters for FTP, which puts a leash on the head, too: a leash
# grows by about the same length at every step, and the longer the rows of the head, the less that length turns them.
#
# **Predict.** 150 things, so chance is 0.7 %. How often is this head right on Fluent 3D, an artist whom nobody has
# shown it?

# %%
options = ("below 10 %", "10 to 50 %", "above 50 %")
guess = "above 50 %"
predict("14.unseen", guess, options=options, sure=60)

# %%
right = {a: (seen[a] @ head.T).argmax(1).eq(shown[a][1]).float().mean().item() for a in shown}
outcome("14.unseen", options[(right["fluent_3d"] > 0.1) + (right["fluent_3d"] > 0.5)])
claim("zero-shot is right in more than half of the pictures of the artist nobody showed it", right["fluent_3d"] > 0.5)
claim("and more often at home than there", right[world.home] > right["fluent_3d"])

# %% [markdown]
# **Explain.** "Zero-shot" says that no picture of the *task* was labelled. The things themselves were in the books, by
# five other hands: it is the hand that is new, not the tiger. CLIP's 400 million pictures had cats in them, too.
#
# ## Fine-tune it on one artist
#
# Fine-tuning sees Noto alone, in fresh scenes. Every layer is anchored, the head of words too. Whole runs of six
# methods were recorded:

# %%
runs = by_method(recorded("captions"))
SEEDS = [run.settings.seed for run in runs["ftp"]]
curves = [rules.from_dict(row) for row in extra("wise", "captions")["curves"]]
home = {name: [run.result["id"] for run in many] for name, many in runs.items()}
away = {name: [run.result["ood_avg"] for run in many] for name, many in runs.items()}

# %% [markdown]
# **Predict.** Fine-tuned on Noto, the network gets much better on Noto. And on the mean of the five other artists,
# compared with zero-shot?

# %%
options = ("better there, too", "within 2 points", "worse by more than 2 points")
guess = "worse by more than 2 points"
predict("14.cost", guess, options=options, sure=60)

# %%
change = fmean(away["finetune"]) - fmean(away["zero_shot"])
outcome("14.cost", options[0 if change > 2 else 2 if change < -2 else 1])
for method in ("finetune", "ftp"):
    gains = [fmean(scores[method]) - fmean(scores["zero_shot"]) for scores in (home, away)]
    print(f"{method} minus zero-shot: {gains[0]:+.0f} points at home, {gains[1]:+.0f} on the shifts")
won = [a - b for a, b in zip(home["finetune"], home["zero_shot"], strict=True)]
claim("fine-tuning gains more than 5 points at home", min(won) > 5, live=TRAIN)

# %% [markdown]
# ## Interpolate by hand
#
# WiSE mixes the zero-shot network $W_0$ and the fine-tuned one $W$, weight by weight and name by name, the head too
# (here α is that share, not a learning rate):
#
# $$W(\alpha) = (1 - \alpha)\,W_0 + \alpha\,W$$
#
# A short live run gives a $W$ to mix:

# %%
short = finetune("captions", "finetune", {"steps": 8}, watches=0, evaluate_at_end=False, device="cpu")
list(short)
start, end = world.model(0).state_dict(), short.model.state_dict()
halfway = {name: 0.5 * start[name] + 0.5 * end[name] for name in end}
kits = interpolate(start, end, 0.5)
claim("the kit's point at α = 0.5 is the one by hand", all(torch.allclose(kits[n], halfway[n]) for n in end))

# %%
for alpha, network in ((0.0, start), (1.0, end)):
    point = interpolate(start, end, alpha)
    same = all(torch.equal(point[name].view(torch.int32), network[name].view(torch.int32)) for name in network)
    claim(f"at α = {alpha:g} it is that network, bit for bit", same)

# %% [markdown]
# **Predict.** Halfway, at α = 0.5, which share of what home gains is there, and which share of what the shifts lose?

# %%
options = ("half and half", "more of the gain than of the loss", "more of the loss than of the gain")
guess = "more of the gain than of the loss"
predict("14.half", guess, options=options, sure=50)


# %%
def share(values, alphas):
    return (values[alphas.index(0.5)] - values[0]) / (values[-1] - values[0])


plain = [curve for curve in curves if curve.method == "finetune"]
gained = [share(curve.id, curve.alphas) for curve in plain]
lost = [share(curve.ood_avg, curve.alphas) for curve in plain]
outcome("14.half", options[{0: 0, 1: 1, -1: 2}[beyond_noise(gained, lost)]])
claim("halfway, more of the gain is there than of the loss", beyond_noise(gained, lost) == 1, live=TRAIN)

# %%
card(draw("wise_curve", [curve for curve in curves if curve.seed == SEEDS[0]]), seeds=SEEDS[0], live=False)

# %% [markdown]
# **Explain.** Mixing weights is nearly like asking both networks and taking the mean of their logits. What both agree
# on survives, and where they disagree it is mostly the surer one that wins. The short run shows it, on Fluent 3D:

# %%
says = {}
for alpha in (0.0, 0.5, 1.0):
    network = world.model(0).eval()
    network.load_state_dict(interpolate(start, end, alpha))
    with torch.no_grad():
        says[alpha] = network(shown["fluent_3d"][0])
both_say = (says[0.0] + says[1.0]).argmax(1)
same = (says[0.5].argmax(1) == both_say).float().mean().item()
claim("in more than nine of ten pictures, halfway says what the mean of both ends says", same > 0.9)

# %% [markdown]
# ## Choose α without looking
#
# The paper took the α with the best mean over *all* its sets, the shifts among them. Nobody has labelled pictures of a
# shift that is still to come; what one has is validation at home. Its best point lies near α = 1, because home gets
# better nearly all the way. A more careful rule: **the smallest α whose validation score is within one standard error
# of the best one.**
#
# ## Exercise 2: choose α ★★
#
# `alphas` are the shares that were tried, `val` the validation score of each, `error` the standard error of each score:
# three lists of equal length.


# %%
def my_choose_alpha(alphas, val, error):
    # region solution
    best = val.index(max(val))
    good_enough = [a for a, score in zip(alphas, val, strict=True) if val[best] - score <= error[best]]
    return min(good_enough)
    # stub
    # raise NotImplementedError("the smallest alpha whose validation score is within one error of the best")
    # endregion


check("choose_alpha", my_choose_alpha)

# %% [markdown]
# **Predict.** Which rule ends nearest to the pre-trained network, on average over the seeds of fine-tuning?

# %%
options = ("best validation", "one standard error", "best mean of all sets")
guess = "best mean of all sets"
predict("14.rule", guess, options=options, sure=50)

# %%
chosen = {name: [rules.RULES[name].choose(c) for c in plain] for name in ("best_val", "one_error", "best_mean")}
order = dict(zip(chosen, options, strict=True))
outcome("14.rule", order[min(chosen, key=lambda name: fmean(chosen[name]))])
pairs = list(zip(chosen["one_error"], chosen["best_val"], strict=True))
claim("one standard error never goes farther from W0 than best validation", all(a <= b for a, b in pairs), live=TRAIN)
too_far = beyond_noise(chosen["best_val"], chosen["best_mean"]) == 1
claim("best validation goes farther than whoever could see the shifts", too_far, live=TRAIN)

# %% [markdown]
# **Explain.** Validation sees what is won at home and nothing of what is lost elsewhere; a rule that looks at it alone
# can step back only as far as home does not notice. How much the rest is worth depends on shifts that nobody has seen
# yet.
#
# ## Whose way is better?
#
# **Predict.** WiSE-FTP against WiSE-FT, each at its best mean of all sets, as in the paper: whose mean is higher?

# %%
options = ("WiSE-FTP's", "these seeds cannot tell", "WiSE-FT's")
guess = "these seeds cannot tell"
predict("14.wise", guess, options=options, sure=40)

# %%
best = {m: [max(rules.all_sets(c)) for c in curves if c.method == m] for m in ("finetune", "ftp")}
outcome("14.wise", {1: options[0], 0: options[1], -1: options[2]}[beyond_noise(best["ftp"], best["finetune"])])
gap, error = paired(best["ftp"], best["finetune"])
print(f"WiSE-FTP minus WiSE-FT, mean of all sets: {gap:+.1f} points, standard error {error:.1f}")
claim("their best means differ by less than a point", abs(gap) < 1, live=TRAIN)
flat = {m: [c.ood_avg[0] - c.ood_avg[-1] for c in curves if c.method == m] for m in best}
less = max(flat["ftp"]) < min(flat["finetune"])
claim("but without mixing FTP has lost less on the shifts, in each seed", less, live=TRAIN)

# %% [markdown]
# **Explain.** Mixing is the great equaliser. At its best point a network that strayed far has walked most of the way
# back, and one on a leash had less to walk back: they meet. That best point was chosen by somebody who saw the shifts.
# A leash helps those who cannot see them: compare the ends of the two ways, and the rows by home validation below.

# %% [markdown]
# ## The table
#
# Means over the recorded seeds. Each WiSE row is there twice: as the paper chose α, and by home validation alone.

# %%
by_run = {curve.run_id: curve for curve in curves}
every = [run for many in runs.values() for run in many]
rows = table.rows(every, lambda group: rules.rows_of(group, by_run))
Markdown(table.to_markdown(rows))

# %% [markdown]
# ## Negative control: break it
#
# **Two strangers.** Mixing needs a way on which nothing breaks. $W$ began at $W_0$, so there is one. Mix two networks
# that were pre-trained with *different seeds*: both can name emoji, and their hidden channels mean different things.

# %%
stranger = worlds.load("captions", {"pretrained": "second"}).model(0)
other, broken = stranger.state_dict(), worlds.load("captions").model(0)
score = {}
for alpha in (0.0, 0.5, 1.0):
    broken.load_state_dict(interpolate(start, other, alpha))
    score[alpha] = evaluate.score(broken, world, world.home, 200).main
left = score[0.5] / min(score[0.0], score[1.0])
claim("halfway between two pre-trainings, less than a fifth of the worse end is left", left < 0.2)

# %% [markdown]
# **Averaged statistics.** BatchNorm keeps the mean and variance that it has measured. WiSE averages these numbers too,
# and they are not what the averaged network would measure: its channels vary less, so every layer passes on a weaker
# signal. Eight layers, two networks, their average, before and after measuring again:


# %%
def tower(seed):
    torch.manual_seed(seed)
    layers = [[torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64, momentum=None)] for _ in range(8)]
    return torch.nn.Sequential(*[layer for pair in layers for layer in pair])


def measured(network, x):
    for layer in network[1::2]:
        layer.reset_running_stats()
    network.train()(x)
    return network.eval()


# %%
x = torch.randn(2000, 64, generator=torch.Generator().manual_seed(14))
ends = [measured(tower(seed), x).state_dict() for seed in (0, 1)]
middle = tower(2).eval()
middle.load_state_dict(interpolate(*ends, 0.5))
averaged = middle(x).std(0).mean().item()
again = measured(middle, x)(x).std(0).mean().item()
claim("with averaged statistics less than a fifth of the signal is left after eight layers", averaged < 0.2)
claim("measured again, all of it", abs(again - 1) < 0.01)

# %% [markdown]
# The emoji network has GroupNorm, which keeps no statistics, and CLIP has LayerNorm: nothing to average wrongly.
#
# ## What is robust, and what is only better?
#
# A model that is better at home is usually better elsewhere, too. Models that saw nothing but home lie near one line
# (on axes of log p / (1 - p), on which 99 and 99.9 % are about as far apart as 90 and 99), and *effective robustness*
# (Taori et al. 2020) is how far above it a model stands. So it needs such models: eight networks from random weights,
# trained on Noto alone, for 400 to 3,200 steps; fine-tuning takes 200.
#
# **Predict.** Take fine-tuning, which lost so much on the shifts. Against a network of its own home accuracy that has
# never seen another artist, it is ...

# %%
options = ("below that line", "within 2 points of it", "above it")
guess = "above it"
predict("14.line", guess, options=options, sure=50)

# %%
line = robustness.line_of("captions")
heights = {m: [line.above(*pair) for pair in zip(home[m], away[m], strict=True)] for m in runs}
rho = fmean(heights["finetune"])
outcome("14.line", options[0 if rho < -2 else 2 if rho > 2 else 1])
for method, values in heights.items():
    print(f"{method:>12}: {fmean(values):+5.1f} points above the line")
ahead = min(heights["finetune"]) > 2
claim("fine-tuning is more than 2 points above the line of models that saw Noto alone", ahead, live=TRAIN)
more = [a - b for a, b in zip(heights["ftp"], heights["finetune"], strict=True)]
claim("FTP is above it by more, in each seed", min(more) > 0, live=TRAIN)

# %% [markdown]
# **Explain.** Even a network that has forgotten a lot knows more than one that never knew it. Forgetting is measured
# against where one began, robustness against what home accuracy alone would buy; do not take one for the other. The
# line ends where its best model does: farther to the right it is only continued.
#
# ## Both ways in one picture

# %% tags=["signature"]
card(draw("wise_curve", curves), seeds=SEEDS, live=False)

# %% [markdown]
# ## Where this stops being true
#
# - **One home, five hands, 150 things**, and a model of a third of a million weights. The paper's has 86 million.
# - **Where nothing is worth keeping** WiSE keeps nothing: α = 0 must be a model that can already do the task.
# - **The rule with one standard error depends on how many validation pictures there are**: with more of them it goes
#   farther from $W_0$, because home can tell more apart.
# - **Which order comes out** depends on the learning rate that validation chose. With a quarter of it, fine-tuning
#   keeps most of what it knew, and little is left of FTP's lead elsewhere; the cell below shows it.
#   [docs/captions.md](../docs/captions.md) has more settings, two pre-trainings, and what does not hold there.
# - **At the paper's size:** `ftp-lab table imagenet_clip --set data=PATH`; it begins by naming what the paper leaves
#   open.

# %%
gentle = recorded("captions", "finetune", group="gentle")
for at, where in (("id", "at home"), ("ood_avg", "elsewhere")):
    gap, error = paired([run.result[at] for run in runs["ftp"]], [run.result[at] for run in gentle])
    print(f"FTP minus fine-tuning at a quarter of the rate, {where}: {gap:+.1f} points, standard error {error:.1f}")

# %% [markdown]
# ## What you have seen
#
# ![Home and the other artists on the way from the zero-shot to the fine-tuned network](figures/14_zero_shot.png)
#
# Words make a head. Fine-tuning sells some of what the words knew; a leash and a mixture of weights give some back; and
# the α of a paper's table was chosen by somebody who saw the shifts. Ask the networks yourself, and move α: `make app`,
# then the addresses below.
#
# Before: [13 · Ten alphabets in a row](13_stream.ipynb). Next: [15 · Dense tasks](15_dense.ipynb).

# %%
print(app_link("ask", world="captions"))
print(app_link("wise", world="captions"))
