"""Lesson 05: a test that tells a right SGDP from a broken one. It is judged by the mutants that it kills."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import ftp
from ftp.lab.exercises._exercise import Exercise, Failed, Mistake, Question, Unanswered
from ftp.lab.exercises._museum import MUTANTS, Mutant, Thirteenth, Twin
from ftp.lab.record import LabError

__all__ = ["EXERCISE", "MUTANTS", "Mutant", "Thirteenth", "Twin", "apart", "beside", "gallery", "walk"]

RESUMES = (None, "same", "late", "reordered")
LAYERS = ("first", "second", "third", "head")
CLOSE = 1e-9  # float64: two right ways to write SGDP differ by rounding only


class Net(nn.Module):
    """Three layers of one shape, so that a mix-up does not crash, and a head."""

    def __init__(self, conv: bool) -> None:
        super().__init__()
        same = [nn.Conv2d(4, 4, 3, padding=1) if conv else nn.Linear(4, 4) for _ in range(3)]
        self.first, self.second, self.third = same
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.first, self.second, self.third):
            x = torch.tanh(layer(x))
        out: Tensor = self.head(x.flatten(2).mean(2) if x.dim() == 4 else x)
        return out


def walk(
    SGDP: Any,
    *,
    steps: int = 40,
    resume: str | None = None,
    missing: str = "",
    conv: bool = False,
    seed: int = 0,
    lr: float = 0.02,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    k: float = 1.0,
    exclude_set: Any = ("head.*",),
) -> dict[str, Tensor]:
    """Fine-tune a small network (layers first, second, third, head) with an optimizer class.

    Returns every weight after each step by name, entry 0 being the start, and the "loss". The same numbers each time.
    resume: half-way, all is saved and a new process goes on. "same": it builds the network and the optimizer, then
        loads both; "late": the weights before it builds the optimizer; "reordered": parameters in another order.
    missing: a layer that has no gradient in every other step. conv: the layers are convolutions.

    >>> walk(ftp.SGDP, steps=2)["first.weight"].shape
    torch.Size([3, 4, 4])
    """
    for name, value, allowed in (("resume", resume, RESUMES), ("missing", missing, ("", *LAYERS))):
        if value not in allowed:
            raise LabError(f"{name} is {value!r}; write one of {', '.join(map(repr, allowed))}")
    options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "k": k, "exclude_set": tuple(exclude_set)}
    net, x, target = _start(conv, seed)
    optimizer = SGDP(net.named_parameters(), **options)
    path = {name: [param.detach().clone()] for name, param in net.named_parameters()}
    losses = []
    for step in range(steps):
        if resume and step == steps // 2:
            net, optimizer = _resumed(SGDP, net, optimizer, options, resume, (conv, seed))
        net.zero_grad()
        loss = (net(x) - target).square().mean()
        loss.backward()
        losses.append(loss.item())
        for name, param in net.named_parameters():
            if missing and step % 2 and name.startswith(f"{missing}."):
                param.grad = None
        optimizer.step()
        for name, param in net.named_parameters():
            path[name].append(param.detach().clone())
    return {**{name: torch.stack(weights) for name, weights in path.items()}, "loss": torch.tensor(losses)}


def _start(conv: bool, seed: int) -> tuple[Net, Tensor, Tensor]:
    """The pre-trained network, the inputs, and what it shall answer."""
    with torch.random.fork_rng(devices=[]):
        net, teacher = Net(conv).double(), Net(conv).double()
    random = torch.Generator().manual_seed(seed)
    for param, other in zip(net.parameters(), teacher.parameters(), strict=True):
        param.data = 0.5 * torch.randn(param.shape, generator=random, dtype=torch.float64)
        other.data = param + 0.2 * torch.randn(param.shape, generator=random, dtype=torch.float64)
    x = torch.randn(32, 4, *((3, 3) if conv else ()), generator=random, dtype=torch.float64)
    return net, x, teacher(x).detach()


def _resumed(
    SGDP: Any, net: Net, optimizer: Any, options: dict[str, Any], resume: str, kind: tuple[bool, int]
) -> tuple[Net, Any]:
    """A new process, which knows of the old one only what was saved."""
    weights, state = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
    new, _, _ = _start(*kind)
    if resume == "late":
        new.load_state_dict(weights)
    named = list(new.named_parameters())
    if resume == "reordered":  # the layers have one shape, so nothing crashes
        named.sort(key=lambda pair: ("third", "second", "first", "head").index(pair[0].split(".")[0]))
    again = SGDP(named, **options)
    new.load_state_dict(weights)
    again.load_state_dict(state)
    return new, again


@functools.cache
def _kept(SGDP: Any, situation: tuple[tuple[str, Any], ...]) -> dict[str, Tensor] | None:
    return _walked(SGDP, dict(situation))


def _walked(SGDP: Any, situation: dict[str, Any]) -> dict[str, Tensor] | None:
    """The walk, or None if the optimizer refuses the situation."""
    try:
        return walk(SGDP, **situation)
    except LabError:  # the situation itself is misspelt; that is no verdict on an optimizer
        raise
    except ValueError:
        return None


def apart(SGDP: Any, **situation: Any) -> float:
    """How far the weights are at most from those of `ftp.SGDP`, over all steps of a `walk`.

    0 if both refuse the situation with a ValueError, infinite if only one of them does.

    >>> apart(Twin, weight_decay=0.1) < 1e-9, apart(MUTANTS[0].optimizer) > 1e-3
    (True, True)
    """
    return _gap(*_both(SGDP, situation))


def _gap(given: dict[str, Tensor] | None, right: dict[str, Tensor] | None) -> float:
    if right is None or given is None:
        return 0.0 if right is given else float("inf")
    return max((given[name] - right[name]).abs().max().nan_to_num(float("inf")).item() for name in right)


def _both(SGDP: Any, situation: dict[str, Any]) -> tuple[dict[str, Tensor] | None, dict[str, Tensor] | None]:
    """Its walk and that of `ftp.SGDP`; None where one refuses the situation."""
    if "exclude_set" in situation:
        situation = {**situation, "exclude_set": tuple(situation["exclude_set"])}
    key = tuple(sorted(situation.items()))
    # a learner's class may have changed since
    given = _kept(SGDP, key) if SGDP.__module__.startswith("ftp.") else _walked(SGDP, situation)
    return given, _kept(ftp.SGDP, key)


def beside(SGDP: Any, **situation: Any) -> None:
    """Print in one line whether an optimizer class keeps up with `ftp.SGDP`, step for step.

    >>> beside(Twin, steps=20)
    beside ftp.SGDP: after each of 20 steps every weight is the same, to 9 digits
    >>> beside(Twin, resume="reordered")
    beside ftp.SGDP: both refuse this
    >>> beside(next(m.optimizer for m in MUTANTS if m.name == "found by position"), resume="reordered")
    beside ftp.SGDP: yours accepts what ftp.SGDP refuses
    """
    try:
        given, right = _both(SGDP, situation)
    except NotImplementedError as stub:
        print(f"your SGDP cannot walk yet; missing: {stub}")
        return
    except LabError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        print(f"your SGDP fell over: {type(error).__name__}: {reason}")
        return
    steps, gap = situation.get("steps", 40), _gap(given, right)
    if right is None:
        words = "both refuse this" if given is None else "yours accepts what ftp.SGDP refuses"
    elif given is None:
        words = "yours refuses, with a ValueError, what ftp.SGDP accepts"
    elif gap < CLOSE:
        words = f"after each of {steps} steps every weight is the same, to 9 digits"
    else:
        words = f"within {steps} steps a weight strays by {gap:.1g}"
    print(f"beside ftp.SGDP: {words}")


class _Stranger(Twin):
    """A right one that no test can know by its name."""


def passes(test: Callable[[Any], Any], SGDP: Any) -> bool:
    """The verdict of a test: True or nothing is a pass; False, an assert that fails or a crash is not.

    >>> passes(lambda SGDP: apart(SGDP) < 1e-9, Twin)
    True
    """
    if not callable(test):
        raise Failed(f"a function is expected, yours is of type {type(test).__name__}; write my_test")
    try:
        verdict = test(SGDP)
    except NotImplementedError as stub:
        raise Unanswered(str(stub)) from None
    except Exception:
        return False
    if verdict is NotImplemented or verdict is ...:
        raise Unanswered
    if isinstance(verdict, str):
        raise Failed(f"a verdict is True or False, yours is of type str\n  {MEANING}")
    if isinstance(verdict, float) or (isinstance(verdict, Tensor) and verdict.is_floating_point()):
        raise Failed(f"{NUMBER}\n  {MEANING}")
    return verdict is None or bool(verdict)


def gallery(test: Any) -> None:
    """Print what a test does to each mutant, the story of each that got away, and whether it hurts what is right.

    >>> gallery(lambda SGDP: apart(SGDP) < 1e-9)  # doctest: +ELLIPSIS
    killed   wrong axis
    ...
    alive    late decay: weight decay after the projection: it pulls towards zero, not to W0, past the leash.
    ...
    """
    try:
        hurt = [name for name, right in (("ftp.SGDP", ftp.SGDP), ("the twin", Twin)) if not passes(test, right)]
        alive = [passes(test, mutant.optimizer) for mutant in MUTANTS]
    except (Unanswered, Failed):
        print("the gallery opens when your test is written")
        return
    if stopped := _stopped(test):
        print(f"the gallery opens when your test runs; {stopped}")
        return
    for name in hurt:
        print(f"hurt     {name}, which is right")
    for mutant, lives in zip(MUTANTS, alive, strict=True):
        print(f"alive    {mutant.name}: {mutant.story}" if lives else f"killed   {mutant.name}")


def judge(given: Any) -> str | None:
    """Right is a test that passes `ftp.SGDP` and its twin and kills every mutant.

    >>> judge(lambda SGDP: True)
    'you killed 0 of 12 mutants: your test never says no.\\n  return False where the optimizer is wrong'
    >>> print(judge(lambda SGDP: distance(SGDP) < 1e-9))
    your code stopped with NameError: name 'distance' is not defined
      a test that stops kills every optimizer, also the right one
    >>> print(judge(lambda SGDP: apart(SGDP, resume="later") < 1e-9).splitlines()[0])
    your code stopped with LabError: resume is 'later'; write one of None, 'same', 'late', 'reordered'
    """
    right = passes(given, ftp.SGDP)
    if stopped := _stopped(given):
        return f"{stopped}\n  a test that stops kills every optimizer, also the right one"
    alive = [mutant for mutant in MUTANTS if passes(given, mutant.optimizer)]
    score = f"you killed {len(MUTANTS) - len(alive)} of {len(MUTANTS)} mutants"
    if not right:
        return f"{UPSIDE_DOWN if alive else CONDEMNED}\n  {_why(given)}"
    if not (passes(given, Twin) and passes(given, _Stranger)):
        return f"{TO_THE_BIT}\n  the twin is never 1e-9 apart from ftp.SGDP, but not equal to it either"
    if len(alive) == len(MUTANTS):
        nothing = given(ftp.SGDP) is None
        return f"{score}: {RETURNS_NOTHING}" if nothing else f"{score}: {NEVER_NO}"
    others = f", with {len(alive) - 1} more" if len(alive) > 1 else ""
    return f"{score}.\n  alive{others}: {alive[0].name}: {alive[0].story}" if alive else None


def _why(given: Any) -> str:
    try:
        given(ftp.SGDP)
    except Exception as error:
        return f"with ftp.SGDP, {_told(error)}"
    return "with ftp.SGDP, it returned False"


def _stopped(given: Any) -> str:
    """One sentence if a test stops at an error of its own code, a misspelt name or situation; that is no verdict."""
    try:
        given(ftp.SGDP)
    except (NameError, TypeError, AttributeError, LabError) as error:
        return _told(error)
    except Exception:
        pass  # an assert that fails is a verdict
    return ""


def _told(error: Exception) -> str:
    first = str(error).strip().split("\n")[0]
    return f"your code stopped with {type(error).__name__}" + (f": {first}" if first else "")


CONDEMNED = "your test condemns every optimizer, also the right one, so it says nothing."
UPSIDE_DOWN = "your test condemns the right optimizer and passes broken ones; True means that the optimizer is right."
TO_THE_BIT = "your test condemns a right optimizer that only rounds differently; allow a difference of 1e-9."
NEVER_NO = "your test never says no.\n  return False where the optimizer is wrong"
RETURNS_NOTHING = "your test returns nothing.\n  is a `return` missing? False says that the optimizer is wrong"
NUMBER = "your test returned a number; return a comparison, such as apart(SGDP) < 1e-9."
MEANING = "True says that the optimizer is right"
_IMPORT = "from ftp.lab.exercises.kill_mutants import apart, walk\n"

EXERCISE = Exercise(
    name="kill_mutants",
    lesson="05",
    answer="my_test",
    missing="a test that returns True for a right SGDP and False for a broken one",
    well_done=f"You killed {len(MUTANTS)} of {len(MUTANTS)} mutants, and no right optimizer was hurt.",
    hints=(
        "apart(SGDP) is one situation, a plain run; which other situations of walk does an optimizer meet in its life?",
        "a bug is seen only where its part has work to do: weight decay, κ below 1, a missing gradient, a resume.",
        "return all(apart(SGDP, **s) < 1e-9 for s in situations), with all three kinds of resume among the situations.",
    ),
    solution="""
def my_test(SGDP):
    from ftp.lab.exercises.kill_mutants import apart

    situations = [{"weight_decay": 0.1}, {"k": 0.2}, {"missing": "second"}, {"exclude_set": {"haed.*"}}]
    situations += [{"resume": how} for how in ("same", "late", "reordered")]
    return all(apart(SGDP, **situation) < 1e-9 for situation in situations)
""",
    questions=(Question(""),),
    judge=judge,
    mistakes=(
        Mistake("my_test = lambda SGDP: True", "you killed 0 of 12 mutants: your test never says no."),
        Mistake(
            _IMPORT + "def my_test(SGDP):\n    apart(SGDP) < 1e-9",
            "you killed 0 of 12 mutants: your test returns nothing.",
        ),
        Mistake(
            _IMPORT + 'my_test = lambda SGDP: walk(SGDP)["loss"][-1] < walk(SGDP)["loss"][0] / 2',
            "you killed 0 of 12 mutants: your test never says no.",
        ),
        Mistake("my_test = lambda SGDP: False", CONDEMNED),
        Mistake(_IMPORT + "my_test = lambda SGDP: apart(SGDP)", NUMBER),
        Mistake(_IMPORT + "my_test = lambda SGDP: apart(SGDP) < 1e-9 and apart(SGDP, k=0.2)", NUMBER),
        Mistake(_IMPORT + "my_test = lambda SGDP: apart(SGDP) > 1e-9", UPSIDE_DOWN),
        Mistake("my_test = lambda SGDP: SGDP is ftp.SGDP", TO_THE_BIT),
        Mistake(_IMPORT + "my_test = lambda SGDP: apart(SGDP) == 0", TO_THE_BIT),
        Mistake("my_test = lambda SGDP: SGDP.__name__ in ('SGDP', 'Twin')", TO_THE_BIT),
        Mistake(_IMPORT + "my_test = lambda SGDP: apart(SGDP) < 1e-9", "you killed 5 of 12 mutants."),
        Mistake(
            _IMPORT + "my_test = lambda SGDP: max(apart(SGDP, weight_decay=0.1), apart(SGDP, k=0.2)) < 1e-9",
            "you killed 7 of 12 mutants.",
        ),
        Mistake(
            _IMPORT + 'my_test = lambda SGDP: apart(SGDP, k=0.2, weight_decay=0.1, missing="second") < 1e-9',
            "you killed 8 of 12 mutants.",
        ),
    ),
    variants=(
        _IMPORT
        + """
def my_test(SGDP):
    assert apart(SGDP, k=0.2) < 1e-6
    assert apart(SGDP, weight_decay=0.1, missing="first") < 1e-6
    for how in ("same", "late", "reordered"):
        assert apart(SGDP, resume=how) < 1e-6
    assert apart(SGDP, exclude_set=["nobody"]) < 1e-6
""",
    ),
    takes="value",
)
