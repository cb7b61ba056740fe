"""Every method: the contract that all keep, and for each one what it changes, against an oracle."""

import copy
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from lab.runs import short, start, trained
from torch.nn import functional as F

from ftp import SGDP, project_mars
from ftp.lab import methods, registry, worlds
from ftp.lab.methods import Method, Option
from ftp.lab.record import LabError
from ftp.lab.settings import parse, resolve
from ftp.lab.train import FineTuning

NAMES = methods.fitting(worlds.load("digits"))
# which of the pre-trained parameters may move
MOVES = {
    "linear_probe": lambda name: False,
    "adapter": lambda name: False,
    "bitfit": lambda name: name.endswith("bias"),
    "partial_fusion": lambda name: "norm" in name or "bridge.1" in name,
}


def test_the_papers_methods_are_there_in_its_order() -> None:
    assert (
        (
            *("finetune", "linear_probe", "partial_fusion", "bitfit", "adapter", "llrd"),
            *("l2_sp", "mars_sp", "lp_ft", "tpgm", "ftp"),
        )
        == methods.PAPER
        == NAMES[: len(methods.PAPER)]
    )
    titles = [methods.method(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)


def test_descriptions_need_no_torch() -> None:
    code = "import sys; from ftp.lab import settings; settings.resolve('digits', 'tpgm'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


@pytest.mark.parametrize("name", NAMES)
def test_contract(name: str) -> None:
    kind = methods.method(name)
    assert issubclass(kind, Method)
    assert kind.title
    assert kind.summary.endswith(".")
    assert kind.__module__.rpartition(".")[2] == name
    for key, option in kind.options.items():
        assert isinstance(option, Option)
        assert option.help
        assert parse(key, option.default, option) == option.default
    run = start(name)
    trains = {n for n, param in run.model.named_parameters() if param.requires_grad}
    before = {n: t.clone() for n, t in run.model.state_dict().items()}
    losses = [event.loss for event in run if hasattr(event, "loss")]
    assert len(losses) == 6
    after = dict(run.model.named_parameters())
    for n in run.task.unanchored:
        assert not torch.equal(after[n], before[n])
    may_move = MOVES.get(name, lambda n: n in trains)
    moved = {n for n, anchor in run.task.anchors.items() if not torch.equal(after[n], anchor)}
    allowed = {n for n in run.task.anchors if may_move(n)}
    assert moved <= allowed
    # a leash that is learned may stay at its shortest for a while
    assert len(moved) >= (0.8 if name in ("tpgm", "ftp") else 1) * len(allowed)


@pytest.mark.parametrize("name", ["linear_probe", "adapter"])
def test_a_frozen_body_keeps_its_statistics(name: str) -> None:
    run = trained(name)
    for n, buffer in run.pretrained.named_buffers():
        assert torch.equal(dict(run.model.named_buffers())[n], buffer)


def test_adapters_begin_at_the_pretrained_network() -> None:
    run, plain = start("adapter"), start("finetune")
    images = torch.rand(4, 3, 32, 32)
    assert torch.equal(run.model.eval()(images), plain.model.eval()(images))
    assert len(run.model.adapters) == 6
    for _ in run:
        pass
    assert all(any(p.abs().sum() > 0 for p in pair[2].parameters()) for pair in run.model.adapters)


def test_lp_ft_trains_the_head_first_and_then_all() -> None:
    run = start("lp_ft", steps=8, probe=0.5, probe_lr=0.5, lr=0.1)
    rates = [run.method.lr(step) for step in range(8)]
    assert rates[0] == 0.5
    assert rates[4] == 0.1
    assert rates[:4] == sorted(rates[:4], reverse=True)
    for step in range(8):
        run.advance()
        moved = any(not torch.equal(dict(run.model.named_parameters())[n], a) for n, a in run.task.anchors.items())
        assert moved == (step >= 4)
        if step == 3:
            assert not run.method.optimizer.state


def test_llrd_scales_the_rate_by_depth() -> None:
    run = start("llrd", decay=0.5, lr=0.1)
    run.advance()
    rates = [group["lr"] for group in run.method.optimizer.param_groups]
    assert rates == pytest.approx([0.1 * 0.5**i for i in range(7, -1, -1)])  # stem, six blocks, head
    head = {id(p) for n, p in run.model.named_parameters() if n in run.task.unanchored}
    assert {id(p) for p in run.method.optimizer.param_groups[-1]["params"]} == head


def test_l2_sp_adds_the_gradient_of_its_penalty() -> None:
    run = start("l2_sp", strength=0.3)
    with torch.no_grad():
        for p in run.model.parameters():
            p.add_(0.01 * torch.randn_like(p))
    images, labels = torch.rand(8, 3, 32, 32), torch.arange(8)
    run.method.before_step(0)
    F.cross_entropy(run.model(images), labels).backward()
    plain = {n: p.grad.clone() for n, p in run.model.named_parameters()}
    run.method.after_backward(0)
    for n, p in run.model.named_parameters():
        if n in run.task.unanchored:
            assert torch.equal(p.grad, plain[n])
            continue
        w = p.detach().clone().requires_grad_()
        penalty = 0.3 / 2 * (w - run.task.anchors[n]).square().sum()
        (pull,) = torch.autograd.grad(penalty, w)
        torch.testing.assert_close(p.grad, plain[n] + pull)


def test_mars_sp_is_fine_tuning_and_then_the_projection() -> None:
    run = start("mars_sp", gamma=0.05, lr=0.1)
    free = start("finetune", lr=0.1)
    run.advance()
    free.advance()
    theirs = dict(free.model.named_parameters())
    for n, p in run.model.named_parameters():
        wanted = theirs[n].detach()
        if n in run.task.anchors:
            wanted = project_mars(wanted, run.task.anchors[n], 0.05)
        torch.testing.assert_close(p.detach(), wanted, rtol=1e-6, atol=1e-7)
    assert max(share for _, share in run.method.report().values()) > 0


def test_ftp_is_sgdp_in_an_ordinary_loop() -> None:
    run = trained("ftp", lr=0.1, gamma_lr=0.01, k=1)
    fresh = start("ftp", lr=0.1)
    options = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True, "foreach": False}
    optimizer = SGDP(fresh.model.named_parameters(), exclude_set={"head.*"}, **options)
    fresh.model.train()
    for step in range(6):
        images, labels = fresh._load(fresh.train, fresh._pick(fresh.indices, step, salt=0), step)
        optimizer.param_groups[0]["lr"] = fresh.method.lr(step)
        optimizer.zero_grad()
        F.cross_entropy(fresh.model(images), labels).backward()
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), fresh.model.parameters(), strict=True))
    assert {n: g for n, (g, _) in run.method.report().items()} == optimizer.constraints()


def test_ftp_takes_adamw_as_its_base() -> None:
    from ftp import AdamP

    run = trained("ftp", optimizer="adamw", lr=1e-3)
    assert isinstance(run.method.optimizer, AdamP)


def tpgm_after_steps(count: int) -> FineTuning:
    run = start("tpgm", lr=0.1)
    for _ in range(count):
        run.advance()
    return run


def test_tpgm_holds_out_what_it_validates_on() -> None:
    run = start("tpgm")
    assert not set(run.held_out.tolist()) & set(run.indices.tolist())
    assert len(run.held_out) == 300
    assert len(run.indices) == 2700


def test_tpgm_gradient_is_that_of_the_validation_loss() -> None:
    """Eq. 3 by finite differences in float64, with W~, the anchors and the batch held still."""
    run = tpgm_after_steps(3)
    model = copy.deepcopy(run.model).double().train()
    anchors = {n: a.double() for n, a in run.task.anchors.items()}
    wild = {n: p.detach() + 0.05 * torch.randn_like(p) for n, p in model.named_parameters()}
    images, labels = run.task.held_out(7)
    images = images.double()

    def loss(gammas: torch.Tensor) -> torch.Tensor:
        probe = copy.deepcopy(model)
        with torch.no_grad():
            for (n, p), gamma in zip(
                [(n, p) for n, p in probe.named_parameters() if n in anchors], gammas, strict=True
            ):
                p.copy_(project_mars(wild[n], anchors[n], gamma))
        return F.cross_entropy(probe(images), labels)

    gammas = torch.full((len(anchors),), 0.3, dtype=torch.float64)
    method = copy.copy(run.method)
    method.model = model
    method.task = copy.copy(run.task)
    method.task.model = model
    method.task.anchors = anchors
    method.task.held_out = lambda count: (images, labels)
    method.gamma = gammas.clone().requires_grad_()
    seen = []

    class Watch:
        def step(self) -> None:
            seen.append(method.gamma.grad.clone())

    method.adam = Watch()
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(wild[n])
    method.after_step(0)
    for i in (0, 1, 20, 44):
        up, down = gammas.clone(), gammas.clone()
        up[i] += 1e-7
        down[i] -= 1e-7
        slope = (loss(up) - loss(down)) / 2e-7  # small: a ReLU that switches in between bends the curve
        assert seen[0][i].item() == pytest.approx(slope.item(), rel=1e-4, abs=1e-7)


def test_tpgm_leaves_the_running_statistics_to_training() -> None:
    run, plain = tpgm_after_steps(0), start("finetune", lr=0.1)
    plain.indices = run.indices
    run.advance()
    plain.advance()
    for (n, a), b in zip(run.model.named_buffers(), plain.model.buffers(), strict=True):
        assert torch.equal(a, b), n


def test_the_method_of_the_contributing_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parent.parent.parent / "CONTRIBUTING.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "late_only.py").write_text(textwrap.dedent(example))
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    registry.modules.cache_clear()
    try:
        assert "late_only" in methods.names()
        test_contract("late_only")
        run = trained("late_only", share=0.5)
        after = dict(run.model.named_parameters())
        moved = [not torch.equal(after[n], anchor) for n, anchor in run.task.anchors.items()]
        assert moved == [False] * 22 + [True] * 23
    finally:
        registry.modules.cache_clear()
        sys.modules.pop("ftp.lab.methods.late_only", None)


def test_bad_settings_are_sentences() -> None:
    with pytest.raises(LabError) as error:
        resolve("digits", "fpt")
    assert str(error.value) == "method is 'fpt'; did you mean ftp?"
    with pytest.raises(LabError) as error:
        resolve("digits", "ftp", {"kappa": 1})
    assert str(error.value).startswith("ftp on digits has no setting 'kappa'; it must be one of seed, labels, steps")
    for name, given, text in (
        ("lr", "fast", "lr is 'fast'; it must be a number from 1e-08 to 100, such as lr=0.05"),
        ("steps", "1.5", "steps is '1.5'; it must be a whole number from 1 to 1000000, such as steps=300"),
        ("optimizer", "adam", "optimizer is 'adam'; it must be sgd or adamw, such as optimizer=sgd"),
        ("seed", -1, "seed is -1; it must be a whole number from 0 to 2147483647, such as seed=0"),
        ("lr", "nan", "lr is 'nan'; it must be a number from 1e-08 to 100, such as lr=0.05"),
    ):
        with pytest.raises(LabError) as error:
            short("ftp", **{name: given})
        assert str(error.value) == text
