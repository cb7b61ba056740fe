"""The two passes on a CPU: builds `_native.cpp` once with the machine's compiler, and calls it.

Nothing here is needed: without `kernel="native"` no compiler is looked for and nothing is built.
"""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ftp._twopass import BASE_KEYS, BaseRule, Layout

SOURCE = Path(__file__).with_name("_native.cpp")
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared")
# for this machine and with threads, where the compiler can; else plainly
EXTRAS = (("-march=native", "-fopenmp"), ("-march=native",), ())
CHUNK = 2**15  # elements that a thread takes at a time


class _Layer(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("param", "grad", "anchor", "deviation")),
        ("state", ctypes.c_void_p * 3),
        ("length", ctypes.c_int64),
        ("first_row", ctypes.c_int64),
    ]


class NativeKernel:
    """The two passes over one layout, in C++.

    >>> NativeKernel.__name__
    'NativeKernel'
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.library = _library()
        self.rows = sum(layout.rows)
        self.like = layout.params[0]
        self.bits = 8 * self.like.element_size()
        self.layers = (_Layer * len(layout.params))()
        first_row, tasks = 0, []
        for i, (entry, rows, length) in enumerate(zip(self.layers, layout.rows, layout.lengths, strict=True)):
            entry.param = layout.params[i].data_ptr()
            entry.anchor = layout.anchors[i].data_ptr()
            entry.deviation = layout.deviations[i].data_ptr() if layout.deviations else None
            for slot, column in enumerate(layout.base):
                entry.state[slot] = column[i].data_ptr()
            entry.length, entry.first_row = length, first_row
            first_row += rows
            at_once = max(1, CHUNK // max(length, 1))
            tasks += [(i, start, min(start + at_once, rows)) for start in range(0, rows, at_once)]
        self.count = len(tasks)
        self.tasks = (ctypes.c_int64 * (3 * self.count))(*[number for task in tasks for number in task])

    def pass_one(
        self, grads: list[Tensor], rule: BaseRule, numbers: Tensor, corrections: Tensor
    ) -> tuple[Tensor, Tensor]:
        for entry, param, grad in zip(self.layers, self.layout.params, grads, strict=True):
            entry.param, entry.grad = param.data_ptr(), grad.data_ptr()
        dots, norms = self.like.new_empty(2, self.rows)
        kind, layers = list(BASE_KEYS).index(rule.kind), ctypes.c_int64(len(self.layers))
        self._call("pass_one", kind, int(rule.maximize), numbers, corrections, layers, dots, norms)
        return dots, norms

    def pass_two(self, factors: Tensor) -> None:
        self._call("pass_two", factors)

    def _call(self, name: str, *arguments: Any) -> None:
        pointers = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, Tensor) else a for a in arguments]
        function = getattr(self.library, f"{name}_{self.bits}")
        function(self.layers, self.tasks, ctypes.c_int64(self.count), torch.get_num_threads(), *pointers)


@functools.cache
def _library() -> ctypes.CDLL:
    """The built kernel; built on the first call on this machine, then taken from the user's cache folder."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX") or "", *COMPILERS))), None)
    if compiler is None:
        raise RuntimeError(
            f'kernel="native" needs a C++ compiler and there is none of {", ".join(COMPILERS)} here; '
            'install one (Debian and Ubuntu: apt install g++), set CXX, or write kernel="eager"'
        )
    errors = ""
    for extras in EXTRAS:
        # what the compiler says of itself and of this CPU: a home folder may be shared by different machines
        macros = _run(compiler, *extras, "-dM", "-E", "-x", "c++", os.devnull)
        if macros.returncode == 0:
            key = hashlib.sha256(
                SOURCE.read_bytes() + repr((compiler, FLAGS, extras)).encode() + macros.stdout.encode()
            )
            built = cache_folder() / f"native-{key.hexdigest()[:16]}.so"
            if not built.exists():
                made = _build(compiler, extras, built)
                errors = made.stderr
                if made.returncode:
                    continue
            return ctypes.CDLL(str(built))
        errors = macros.stderr
    raise RuntimeError(
        f'kernel="native" could not be built by {compiler}; write kernel="eager". It said: {errors.strip()}'
    )


def cache_folder() -> Path:
    """Where built kernels are kept.

    >>> cache_folder().name
    'ftp-kit'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ftp-kit"


def _build(compiler: str, extras: tuple[str, ...], built: Path) -> "subprocess.CompletedProcess[str]":
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RuntimeError(
            f'kernel="native" keeps what it builds in {built.parent}, which cannot be made ({error.strerror}); set '
            'XDG_CACHE_HOME to a folder of yours, or write kernel="eager"'
        ) from error
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:  # two processes may build at once: the last one wins
        fresh = Path(folder) / built.name
        done = _run(compiler, *FLAGS, *extras, str(SOURCE), "-o", str(fresh))
        if done.returncode == 0:
            fresh.replace(built)
    return done


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)
