# %% [markdown]
# # 11 · Your model, your data
#
# **The question of this lesson:** how does FTP go into a training loop of your own, and what would your report have to
# say so that a sceptic believes it?
#
# - **You will be able to** put `ftp` into your loop, on a GPU if there is one, save and resume it, avoid two traps,
#   and write a page that a sceptical reader believes.
# - **Time:** 40 minutes; the cells themselves run in seconds.
# - **Needs:** [lesson 05](05_build_sgdp.ipynb), or the patience to take SGDP as it comes.
# - **Exercises:** `checkpoint` ★★ · `report_row` ★★ · `report` ★
# - **Words:** the [glossary](GLOSSARY.md) maps the course's words to the usual ones and to the API.
#
# Stuck in an exercise? `hint("checkpoint", 1)`, then 2, then 3, then `solution("checkpoint")`.

# %%
import io
import warnings

import torch
from IPython.display import Markdown
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ftp
from ftp.lab.exercises import check, hint, solution

# %%
from ftp.lab.exercises.checkpoint import Run
from ftp.lab.exercises.report import page
from ftp.lab.exercises.report_row import row
from ftp.lab.lesson import BLUE, GREY, VERMILLION, app_link, band, begin, card, claim, figure, outcome, predict
from ftp.lab.noise import paired
from ftp.lab.predictions import calibration

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # layers as small as these are slower on two
begin("11", seconds=23)

# %% [markdown]
# ## The picture
#
# You bring the dog, trained by somebody else, and a new park. Three things are left to do:
#
# 1. **Drive in the posts** where the dog stands *when the walk begins*: at its first step the optimizer takes the
#    weights that it finds as the anchor $W_0$. So load the pre-trained weights before that.
# 2. **Let the new parts run free.** A head that was made a minute ago has nothing to be tied to.
# 3. **Walk as you always do.** Your loop stays as it is: every `step` is one step of Alg. 1.
#
# $$W_t = \Pi\big(\tilde W_t,\; W_0,\; \gamma_t\big) \qquad \text{(Alg. 1, Eq. 2)}$$
#
# ## Your data
#
# Any dataset will do. Here: 1,797 handwritten digits of 8 x 8 pixels, in four heaps. The first is for the people who
# pre-train; the other three are yours.

# %%
digits = load_digits()
pixels, labels = torch.tensor(digits.images).float().flatten(1) / 16, torch.tensor(digits.target)
order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
heaps = [TensorDataset(pixels[i], labels[i]) for i in order.split([1000, 200, 200, 397])]
pretrain, train, val, test = heaps
print({name: len(heap) for name, heap in zip(("pretrain", "train", "val", "test"), heaps, strict=True)})

# %% [markdown]
# ## Your model
#
# Any `nn.Module` will do. Here a small one with a `body` and a `head`. The people who pre-train show it digits in many
# looks: dark on light and light on dark, faint, noisy.


# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.body(x))


# %%
def many_looks(x, draw):
    turned = torch.where(torch.rand(len(x), 1, generator=draw) < 0.5, 1 - x, x)
    faint = turned * (0.3 + 0.7 * torch.rand(len(x), 1, generator=draw))
    return faint + 0.3 * torch.rand(len(x), 1, generator=draw) * torch.randn(x.shape, generator=draw)


def one_step(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
    optimizer.step()


# %%
torch.manual_seed(2023)
draw, net = torch.Generator().manual_seed(0), Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for _ in range(50):
    for x, y in DataLoader(pretrain, batch_size=64, shuffle=True, generator=draw):
        one_step(net, optimizer, many_looks(x, draw), y)
pretrained = net.body.state_dict()  # this is what you would download

# %% [markdown]
# ## Your loop, and the one line
#
# You have 200 clean digits, and fine-tune on them. The loop is the one that everybody writes. The line that changes is
# the one that builds the optimizer: parameters come *with their names*, and `exclude_set` says who runs free.
#
# | argument | in the paper | what it does | default |
# |---|---|---|---|
# | `exclude_set` | | names or patterns of what runs free | nothing does |
# | `k` | κ, Eq. 5 | how much a wish to *shorten* the leash counts, 0 to 1 | 1.0 |
# | `gamma_lr` | μ, Alg. 2 | how fast a leash changes its length | 0.01 |
# | `anchors` | $W_0$, Alg. 1 | where the posts are, by name | the weights at the first step |
#
# The base rule has the arguments of `torch.optim.SGD`. If your loop has AdamW, take `ftp.AdamP`: AdamW on a leash, with
# the same four. `help(ftp.SGDP)` has the rest.


# %%
def new_model(seed):
    torch.manual_seed(seed)
    model = Net()
    model.body.load_state_dict(pretrained)  # first the weights ...
    return model.to(device)  # ... then the device; the optimizer may come before or after


# %%
def sgd(model, lr):
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def with_leash(model, lr):
    return ftp.SGDP(model.named_parameters(), lr=lr, momentum=0.9, exclude_set={"head.*"})


# %%
def fit(model, optimizer, draw, epochs=10):
    loader = DataLoader(train, batch_size=32, shuffle=True, generator=draw)
    for _ in range(epochs):
        for x, y in loader:
            one_step(model, optimizer, x, y)
    return model


model = new_model(seed=0)
optimizer = with_leash(model, lr=0.03)
fit(model, optimizer, torch.Generator().manual_seed(0))
print("on a leash:", list(optimizer.constraints()))

# %%
far = {name: entry.distance / entry.gamma for name, entry in optimizer.report().items()}
claim("every layer of the body has a leash, and no row is beyond it", max(far.values()) < 1.001)
claim("the head has none", not any(name.startswith("head") for name in far))

# %% [markdown]
# ## Measure: the task, and what has shifted
#
# `id` is the accuracy on the clean digits of `test`, which nobody trains on; `ood` is the mean over four looks of them
# that your 200 digits do not have. Nothing of this may be used to *choose* anything; for that there is `val`.


# %%
def looks(x):
    noise = torch.Generator().manual_seed(0)
    drawn = torch.randn(x.shape, generator=noise)
    return {"inverted": 1 - x, "noisy": x + 0.35 * drawn, "faint": 0.3 * x, "grainy": torch.maximum(x, 0.3 * drawn)}


@torch.no_grad()
def percent(model, x, y):
    return 100 * (model(x.to(device)).argmax(1).cpu() == y).float().mean().item()


# %%
def measure(model):
    x, y = test.tensors
    shifted = [percent(model, look, y) for look in looks(x).values()]
    return {"val": percent(model, *val.tensors), "id": percent(model, x, y), "ood": sum(shifted) / len(shifted)}


def run(make, lr, seed):
    model = new_model(seed)
    return measure(fit(model, make(model, lr), torch.Generator().manual_seed(seed)))


# %% [markdown]
# ## Predict: a rate that nobody tuned
#
# A good learning rate here is 0.03. Out of haste you take ten times as much, 0.3. What becomes of the network?

# %%
options = ("ruined with both", "ruined with SGD, fine with SGDP", "fine with both")
guess = "ruined with SGD, fine with SGDP"
predict("11.rate", guess, options=options, sure=50)

# %%
seeds, rates, ways = range(10), (0.03, 0.1, 0.3), {"sgd": sgd, "ftp": with_leash}
runs = {
    name: [{"lr": lr, "seed": seed, **run(make, lr, seed)} for lr in rates for seed in seeds]
    for name, make in ways.items()
}

# %%
ood = {name: torch.tensor([[r["ood"] for r in runs[name] if r["lr"] == lr] for lr in rates]) for name in ways}
lost, kept = (ood["sgd"][2] < 50).tolist(), (ood["ftp"][2] > 50).tolist()  # lr = 0.3, one for each seed
outcome("11.rate", options[1] if all(lost) and all(kept) else options[0] if all(lost) else options[2])
claim("at lr = 0.3, each of ten seeds of SGD gets less than half of the shifted looks right", all(lost))
claim("and each of ten seeds of SGDP more than half", all(kept))

# %% tags=["signature"]
panels = ("the task itself: ID", "four shifted looks: OOD")
fig = figure("The same learning rates, with and without a leash", "learning rate", "percent right", panels=panels)
for name, color in (("sgd", GREY), ("ftp", BLUE)):
    for panel, part in enumerate(("id", "ood"), start=1):
        scores = [[r[part] for r in runs[name] if r["lr"] == lr] for lr in rates]
        band(fig, rates, scores, name, color, panel=panel)
fig.update_xaxes(type="log", tickvals=rates, ticktext=[f"{lr:g}" for lr in rates]).update_yaxes(range=[0, 100])
card(fig, seeds=seeds)

# %% [markdown]
# ## Explain
#
# A row cannot run farther than its leash, and the leash grows by about μ = 0.01 (`gamma_lr`) per step, whatever the
# learning rate. So a rate that is too large wants much and gets little. Plain SGD gets what it wants.
#
# (Look at the left picture: at 0.3, SGD has not only forgotten the other looks, it has ruined the whole network.)
#
# And with the *tuned* rate? At 0.03 the two bands overlap. That is an honest result, too, and it is why the next
# sections are about reports.
#
# ## Negative control: loading late
#
# The first trap. You build the network, take *one* step with its random weights, to see whether everything runs, and
# only then load the pre-trained ones. The optimizer is still the same. What does the next step do?

# %%
options = ("nothing special", "it throws the network back to random weights", "an error is raised")
guess = "it throws the network back to random weights"
predict("11.order", guess, options=options, sure=50)

# %%
torch.manual_seed(1)
model = Net().to(device)
random = model.body[0].weight.detach().clone()
optimizer = with_leash(model, lr=0.03)
one_step(model, optimizer, *train[:32])  # the posts are driven in here ...
model.body.load_state_dict(pretrained)  # ... and the dog comes later
with warnings.catch_warnings(record=True) as said:
    one_step(model, optimizer, *train[:32])
back = ftp.mars_norm(model.body[0].weight - random).item()  # how far the farthest row is from its random start
outcome("11.order", options[1] if back < 0.02 else options[0])

# %%
claim("the leash is tied to the random weights: one step, and the pre-trained ones are gone", back < 0.02)
claim("the optimizer noticed that something else had moved the weights, and said so once", len(said) == 1)
model = new_model(seed=1)
one_step(model, with_leash(model, lr=0.03), *train[:32])
home = (model.body[0].weight - pretrained["0.weight"]).abs().max().item()
claim("in the right order, the first step leaves the body where it was pre-trained", home < 1e-6)

# %% [markdown]
# (If a step has been taken too early, `optimizer.reanchor()` drives the posts in anew, where the weights are then; or
# give them by hand: `anchors=` takes a dict of tensors by name, such as a state dict.)
#
# ## The second trap: a head on a leash
#
# Forget `exclude_set`, or pass `model.parameters()`, which has no names: all is well-formed, so no error is raised, and
# the new head is tied to its random start. Where no name is there, the optimizer warns; `leash=True` tells it that all
# of them are meant. Look at `optimizer.constraints()` once, before you train.


# %%
def head_tied(model, lr):
    everything = {"params": list(model.parameters()), "leash": True}  # no names, no exclude_set, no error
    return ftp.SGDP([everything], lr=lr, momentum=0.9)


# %%
tied = [len(make(new_model(seed=0), 0.03).constraints()) for make in (with_leash, head_tied)]
claim("six tensors are on a leash instead of four: the weight and the bias of the head, too", tied == [4, 6])
free = [r["id"] for r in runs["ftp"] if r["lr"] == 0.03]
cost = [one - run(head_tied, 0.03, seed)["id"] for one, seed in zip(free, seeds, strict=True)]
claim("a head on a leash costs each of ten seeds more than 5 points on the task itself", min(cost) > 5)

# %% [markdown]
# ## On a GPU
#
# The cells above ran on the device that the first line names. What changes on a GPU: the model goes there before its
# first step, and a Triton kernel runs the leashes. Schedulers, `GradScaler`, gradient accumulation and `torch.compile`
# work as with `torch.optim`.
#
# ## Exercise 1: what belongs in a checkpoint ★★
#
# `run` has `model`, `optimizer`, `scheduler`, `draw` (the generator that shuffles) and `epoch`. Return a dict with
# these five names, so that a new process can go on as if nothing had happened.


# %%
def my_checkpoint(run):
    # region solution
    parts = {name: getattr(run, name).state_dict() for name in ("model", "optimizer", "scheduler")}
    return {**parts, "draw": run.draw.get_state(), "epoch": run.epoch}
    # stub
    # raise NotImplementedError("a dict with all that a new process needs")
    # endregion


check("checkpoint", my_checkpoint)

# %% [markdown]
# Now with your own model: five epochs, a file, a new process, five more. Compare with ten in one go.


# %%
def stop_and_go(keep):
    model, draw = new_model(seed=2), torch.Generator().manual_seed(2)
    optimizer, file = with_leash(model, lr=0.03), io.BytesIO()
    fit(model, optimizer, draw, epochs=5)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    fresh, saved = new_model(seed=3), torch.load(io.BytesIO(file.getvalue()))
    fresh.load_state_dict(saved["model"])
    again = with_leash(fresh, lr=0.03)
    again.load_state_dict(saved["optimizer"]) if keep else None
    return fit(fresh, again, draw, epochs=5)


# %%
model = new_model(seed=2)
whole = fit(model, with_leash(model, lr=0.03), torch.Generator().manual_seed(2)).body[0].weight
resumed, forgot = [stop_and_go(keep).body[0].weight for keep in (True, False)]
claim("stopped and resumed is the same as never stopped, to the last bit", torch.equal(resumed, whole))
claim("without the optimizer's part it is another run", (forgot - whole).abs().max() > 1e-4)

# %% [markdown]
# ## Exercise 2: a row of numbers ★★
#
# `runs` are all runs of one method: a list of dicts with `lr`, `seed`, `val`, `id` and `ood`. Return a dict with the
# `lr` that has the best mean `val` over its seeds, the number of `seeds` that were run with it, their mean `id` and
# `ood`, and the `spread` of `ood`, from the worst seed to the best.


# %%
def my_row(runs):
    # region solution
    from statistics import mean

    rates = {run["lr"] for run in runs}
    lr = max(rates, key=lambda rate: mean(run["val"] for run in runs if run["lr"] == rate))
    inside, ood = [[run[key] for run in runs if run["lr"] == lr] for key in ("id", "ood")]
    spread = max(ood) - min(ood)
    return {"lr": lr, "seeds": len(ood), "id": mean(inside), "ood": mean(ood), "spread": spread}
    # stub
    # raise NotImplementedError("the rate that is best on val, and seeds, id, ood and spread of its runs")
    # endregion


check("report_row", my_row)

# %% [markdown]
# ## Exercise 3: the words around it ★
#
# Numbers alone convince nobody. Fill in the parts, for the runs of this lesson or of your own:
#
# | part | what it says |
# |---|---|
# | `compared` | the methods, as a list |
# | `tuned`, `tuned_on` | what was tuned, and on which data |
# | `tries` | how many settings each method was tried with, as a dict |
# | `measured_on` | the data on which you report, as a list |
# | `seeds`, `spread` | how many, and how their spread is given |
# | `shows`, `does_not_show` | a sentence each |

# %%
# region solution
my_report = {"compared": ["sgd", "ftp"], "tuned": "lr", "tuned_on": "val", "tries": {"sgd": 3, "ftp": 3}}
my_report |= {"measured_on": ["id", "ood"], "seeds": 10, "spread": "from the worst to the best seed"}
my_report["shows"] = "With both rates tuned, the two methods lie within the spread of each other."
my_report["does_not_show"] = "It does not show what happens with a larger model, or with other shifts."
# stub
# my_report = ...
# endregion

check("report", my_report)

# %%
rows = {name: row(runs[name]) for name in ways}
claim(
    "with both rates tuned on val, the two differ by less than the spread of their seeds",
    abs(rows["ftp"]["ood"] - rows["sgd"]["ood"]) < max(rows["ftp"]["spread"], rows["sgd"]["spread"]),
)
mean, error = paired(*([r["ood"] for r in runs[name] if r["lr"] == rows[name]["lr"]] for name in ("ftp", "sgd")))
print(f"paired by seed, FTP minus SGD: {mean:+.2f} points, standard error {error:.2f}")
Markdown(page(my_report, rows))

# %% [markdown]
# ## How well do you know what you know?
#
# In every lesson you have made predictions, and said how sure you were. Of those that you were 80 % sure of, about 80
# in 100 should have come true: then a point lies on the line. Below it you were too sure, above it not sure enough.
# The larger a point, the more predictions it stands for.

# %%
kept = calibration()
fig = figure("Your calibration", "how sure you were, percent", "how often you were right, percent")
fig.add_scatter(x=[0, 100], y=[0, 100], mode="lines", name="perfect", line={"color": GREY, "dash": "dash"})
size = [12 + 4 * point["count"] ** 0.5 for point in kept]
place = {"x": [point["sure"] for point in kept], "y": [point["right"] for point in kept], "mode": "markers"}
fig.add_scatter(**place, name="you", marker={"color": VERMILLION, "size": size, "opacity": 1})
fig.update_xaxes(range=[0, 104]).update_yaxes(range=[-4, 104])
card(fig)

# %% [markdown]
# ## Where this stops being true
#
# - **"It forgives" is not "it helps".** The leash has saved a bad learning rate. With a tuned one, the picture shows
#   how little is left on this small task. On yours it may be more or nothing: that is what the page is for.
# - **To the last bit** holds on one machine, with the same number of threads and the same versions. Some GPU kernels
#   add up in another order each time; then nothing is, with any optimizer.
# - **What has no gradient has no leash.** The running means of a batch norm are buffers: they follow your data freely.
# - **The generator belongs to the checkpoint.** The last cells kept `draw` in memory; a new process must load it, as
#   your `my_checkpoint` does. The `Run` of exercise 1, resumed without it, ends with other weights:

# %%
whole, half, fresh = Run(), Run(), Run(seed=1)
whole.go(6)
half.go(3)
parts = {name: getattr(half, name).state_dict() for name in ("model", "optimizer", "scheduler")}
fresh.restore({**parts, "draw": torch.Generator().manual_seed(0).get_state(), "epoch": 3})
fresh.go(6)
claim("with other batches it is another run", not torch.equal(fresh.model[0].weight, whole.model[0].weight))

# %% [markdown]
# ## What you have seen
#
# ![Accuracy on the task and on shifted data, three learning rates, with and without a leash](figures/11_your_model.png)
#
# One line in your loop, the posts before the walk, the new head free, the whole state in the checkpoint, and a page
# that says what was tuned on what. The rest is your model and your data. To watch a run of your own settings:
# `make app`, then the address below.
#
# Before: [10 · When it does not help](10_when_not.ipynb).
# Next: [12 · A real network, your own pictures](12_your_pictures.ipynb).

# %%
print(app_link("live", method="ftp", lr=0.1))
