"""The stream world and the methods for tasks in a row: losses and Fisher against slow loops, masks, resume, choices."""

import copy
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from lab.runs import equal, weights
from torch.nn import functional as F

from ftp.lab import lesson, methods, recipes, worlds
from ftp.lab.continual import tasks_of
from ftp.lab.methods.ewc import fisher
from ftp.lab.record import EvalEvent, LabError, RunRecord, StartEvent, StepEvent
from ftp.lab.recordings import described, groups, recorded
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning, finetune

STEPS = 3
RUNNING = ("finetune", "ftp", "linear_probe", "l2_sp", *methods.TASKS)
PROMPTS = ("l2p", "dualprompt", "coda_prompt")


def start(method: str, checkpoint: Path | None = None, **given: Any) -> FineTuning:
    how = {name: given.pop(name) for name in ("stop",) if name in given}
    settings = resolve("stream", method, {"steps": STEPS, "batch": 8, "tasks": 20, **given})
    return finetune(settings, device="cpu", watches=0, evaluate_at_end=False, checkpoint=checkpoint, **how)


def at_phase(method: str, phase: int, steps: int = 1, **given: Any) -> FineTuning:
    """A run that has made so many steps of a phase."""
    run = start(method, **given)
    while run.step < phase * STEPS + steps:
        run.advance()
    return run


def test_the_methods_fit_here_and_nowhere_else() -> None:
    here = set(methods.fitting(worlds.load("stream")))
    assert {*methods.PAPER, *methods.TASKS} <= here
    assert not {*methods.TASKS} & set(methods.fitting(worlds.load("digits")))
    with pytest.raises(LabError) as error:
        resolve("digits", "ewc")
    assert str(error.value) == "EWC is for tasks in a row, and the world digits has one task here; choose ftp instead"
    with pytest.raises(LabError, match="write mask=new, or choose finetune"):
        resolve("stream", "ft_plus", {"mask": "seen"})


# the world


@pytest.mark.parametrize("tasks", [2, 5, 10, 20])
def test_one_option_says_how_many_tasks(tasks: int) -> None:
    world = worlds.load("stream", {"tasks": tasks})
    assert len(world.phases) == tasks
    sizes = [len(world.labels(n)) for n in range(tasks)]
    assert sizes == [200 // tasks] * tasks
    run = start("ftp", tasks=tasks, steps=1)
    for _ in run:
        pass
    assert run.model(torch.zeros(1, 1, 32, 32)).shape == (1, 200)


def test_splits_are_told_apart_by_drawer() -> None:
    world: Any = worlds.load("stream")
    pixels = {}
    for name, drawers in (("task 3, training", 12), ("task 3", 5)):
        split = world.split(name)
        assert len(split) == 20 * drawers
        assert sorted(set(split.targets.tolist())) == list(range(40, 60))
        pixels[name] = {bytes(image) for image in split.ink.flatten(1).numpy()}
    assert not pixels["task 3, training"] & pixels["task 3"]
    assert (len(world.split("val")), len(world.split("all tasks"))) == (600, 1000)
    assert len(world.split("task 3, training", 0.5)) == 20 * 6
    assert "task 11" not in world.roles
    with pytest.raises(LabError, match="split is 'task 11'"):
        world.split("task 11")


def test_the_seed_deals_the_characters() -> None:
    world: Any = worlds.load("stream")
    again, other = (worlds.of(resolve("stream", "ftp", {"seed": seed})) for seed in (0, 1))
    assert again is world
    assert again.classes != other.classes
    assert worlds.of(resolve("stream", "ftp", {"seed": 1})) is other
    letters = worlds.load("stream", {"order": "alphabets"})
    assert sorted(phase.name for phase in letters.phases)[:2] == ["Balinese", "Early Aramaic"]
    assert (len(letters.phases), len(letters.classes)) == (8, 242)
    for n, phase in enumerate(letters.phases):
        assert {letters.classes[label].rpartition(" ")[0] for label in letters.labels(n)} == {phase.name}


def test_training_pictures_are_moved_a_little_and_others_not() -> None:
    split = worlds.load("stream").split("task 1, training")
    plain, again = (split.batch(torch.arange(4))[0] for _ in range(2))
    moved, same = (split.batch(torch.arange(4), torch.Generator().manual_seed(3))[0] for _ in range(2))
    assert torch.equal(plain, again)
    assert torch.equal(moved, same)
    assert not torch.equal(plain, moved)
    assert plain.shape == moved.shape == (4, 1, 32, 32)
    assert 0.5 < float(moved.sum() / plain.sum()) < 1.5


def test_only_qkv_and_the_head_have_weights_that_move() -> None:
    run = at_phase("finetune", 1, steps=2)
    moved = {
        name
        for name, param in run.model.named_parameters()
        if name in dict(run.pretrained.named_parameters())
        and not torch.equal(param, dict(run.pretrained.named_parameters())[name])
        and not name.startswith("head.")
    }
    assert moved == set(run.task.anchors) == {f"blocks.{n}.attn.qkv.{p}" for n in range(5) for p in ("weight", "bias")}
    assert set(worlds.load("stream").layers()) == moved
    everything = start("finetune", trained="all")
    assert len(everything.task.anchors) == sum(not n.startswith("head.") for n, _ in run.model.named_parameters())


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("method", ["ft_plus", "ftp", "ewc", "l2p", "lp_ft"])
def test_masked_rows_do_not_move(method: str, optimizer: str) -> None:
    """Though weight decay and momentum pull: they are not given to the optimizer."""
    how = {"optimizer": optimizer, "weight_decay": 0.1, "momentum": 0.9, "lr": 0.01}
    run = at_phase(method, 1, steps=0, **how)
    before = {n: p.detach().clone() for n, p in run.model.named_parameters() if n.startswith("head.0.")}
    while run.step < 3 * STEPS:
        run.advance()
    after = dict(run.model.named_parameters())
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert len(after["head.2.weight"]) == 10


def test_with_mask_seen_old_rows_train() -> None:
    run = at_phase("finetune", 1, steps=0, mask="seen")
    before = run.model.head[0].weight.detach().clone()
    while run.step < 2 * STEPS:
        run.advance()
    assert not torch.equal(run.model.head[0].weight, before)


def test_the_loss_against_a_slow_loop() -> None:
    """Cross-entropy over the task's logits only, or over all that were seen."""
    for mask, first in (("new", 20), ("seen", 0)):
        world = worlds.load("stream", {"mask": mask})
        g = torch.Generator().manual_seed(1)
        logits, targets = torch.randn((6, 40), generator=g), torch.randint(20, 40, (6,), generator=g)
        slow = 0.0
        for row, target in zip(logits.tolist(), targets.tolist(), strict=True):
            slow += math.log(sum(math.exp(z) for z in row[first:])) - row[target]
        value = world.loss(lambda x, logits=logits: logits, torch.zeros(6), targets, 1)
        assert float(value) == pytest.approx(slow / 6, rel=1e-5)


def test_rows_of_the_head_are_made_by_the_seed() -> None:
    worlds_of = {seed: worlds.of(resolve("stream", "ftp", {"seed": seed})) for seed in (0, 1)}
    heads = [worlds_of[seed].model(seed).head[0].weight for seed in (0, 0, 1)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


# methods


def test_the_fisher_is_the_mean_of_squared_gradients_of_single_pictures() -> None:
    run = at_phase("ewc", 1, steps=2)
    names = [name for name, _, _ in run.method.anchored()]
    batches = list(itertools.islice(run.task.pool(), 2))
    values = fisher(run.model, names, run.task.loss, batches)
    slow = {name: torch.zeros_like(values[name]) for name in names}
    pictures = [(x, y) for inputs, targets in batches for x, y in zip(inputs, targets, strict=True)]
    for x, y in pictures:
        loss = run.task.loss(run.model, x[None], y[None])
        for name, g in zip(names, torch.autograd.grad(loss, [run.model.get_parameter(n) for n in names]), strict=True):
            slow[name] += g.square() / len(pictures)
    assert len(names) == 10
    for name in names:
        torch.testing.assert_close(values[name], slow[name], rtol=1e-3, atol=1e-9)
        assert values[name].sum() > 0


def test_ewc_adds_the_gradient_of_its_penalty_and_sums_over_tasks() -> None:
    run = at_phase("ewc", 1, steps=1, strength=50.0)
    first = {name: values.clone() for name, values in run.method.fisher.items()}
    inputs, targets = next(iter(run.task.pool()))
    name, param, anchor = next(iter(run.method.anchored()))
    run.method.optimizer.zero_grad()
    run.method.loss(inputs, targets).backward()
    plain = param.grad.clone()
    run.method.after_backward(0)
    w = param.detach().clone().requires_grad_()
    (pull,) = torch.autograd.grad(50.0 / 2 * (first[name] * (w - anchor).square()).sum(), w)
    assert pull.abs().sum() > 0
    torch.testing.assert_close(param.grad, plain + pull)
    while run.phase < 2:
        run.advance()
    assert all((run.method.fisher[n] >= first[n]).all() for n in first)
    assert not any(n.startswith("head") for n in first)


def test_lwf_mc_against_a_slow_loop() -> None:
    run = at_phase("lwf_mc", 1, steps=2, mask="seen")
    inputs, targets = next(iter(run.task.pool()))
    with torch.no_grad():
        new, old = run.model(inputs).tolist(), run.method.teacher(inputs).tolist()
        value = float(run.method.loss(inputs, targets))
    assert new != old
    slow = 0.0
    for n, target in enumerate(targets.tolist()):
        for c, z in enumerate(new[n]):
            wanted = 1 / (1 + math.exp(-old[n][c])) if c < 10 else float(c == target)
            p = 1 / (1 + math.exp(-z))
            slow -= wanted * math.log(p) + (1 - wanted) * math.log(1 - p)
    assert value == pytest.approx(slow / len(targets), rel=1e-4)


def test_ftp_begins_anew_with_each_task() -> None:
    run = at_phase("ftp", 0, steps=STEPS)
    long = [gamma for gamma, _ in run.method.report().values()]
    between = weights(run)
    run.advance()
    assert all(torch.equal(run.task.anchors[name], between[name]) for name in run.task.anchors)
    assert [gamma for gamma, _ in run.method.report().values()] == [pytest.approx(1e-8)] * 10
    assert sum(gamma > 1e-3 for gamma in long) >= 5


def test_the_nearest_mean_is_the_nearest_mean() -> None:
    run = at_phase("nearest_mean", 1, steps=STEPS)
    features = {}
    for n in range(2):
        split = run.world.split(run.phases[n].train)
        inputs, targets = split.batch(torch.arange(len(split)))
        with torch.no_grad():
            x = run.pretrained.features(inputs)
        features |= {int(label): x[targets == label].mean(0) for label in targets.unique()}
    means = torch.stack([features[label] for label in sorted(features)])
    inputs, _ = run.world.split("task 2").batch(torch.arange(30))
    with torch.no_grad():
        nearest = torch.cdist(run.pretrained.features(inputs), means).argmin(1)
        assert torch.equal(run.model.eval()(inputs).argmax(1), nearest)


@pytest.mark.parametrize("method", PROMPTS)
def test_a_picture_chooses_its_prompts_alone(method: str) -> None:
    """What is said of a picture does not depend on the others in its batch."""
    run = at_phase(method, 2, steps=2, lr=0.05)
    split = run.world.split("task 2")
    inputs, _ = split.batch(torch.arange(24))
    model = run.model.eval()
    with torch.no_grad():
        together = model(inputs)
        for size in (1, 5):
            torch.testing.assert_close(torch.cat([model(part) for part in inputs.split(size)]), together)
        without = copy.copy(model.prompts)
        model.prompts = None
        assert not torch.allclose(model(inputs), together)  # and the prompts do something
        model.prompts = without


@pytest.mark.parametrize("method", ["dualprompt", "coda_prompt"])
def test_prompts_of_older_tasks_stay_as_they_are(method: str) -> None:
    run = at_phase(method, 1, steps=0)
    assert int(run.model.prompts.phase) == 0
    run.advance()
    before = {n: p.detach().clone() for n, p in run.model.prompts.named_parameters() if n.endswith(".0")}
    own = {n: p.detach().clone() for n, p in run.model.prompts.named_parameters() if n.endswith(".1")}
    run.advance()
    after = dict(run.model.prompts.named_parameters())
    assert all(torch.equal(after[n], value) for n, value in before.items())
    assert not any(torch.equal(after[n], value) for n, value in own.items())


def test_coda_s_weights_against_a_slow_loop() -> None:
    prompts = start("coda_prompt").model.prompts
    prompts.enter(1)
    query = torch.randn((2, 96), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        rows = prompts(query)
    for n, block in itertools.product(range(2), (0, 4)):
        slow = torch.zeros(8, 96)
        for task, m in itertools.product(range(2), range(5)):
            p, k, a = (part[task][block, m].detach() for part in (prompts.prompts, prompts.keys, prompts.attention))
            slow += F.cosine_similarity(query[n] * a, k, dim=0) * p.view(8, 96)
        torch.testing.assert_close(torch.cat([part[n] for part in rows[block]]), slow)


# runs


def numbers(events: list[Any]) -> list[tuple[Any, ...]]:
    points = [event for event in events if isinstance(event, StepEvent)]
    return [(p.step, p.phase, p.loss, p.lr, p.gamma, p.distance, p.boundary) for p in points]


@pytest.mark.parametrize("method", RUNNING)
def test_a_stream_goes_on_to_the_same_bits(method: str, tmp_path: Path) -> None:
    """Stopped inside the second task, and exactly between it and the third."""
    given = {"tasks": 3, "labels": 0.1} | ({"mask": "seen"} if method in ("finetune", "lwf_mc") else {})
    whole = start(method, **given)
    wanted = numbers(list(whole))
    for stop in (STEPS + 1, 2 * STEPS):
        path = tmp_path / f"{stop}.checkpoint"
        count = itertools.count()
        before = list(start(method, path, stop=lambda count=count, stop=stop: next(count) == stop, **given))
        again = start(method, path, **given)
        after = list(again)
        assert isinstance(after[0], StartEvent)
        assert after[0].step == stop
        assert numbers(before) + numbers(after) == wanted
        assert equal(weights(again), weights(whole))
        assert equal(again.method.state_dict(), whole.method.state_dict())


def test_a_run_keeps_its_matrix() -> None:
    settings = resolve("stream", "nearest_mean", {"tasks": 2, "steps": 1, "batch": 64, "labels": 0.25})
    events = list(finetune(settings, device="cpu", watches=0))
    first = events[0]
    assert isinstance(first, StartEvent)
    assert first.phases == ("task 1", "task 2")
    evals = tuple(event for event in events if isinstance(event, EvalEvent))
    tasks = tasks_of(RunRecord("0" * 16, settings, "done", evals=evals, measures=first.measures, phases=first.phases))
    assert tasks.sizes == (500, 500)
    assert tasks.forgetting == 0  # a frozen body forgets nothing
    assert tasks.matrix[0][0] > tasks.matrix[1][0]  # but more classes compete
    assert tasks.accuracy == pytest.approx(evals[-1].main["all tasks"])


# what ships


def test_every_method_had_the_same_budget_and_the_best_was_chosen() -> None:
    sheet = recipes.sheet("stream")["quick"]
    assert set(sheet["recipe"]) == set(sheet["grid"]) == set(sheet["outcome"])
    assert set(described("stream")["methods"].methods) == {*sheet["recipe"], "nearest_mean"}
    for method, trials in {**sheet["outcome"], "joint": sheet["reference"]["joint"]["outcome"]}.items():
        assert len(trials) == sheet["budget"]["trials"]
        best = max(trials, key=lambda trial: trial["val_mean"])["settings"]
        assert best == (sheet["recipe"].get(method) or sheet["reference"][method]["settings"])
    assert described("stream")["joint"].given["lr"] == sheet["reference"]["joint"]["settings"]["lr"]


@pytest.mark.parametrize("group", groups("stream"))
def test_the_recorded_runs_are_those_that_the_lab_would_make_today(group: str) -> None:
    runs = recorded("stream", group=group)
    seeds = {run.settings.seed for run in runs}
    assert len(seeds) >= (5 if group in ("methods", "joint") else 3)
    assert [run.settings for run in runs] == [s for s in lesson.plan(group, world="stream") if s.seed in seeds]
    for run in runs:
        assert run.status == "done"
        if len(run.phases) > 1:
            assert tasks_of(run).accuracy == pytest.approx(run.result["id"], abs=1e-3)  # A is the share of all pictures
