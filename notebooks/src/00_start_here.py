# %% [markdown]
# # 00 · Start here
#
# **The question of this lesson:** a network is fine-tuned for a new task. What becomes of everything else that it could
# do, and what does a leash (FTP, Alg. 1) change about it?
#
# - **You will be able to** say what your machine can do with this kit, and read the two numbers that the whole course
#   is about: accuracy *at home* and accuracy *elsewhere*.
# - **Time:** 10 minutes; the cells themselves run for about half a minute.
# - **Needs:** nothing. You can read Python; you have heard of a neural network that is trained.
# - **Exercises:** none. One bet instead.
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# FTP is *Fast Trainable Projection*, the method of a paper (Tian and others, NeurIPS 2023). Numbers such as Alg. 1 are
# that paper's, here and in all lessons; you need not have read it.
#
# Run a cell with Shift+Enter and go down the page. Lines that begin with ✓ have been checked on your machine, just now.

# %%
import statistics

import torch

from ftp.lab import evaluate, lesson, worlds
from ftp.lab.lesson import app_link, band, begin, card, claim, figure, forget, outcome, predict, progress, runs
from ftp.lab.train import finetune

begin("00", seconds=31, full=60)

# %% [markdown]
# ## Is all well here?
#
# The doctor looks at what is installed, then trains for a few steps and says how long things will take on *this*
# machine. It needs a quarter of a minute. The last line should say that all is well.

# %%
lesson.doctor()

# %% [markdown]
# ## The picture
#
# A small network has learned to read printed characters, in many fonts, colours and textures. Somebody hands you that
# network and 3,000 handwritten digits, white on black, and asks you to make it read those. That is **fine-tuning**:
# go on training, on the new images only.
#
# *At home* (in distribution, **ID**) are new images of the same kind as those 3,000. *Elsewhere* (out of distribution,
# **OOD**) are five kinds of digits that you did not train on. Here is home, and below it elsewhere:

# %%
world = worlds.load("digits")
kinds = {"at home": "id", **{name: name for name in world.shifts}}
rows = {title: world.split(name).batch(torch.arange(12))[0] for title, name in kinds.items()}
card(lesson.pictures("What the network is asked to read", rows))

# %% [markdown]
# Is the knowledge there at all, before you fine-tune? Yes: leave the network as it is and train nothing but a new last
# layer on the 3,000 images. That is called a **linear probe**. It is recorded, as are all other methods of the course,
# with ten seeds each. (To train them yourself, set `TRAIN = True`. That is ten runs for each line of the pictures,
# and the doctor has told you how long one run takes.)

# %%
TRAIN = False
probe, plain, leash = (runs(method=name, train=TRAIN) for name in ("linear_probe", "finetune", "ftp"))


def mean(found, name):
    return statistics.mean(run.result[name] for run in found)


claim("with a new last layer alone, it reads more than 19 of 20 digits at home...", mean(probe, "id") > 95, live=TRAIN)
claim("... and about 9 of 10 elsewhere: the knowledge is there", abs(mean(probe, "ood_avg") - 90) < 2, live=TRAIN)

# %% [markdown]
# ## Predict: your bet
#
# Now all layers are trained, as usual: fine-tuning. At home the network gets better, that is what training does. And
# elsewhere, on the five kinds of digits that it could read before?
#
# Put one of the options in place of the dots, say how `sure` you are, in percent, and run the cell. **The lesson waits
# for you:** the cells below show nothing until you have guessed. You may think again until you have seen the answer;
# after that the first guess counts. (`guess = None` goes on without one; `forget("00.elsewhere")` takes a guess back,
# and `forget()` all of them. They stay on this machine, for a picture in lesson 11.)

# %%
options = ("it gets better elsewhere too", "it stays about as it was", "it loses more than five points")
guess = "it loses more than five points"
predict("00.elsewhere", guess, options=options, sure=50)

# %%
lost = mean(probe, "ood_avg") - mean(plain, "ood_avg")
outcome("00.elsewhere", options[2] if lost > 5 else options[0] if lost < -2 else options[1])
claim(
    "fine-tuning is better at home than the new last layer alone", mean(plain, "id") > mean(probe, "id") + 2, live=TRAIN
)
claim("and reads at least 6 points less elsewhere: it forgets", lost > 6, live=TRAIN)

# %% [markdown]
# So what would you give up: the new task, or what the network could do before? FTP is a fine-tuning that ties every
# layer to its pre-trained weights with a leash, and learns while it trains how long each leash should be. Here is
# how the two run, on the way to their end. A line is the mean of ten seeds; the band goes from the lowest to the
# highest seed.

# %% jupyter={"source_hidden": true}
SHIFTS = world.shifts


def on_the_way(found, names):
    """The steps of the small evaluations, and for each step one value for each seed."""
    steps = [event.step for event in found[0].evals if not event.final]
    at = [[next(e for e in run.evals if e.step == step) for run in found] for step in steps]
    return steps, [[statistics.mean(e.main[name] for name in names) for e in events] for events in at]


end = on_the_way(plain, ("id",))[0][-1]
DASHED = {"color": lesson.method_color("linear_probe"), "dash": "dash", "width": 3}


# %% tags=["signature"]
panels = ("at home", "elsewhere, mean of five shifts")
fig = figure("Fine-tuning forgets, FTP keeps", "training step", "digits read (%)", height=460, panels=panels)
for panel, names in ((1, ("id",)), (2, SHIFTS)):
    for title, records, method in (("fine-tuning", plain, "finetune"), ("FTP", leash, "ftp")):
        band(fig, *on_the_way(records, names), title, lesson.method_color(method), panel=panel)
for axis, name in (("", "id"), ("2", "ood_avg")):
    place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "showlegend": not axis, "mode": "lines"}
    fig.add_scatter(x=[0, end], y=[mean(probe, name)] * 2, name="new last layer alone", line=DASHED, **place)
fig.update_yaxes(range=[55, 101])
card(fig, seeds=range(10), live=TRAIN)

# %% [markdown]
# Both begin near 10 %, below the picture, because the last layer is new and random. So do not compare with the start
# but with the dashed line, the network that was left as it is: who ends near it, and who below? (On the way, 200 images
# from home and 100 of each kind are read. At the end all are, 1,500 from home: there the numbers are a little lower,
# and they count.)

# %%
for title, found in (("new last layer", probe), ("fine-tuning", plain), ("FTP", leash)):
    print(f"{title:14s} {mean(found, 'id'):5.1f} % at home, {mean(found, 'ood_avg'):5.1f} % elsewhere")

# %%
ahead = mean(leash, "ood_avg") - mean(plain, "ood_avg")
claim("elsewhere FTP reads at least 8 points more than fine-tuning", ahead > 8, live=TRAIN)
claim("at home it is within one point of fine-tuning", abs(mean(leash, "id") - mean(plain, "id")) < 1, live=TRAIN)
claim(
    "at home it is more than a point better than the new last layer",
    mean(leash, "id") > mean(probe, "id") + 1,
    live=TRAIN,
)
within = abs(mean(leash, "ood_avg") - mean(probe, "ood_avg"))
claim("elsewhere it is within 2 points of the network that was left as it is", within < 2, live=TRAIN)

# %% [markdown]
# ## See it happen, live
#
# Recordings are easy to fake. So now your machine really trains: a fifth of a run of each, with two seeds. With 60
# steps that is 240 steps in all, and the longest wait of this lesson (the doctor has told you what a step takes). Watch
# two things: what is read elsewhere, and how far the weights walk away from where they were. (Lesson 01 says how that
# distance is measured.)

# %%
STEPS = 60


def train(method, seed):
    """Train for a fifth of a run; returns how far the weights are on the way, and what is read at the end."""
    run = finetune("digits", method, {"steps": STEPS, "seed": seed}, watches=0, evaluate_at_end=False)
    start, *points = run
    convolutions = [place for place, name in enumerate(start.layers) if "conv" in name]
    far = [statistics.mean(point.distance[place] for place in convolutions) for point in points]
    read = evaluate.watch(run.model, world, STEPS).main
    return [point.step for point in points], far, statistics.mean(read[name] for name in SHIFTS)


# %%
live = {method: [train(method, seed) for seed in (0, 1)] for method in ("finetune", "ftp")}
far = {method: list(zip(*(walk for _, walk, _ in found), strict=True)) for method, found in live.items()}
read = {method: statistics.mean(value for _, _, value in found) for method, found in live.items()}

# %%
print(f"elsewhere: fine-tuning reads {read['finetune']:.0f} %, FTP {read['ftp']:.0f} %")
claim("after a fifth of a run FTP already reads more elsewhere", read["ftp"] > read["finetune"])
ratio = min(far["finetune"][-1]) / max(far["ftp"][-1])
claim("the weights of fine-tuning have walked more than half as far again", ratio > 1.5)

# %%
fig = figure("How far the weights are from where they began", "training step", "mean distance of a layer")
for title, method in (("fine-tuning", "finetune"), ("FTP", "ftp")):
    band(fig, live[method][0][0], far[method], title, lesson.method_color(method))
card(fig, seeds=(0, 1))

# %% [markdown]
# **Explain.** Both move their weights to fit the new images. Fine-tuning walks far in its first steps, because nothing
# holds it, and much of what the old weights knew is written over. FTP's leashes grow only as far as the new task asks.
# How a leash is measured, why it holds, and who decides how long it should be is what the lessons are about.
#
# ## Negative control: is the learning rate to blame?
#
# Perhaps fine-tuning was just too hasty? Every method's learning rate was chosen by the accuracy at home, as is usual,
# and that gave FTP half of what it gave fine-tuning. A fair rival walks at FTP's own pace, without a leash: fine-tuning
# at half its rate.

# %%
gentle = runs("gentle", train=TRAIN)
claim("this rival has the learning rate of FTP", gentle[0].settings.lr == leash[0].settings.lr, live=TRAIN)
claim(
    "half the learning rate changes less than half a point at home",
    abs(mean(gentle, "id") - mean(plain, "id")) < 0.5,
    live=TRAIN,
)
claim("it forgets less...", mean(gentle, "ood_avg") > mean(plain, "ood_avg") + 5, live=TRAIN)
claim("... and FTP still reads at least a point more", mean(leash, "ood_avg") > mean(gentle, "ood_avg") + 1, live=TRAIN)

# %% [markdown]
# Then slower still: a quarter of its rate, and an eighth.

# %%
slower = {"a quarter": runs("quarter", train=TRAIN), "an eighth": runs("eighth", train=TRAIN)}
for name, found in {"half": gentle, **slower}.items():
    print(f"{name:10s} of the rate: {mean(found, 'id'):5.1f} % at home, {mean(found, 'ood_avg'):5.1f} % elsewhere")
best = max(mean(found, "ood_avg") for found in (gentle, *slower.values()))
claim("FTP reads at least half a point more than each of the three", mean(leash, "ood_avg") > best + 0.5, live=TRAIN)
quarter, eighth = (mean(found, "ood_avg") for found in slower.values())
claim("an eighth of the rate reads no more elsewhere than a quarter", eighth <= quarter, live=TRAIN)

# %%
fig = figure("Ten seeds of each, at the end", "digits read at home (%)", "elsewhere (%)")
rivals = {"new last layer": probe, "fine-tuning": plain, "half the rate": gentle}
rivals |= {f"{name} of the rate": found for name, found in slower.items()}
plain_and_gentle = ("#000000", "#4D4D4D", "#858585", "#B8B8B8")  # the slower, the lighter
colors = (lesson.method_color("linear_probe"), *plain_and_gentle, lesson.method_color("ftp"))
for (title, found), color in zip({**rivals, "FTP": leash}.items(), colors, strict=True):
    x, y = ([run.result[name] for run in found] for name in ("id", "ood_avg"))
    fig.add_scatter(x=x, y=y, name=title, mode="markers", marker={"color": color, "size": 10, "opacity": 0.8})
card(fig, seeds=range(10), live=TRAIN)

# %% [markdown]
# The rate is to blame for most of it: a gentler hand keeps most of what was lost, and the leash itself adds the last
# points. They do not come from going slower still: at none of the four rates shown does a network without a leash read
# as much elsewhere as FTP.
# And nobody tells you beforehand how gentle to be. Whoever looks at home alone takes the hasty rate, which is a little
# better there. With FTP, whoever looks at home alone keeps what is elsewhere.
#
# ## Where this stops being true
#
# - **This is a small world:** 32 pixels, ten digits, minutes. It was made so that you can see the effect; how large it
#   is for your network and your data, only your network and your data can tell.
# - **The network must know something worth keeping.** If the pre-trained weights are bad, a leash holds you back.
# - **If you only ever stay at home,** fine-tuning is simpler, and a third of a point better there.
# - **Other methods keep much too.** How FTP compares with ten of them is lesson 06.
#
# ## What you have seen
#
# ![Digits read at home and elsewhere while two networks are trained](figures/00_start_here.png)
#
# Fine-tuning forgets, FTP keeps, and at home the two are nearly equal. To see them run beside each other, with every
# layer: `make app`, then the address below.
#
# Next: [01 · Lipschitz, by number](01_lipschitz.ipynb). How far you are in the course is asked like this, here or in a
# terminal with `ftp-lab progress`:

# %%
progress()

# %%
print(app_link("live", run=leash[0].run_id, other=plain[0].run_id))
