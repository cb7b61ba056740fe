"""The two passes on a GPU: many layers per launch, by tables of addresses.

A program of the grid takes a tile: some rows of one layer, over at most SPAN of their columns. Tiles of one shape
go in one launch, whatever layer they belong to. Rows longer than SPAN are cut, and their parts are added after.
"""

import contextlib
import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ftp._twopass import BaseRule, Layout, to_device

TILE = 1024  # elements in one round of a program
WIDTHS = (16, 128, 1024)  # columns of a tile: the first that a row fits in, else the last, again and again
SPAN = 16 * TILE  # columns of a row that one program walks over

# the rows of the table of addresses, and of the table of sizes
PARAM, GRAD, ANCHOR, DEVIATION, FIRST, SECOND, LARGEST = map(tl.constexpr, range(7))
ROWS, LENGTH, FIRST_ROW, FIRST_PART, PARTS = map(tl.constexpr, range(5))


@triton.jit
def _tile(tiles, sizes, layers, R: tl.constexpr):
    """Which layer, rows and columns this program has."""
    tile = tiles + 3 * tl.program_id(0)
    layer, row, start = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2)
    rows = row + tl.arange(0, R)
    inside = rows < tl.load(sizes + ROWS * layers + layer)
    return layer, rows, inside, start, tl.load(sizes + LENGTH * layers + layer)


@triton.jit
def _pointer(addresses, which, layers, layer, like):
    return tl.load(addresses + which * layers + layer).to(like.dtype)


@triton.jit(do_not_specialize=["layers"])
def _pass_one(
    addresses,
    sizes,
    tiles,
    numbers,
    corrections,
    dots,
    norms,
    layers,
    KIND: tl.constexpr,
    CACHED: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
    SPAN: tl.constexpr,
):
    layer, rows, inside, start, length = _tile(tiles, sizes, layers, R)
    param = _pointer(addresses, PARAM, layers, layer, dots)
    grad = _pointer(addresses, GRAD, layers, layer, dots)
    anchor = _pointer(addresses, ANCHOR, layers, layer, dots)
    deviation = _pointer(addresses, DEVIATION, layers, layer, dots)
    first = _pointer(addresses, FIRST, layers, layer, dots)
    second = _pointer(addresses, SECOND, layers, layer, dots)
    largest = _pointer(addresses, LARGEST, layers, layer, dots)
    lr, decay = tl.load(numbers), tl.load(numbers + 1)
    beta1, beta2, eps = tl.load(numbers + 2), tl.load(numbers + 3), tl.load(numbers + 4)
    gain = tl.load(corrections + layer)
    scale = gain  # of Adam only
    if KIND == "adam" or KIND == "amsgrad":
        gain = lr / -gain
        scale = 1 / tl.sqrt(-tl.load(corrections + layers + layer))

    dot = tl.zeros((R, C), dots.dtype.element_ty)
    norm = tl.zeros((R, C), dots.dtype.element_ty)
    stop = tl.minimum(start + SPAN, length)
    for column in range(start, stop, C):
        columns = column + tl.arange(0, C)
        mask = inside[:, None] & (columns < stop)[None, :]
        at = rows[:, None] * length + columns[None, :]
        w = tl.load(param + at, mask, 0.0)
        g = tl.load(grad + at, mask, 0.0)
        w0 = tl.load(anchor + at, mask, 0.0)
        if CACHED:
            dot += g * tl.load(deviation + at, mask, 0.0)
        else:
            dot += g * (w - w0)
        if MAXIMIZE:
            g = -g
        if KIND == "adam" or KIND == "amsgrad":
            m = tl.load(first + at, mask, 0.0)
            m += (1 - beta1) * (g - m)
            v = beta2 * tl.load(second + at, mask, 0.0) + (1 - beta2) * g * g
            tl.store(first + at, m, mask)
            tl.store(second + at, v, mask)
            if KIND == "amsgrad":
                v = tl.maximum(v, tl.load(largest + at, mask, 0.0))
                tl.store(largest + at, v, mask)
            w = (1 - lr * decay) * w - gain * m / (tl.sqrt(v) * scale + eps)
        else:
            g += decay * w
            if KIND != "plain":
                m = beta1 * tl.load(first + at, mask, 0.0) + gain * g
                tl.store(first + at, m, mask)
                if KIND == "nesterov":
                    g += beta1 * m
                else:
                    g = m
            w -= lr * g
        d = w - w0
        tl.store(param + at, w, mask)
        if CACHED:
            tl.store(deviation + at, d, mask)
        norm += tl.where(mask, tl.abs(d), 0.0)
    part = tl.load(sizes + FIRST_PART * layers + layer) + rows * tl.load(sizes + PARTS * layers + layer) + start // SPAN
    tl.store(dots + part, tl.sum(dot, 1), inside)
    tl.store(norms + part, tl.sum(norm, 1), inside)


@triton.jit(do_not_specialize=["layers"])
def _pass_two(addresses, sizes, tiles, factors, layers, R: tl.constexpr, C: tl.constexpr, SPAN: tl.constexpr):
    layer, rows, inside, start, length = _tile(tiles, sizes, layers, R)
    param = _pointer(addresses, PARAM, layers, layer, factors)
    anchor = _pointer(addresses, ANCHOR, layers, layer, factors)
    factor = tl.load(factors + tl.load(sizes + FIRST_ROW * layers + layer) + rows, inside, 1.0)[:, None]
    pulled = inside[:, None] & (factor != 1)  # a row within reach is left alone, bit for bit
    stop = tl.minimum(start + SPAN, length)
    for column in range(start, stop, C):
        columns = column + tl.arange(0, C)
        mask = pulled & (columns < stop)[None, :]
        at = rows[:, None] * length + columns[None, :]
        w = tl.load(param + at, mask, 0.0)
        w0 = tl.load(anchor + at, mask, 0.0)
        # the two forms of torch.lerp
        near = w0 + factor * (w - w0)
        far = w - (1 - factor) * (w - w0)
        tl.store(param + at, tl.where(factor < 0.5, near, far), mask)


class TritonKernel:
    """The two passes over one layout, in Triton."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.like = like = layout.params[0]
        parts = [-(-length // SPAN) for length in layout.lengths]  # into which a row is cut
        tiles: dict[int, list[Tensor]] = {}  # rows of (layer, first row, first column), by width
        for i, (rows, length) in enumerate(zip(layout.rows, layout.lengths, strict=True)):
            width = next((w for w in WIDTHS if length <= w), WIDTHS[-1])
            starts = torch.arange(0, rows, TILE // width), torch.arange(0, length, SPAN)
            tiles.setdefault(width, []).append(torch.cartesian_prod(torch.tensor([i]), *starts))
        self.tiles = {width: torch.cat(entries).to(like.device) for width, entries in tiles.items()}
        counts = [rows * part for rows, part in zip(layout.rows, parts, strict=True)]
        sizes = [layout.rows, layout.lengths, _starts(layout.rows), _starts(counts), parts]
        self.sizes = to_device(sizes, torch.int64, like.device)
        self.parts = sum(counts)
        # how many parts each row has, if any was cut
        self.cut = None
        if max(parts) > 1:
            of_rows = [part for rows, part in zip(layout.rows, parts, strict=True) for _ in range(rows)]
            self.cut = to_device(of_rows, torch.int64, like.device)
        self._addresses: tuple[list[list[int]], Tensor] | None = None

    def pass_one(
        self, grads: list[Tensor], rule: BaseRule, numbers: Tensor, corrections: Tensor
    ) -> tuple[Tensor, Tensor]:
        dots, norms = self.like.new_empty(2, self.parts)
        self.addresses = self._table(grads)
        options = {"KIND": rule.kind, "CACHED": self.layout.deviations is not None, "MAXIMIZE": rule.maximize}
        for width, tiles in self.tiles.items():
            self._launch(_pass_one, width, tiles, numbers, corrections, dots, norms, **options)
        if self.cut is None:
            return dots, norms
        both = [torch.segment_reduce(parts, "sum", lengths=self.cut, unsafe=True) for parts in (dots, norms)]
        return both[0], both[1]

    def pass_two(self, factors: Tensor) -> None:
        for width, tiles in self.tiles.items():
            self._launch(_pass_two, width, tiles, factors)

    def _launch(self, kernel: Any, width: int, tiles: Tensor, *arguments: Tensor, **options: Any) -> None:
        launch(
            kernel,
            (len(tiles),),
            self.addresses,
            self.sizes,
            tiles,
            *arguments,
            len(self.layout.params),
            R=TILE // width,
            C=width,
            SPAN=SPAN,
            **options,
        )

    def _table(self, grads: list[Tensor]) -> Tensor:
        """The addresses of all tensors, sent to the device again when a gradient has moved."""
        layout = self.layout
        nothing = [0] * len(grads)
        columns = [layout.params, grads, layout.anchors, layout.deviations, *layout.base]
        pointers = [[t.data_ptr() for t in column] if column else nothing for column in columns]
        pointers += [nothing] * (7 - len(pointers))
        if self._addresses is None or self._addresses[0] != pointers:
            self._addresses = pointers, to_device(pointers, torch.int64, self.like.device)
        return self._addresses[1]


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Start a kernel; a place to count launches."""
    device = arguments[0].device
    with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
        kernel[grid](*arguments, enable_fp_fusion=True, **options)


@functools.cache
def works(device: torch.device) -> bool:
    """Whether a kernel can be built and started on a device; Triton needs a C compiler."""
    try:
        weight, anchor = torch.ones(2, 1, device=device).unbind()
        kernel = TritonKernel(Layout([weight], [anchor], None, [], [1], [1]))
        kernel.addresses = kernel._table([weight])
        kernel.pass_two(torch.zeros(1, device=device))
    except Exception:  # whatever it is, torch's own operations do the same
        return False
    return True


def _starts(counts: list[int]) -> list[int]:
    """Where each entry begins when entries of these sizes lie one after another."""
    starts = [0]
    for count in counts[:-1]:
        starts.append(starts[-1] + count)
    return starts
