"""The repository itself: what it installs, what it imports, what its pages promise."""

import ast
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import ftp

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = [
    ROOT / name
    for name in (
        *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
        *("ftp/README.md", "app/README.md", "benchmarks/README.md"),
    )
]


def requirements() -> dict[str, Requirement]:
    lines = PROJECT["dependencies"] + [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    found = [Requirement(line) for line in lines]
    return {r.name: r for r in found if r.name != PROJECT["name"]}


def test_torch_is_the_only_hard_dependency() -> None:
    assert [Requirement(line).name for line in PROJECT["dependencies"]] == ["torch"]
    assert set(PROJECT["optional-dependencies"]) == {
        "lab",
        "cluster",
        "app",
        "notebooks",
        "pictures",
        "integrations",
        "test",
        "all",
    }


def test_environment_yml_is_pyproject() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [line for line in environment["dependencies"] if isinstance(line, str)]
    (pip,) = [line["pip"] for line in environment["dependencies"] if isinstance(line, dict)]
    assert plain == ["python>=3.11", "pip"]  # what the lab's packages need; the optimizers alone need less
    assert pip[-1] == "-e ."
    theirs = {Requirement(line).name: str(Requirement(line).specifier) for line in pip[:-1]}
    assert theirs == {name: str(r.specifier) for name, r in requirements().items()}


def test_constraints_fit_and_are_what_is_installed() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, requirement in requirements().items():
        assert requirement.specifier.contains(pins[name]), name
        assert importlib.metadata.version(name) == pins[name], name


def test_torch_and_torchvision_are_a_pair() -> None:
    (needed,) = [r for r in map(Requirement, importlib.metadata.requires("torchvision") or []) if r.name == "torch"]
    assert needed.specifier.contains(importlib.metadata.version("torch"))


def make(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_make_lists_its_targets() -> None:
    result = make()
    assert result.returncode == 0
    for target in ("app", "lab", "test", "check", "bench", "clean"):
        assert f"make {target} " in result.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_an_old_python_gets_one_sentence(clone: Path) -> None:
    old = clone / "old-python"  # answers as Python 3.8 would
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.8.18" && exit 0\nexit 1\n')
    old.chmod(0o755)
    result = make("test", f"PYTHON={old}", cwd=clone)
    assert result.returncode == 2
    assert result.stdout.strip() == (
        f"{old} is Python 3.8.18, and 3.11 or newer is needed; name a newer one: make PYTHON=python3.12 test"
    )
    missing = make("app", "PYTHON=no-such-python", cwd=clone)
    assert missing.stdout.strip() == (
        "There is no no-such-python here; install Python 3.11 or newer, or name yours: make PYTHON=/path/to/python3 app"
    )


@pytest.mark.slow
def test_a_failed_installation_says_what_to_do(clone: Path) -> None:
    result = make("app", f"PYTHON={sys.executable}", cwd=clone, PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_RETRIES="0")
    assert result.returncode == 2
    assert result.stdout.strip().endswith("then run make app again: it goes on where it stopped.")
    assert "Setting up .venv for app, once; make says how much that is." in result.stdout
    assert list((clone / ".venv").glob(".ready*")) == []


@pytest.mark.parametrize(
    ("target", "extras", "stamps"),
    [
        ("app", ["app"], {".ready-app"}),
        ("lab", ["notebooks"], {".ready-notebooks"}),
        ("check", ["all"], {".ready", ".ready-app", ".ready-notebooks"}),
    ],
)
def test_a_target_installs_what_it_needs_and_once(
    clone: Path, target: str, extras: list[str], stamps: set[str]
) -> None:
    """A python that only notes what it is asked for stands in for .venv; the later test upgrades it in place."""
    fake = clone / ".venv" / "bin" / "python"
    fake.parent.mkdir(parents=True)
    fake.write_text('#!/bin/sh\necho "$@" >> "$(dirname "$0")/../asked"\n')
    fake.chmod(0o755)
    for name in ("jupyter", "ruff", "mypy", "lint-imports"):
        (fake.parent / name).symlink_to("python")

    def installed() -> list[str]:
        asked = (clone / ".venv" / "asked").read_text()
        return re.findall(r"pip install .*-e \.\[(\w+)\]", asked)

    for _ in range(2):  # the second time there is nothing to install
        result = make(target, f"PYTHON={sys.executable}", cwd=clone)
        assert result.returncode == 0, result.stderr
        assert installed() == extras
    assert {path.name for path in (clone / ".venv").glob(".ready*")} == stamps
    make("check", f"PYTHON={sys.executable}", cwd=clone)
    for later in ("app", "lab"):
        make(later, f"PYTHON={sys.executable}", cwd=clone)
    assert installed() == list(dict.fromkeys([*extras, "all"]))


def closure(extra: str) -> set[str]:
    """The distributions that an extra brings in, by its own and their requirements."""
    names: set[str] = set()
    ahead = [(Requirement(f"{PROJECT['name']}[{extra}]"))]
    while ahead:
        asked = ahead.pop()
        key = f"{asked.name}[{','.join(sorted(asked.extras))}]".lower().replace("_", "-")
        if key in names:
            continue
        names.add(key)
        if asked.name == PROJECT["name"]:
            lines = [*PROJECT["dependencies"], *(line for e in asked.extras for line in extras_of(e))]
        else:
            lines = importlib.metadata.requires(asked.name) or []
        for requirement in map(Requirement, lines):
            marks = [{"extra": ""}, *({"extra": e} for e in asked.extras)]
            if requirement.marker is None or any(requirement.marker.evaluate(mark) for mark in marks):
                ahead.append(requirement)
    return {name.partition("[")[0] for name in names}


def extras_of(name: str) -> list[str]:
    return list(PROJECT["optional-dependencies"][name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "code"),
    [
        (
            "app",
            "import app.main, app.__main__, ftp.lab.worker, ftp.lab.train, ftp.lab.evaluate, ftp.lab.jobs\n"
            "from app import page\n[page.view(name) for name in (*page.names(), 'wall', 'teacher')]",
        ),
        ("notebooks", "import ftp.lab.lesson, ftp.lab.exercises, ftp.lab.train, ftp.lab.figures, jupyterlab.labapp"),
    ],
)
def test_an_extra_is_enough_for_its_target(extra: str, code: str) -> None:
    """Everything else that is installed here is hidden, then the target's code is imported."""
    needed = closure(extra)
    owners = importlib.metadata.packages_distributions()
    hidden = {
        module for module, names in owners.items() if not {name.lower().replace("_", "-") for name in names} & needed
    }
    hidden -= {"ftp", "app", "pip", "setuptools", "pkg_resources", "_distutils_hack"}
    assert {"ray", "dask", "mypy", "playwright", "pytest"} <= hidden
    script = (
        "import sys\n"
        f"hidden = {sorted(hidden)!r}\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in hidden: raise ModuleNotFoundError(f'{name} is hidden', name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    result = subprocess.run([sys.executable, "-c", script + code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_make_says_what_each_target_downloads() -> None:
    lines = [line for line in make().stdout.splitlines() if line.startswith("make ")]
    assert [line for line in lines if not re.search(r"\[\d\.\d GB\]$", line)] == [
        "make clean   remove .venv and all caches"
    ]


def test_a_missing_browser_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom browsers import NO_BROWSER\n"
        "@pytest.fixture(scope='session')\ndef browser(): pytest.skip(NO_BROWSER)\n"
        "def test_a(browser): ...\ndef test_b(browser): ...\ndef test_c(): pytest.skip('for another reason')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", str(tmp_path), "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    (line,) = [line for line in result.stdout.splitlines() if "Chromium" in line]
    assert line == (
        "2 tests were left out: there is no Chromium here; get one with: "
        ".venv/bin/playwright install --with-deps chromium (or apt install chromium), then make test"
    )


def test_importing_ftp_brings_in_torch_and_nothing_else() -> None:
    modules = [f"ftp.{m.name}" for m in pkgutil.iter_modules(ftp.__path__) if m.name != "_triton"]
    code = (
        "import sys, torch, torch.optim.adamw, torch.optim.sgd\n"
        "before = set(sys.modules)\n"
        f"import ftp, {', '.join(modules)}\n"
        "from ftp import SGDP, AdamP, HyperSGD, row_l1, mars_norm, project_mars\n"
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['ftp']"


def test_importing_ftp_alone_does_not_load_torch() -> None:
    code = "import sys, ftp; print('torch' in sys.modules, set(ftp.__all__) <= set(dir(ftp)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False True"
    with pytest.raises(AttributeError, match=r"^module 'ftp' has no attribute 'SGD'; it has SGDP, "):
        _ = ftp.SGD


def test_every_function_has_a_doctest() -> None:
    missing = []
    for info in pkgutil.iter_modules(ftp.__path__):
        if info.name == "_triton":  # Triton is not everywhere
            continue
        module = importlib.import_module(f"ftp.{info.name}")
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) != module.__name__ or name.startswith("_"):
                continue
            if (inspect.isfunction(thing) or inspect.isclass(thing)) and ">>>" not in (thing.__doc__ or ""):
                missing.append(f"{module.__name__}.{name}")
    for owner in (ftp._projected.Projected, ftp.HyperSGD):
        for name, method in vars(owner).items():
            if inspect.isfunction(method) and not name.startswith("_") and ">>>" not in (method.__doc__ or ""):
                missing.append(f"{owner.__name__}.{name}")
    assert missing == []


def test_links_and_paths_in_the_pages_exist() -> None:
    for page in PAGES:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        for path in re.findall(r"`((?:ftp|app|tests|benchmarks|data_scripts|notebooks)/[\w./]*)`", text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


def test_every_name_of_the_glossary_exists() -> None:
    text = (ROOT / "ftp" / "README.md").read_text()
    glossary = text.split("## Glossary")[1].split("##")[0]
    names = {
        name
        for row in glossary.splitlines()[4:]
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    source = "\n".join(path.read_text() for path in (ROOT / "ftp").glob("*.py"))
    known = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    known |= {node.arg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg)}
    known |= set(re.findall(r"def (\w+)", source)) | set(re.findall(r'"(\w+)"', source))
    assert len(names) > 12
    assert names <= known, names - known


def test_every_file_of_the_module_is_in_its_readme() -> None:
    text = (ROOT / "ftp" / "README.md").read_text()
    for path in (ROOT / "ftp").glob("*.py"):
        assert path.name == "__init__.py" or f"`{path.name}`" in text, path.name


def test_the_example_of_the_readme_runs() -> None:
    import torch

    example, lab = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    model = torch.nn.ModuleDict({"body": torch.nn.Linear(3, 3), "head": torch.nn.Linear(3, 2)})
    scope: dict[str, object] = {"model": model}
    exec(example.replace("...\n", "pass\n", 1), scope)
    assert list(scope["optimizer"].constraints()) == ["body.weight", "body.bias"]  # type: ignore[attr-defined]
    exec(
        lab.replace('"seed": 1', '"seed": 1, "steps": 2, "batch": 8').replace("finetune(", "short(", 1), scope_of_lab()
    )


def scope_of_lab() -> dict[str, object]:
    """The names of the lab's example, with a run that ends after its steps."""
    from ftp.lab.train import finetune

    return {"short": lambda *run: finetune(*run, watches=0, evaluate_at_end=False, device="cpu")}


def test_no_file_holds_a_path_of_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for path in (ROOT / name for name in listed):
        if path.suffix not in (".png", ".gif", ".webp", ".gz", ".safetensors") and path.exists():
            for place in (ROOT, Path.home()):
                assert f"{place}/" not in path.read_text(), path.name
