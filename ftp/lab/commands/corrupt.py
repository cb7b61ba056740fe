"""`ftp-lab corrupt`: damage a picture, or a folder of them, as ImageNet-C does."""

import importlib
import io
import zlib
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.commands._parser import choice, whole
from ftp.lab.commands._shared import write
from ftp.lab.progress import Progress, say
from ftp.lab.record import LabError
from ftp.lab.registry import unknown

if TYPE_CHECKING:
    from PIL.Image import Image

HELP = "damage a picture or a folder of pictures, as ImageNet-C does"
EXAMPLE = "ftp-lab corrupt cat.png foggy.png --kind fog --severity 3"
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".bmp": "BMP"}
HOW: dict[str, dict[str, Any]] = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True}}
Job = tuple[Path, Path, str, int]  # from, to, kind, seed


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help=f"a picture or a folder ({' '.join(FORMATS)})")
    parser.add_argument("target", metavar="OUT", help="a picture for a picture, a folder for a folder")
    parser.add_argument("--kind", metavar="K", required=True, help="one that `ftp-lab list corruptions` shows, or all")
    severity = whole("--severity", 1, 5, 3)
    parser.add_argument("--severity", metavar="S", type=severity, default=3, help="1 (mild) to 5 (3)")
    parser.add_argument(
        "--seed", metavar="N", type=whole("--seed", 0, 10**9 - 1, 0), default=0, help="of the noise (0)"
    )
    sets = choice("--parameters", ("auto", "imagenet", "cifar", "tiny"))
    parser.add_argument(
        "--parameters",
        metavar="P",
        type=sets,
        default="auto",
        help="imagenet (224 pixels), tiny (64), cifar (32) or auto, by size (auto)",
    )
    parser.add_argument("--force", action="store_true", help="write over pictures that are there")


def main(options: Namespace) -> int:
    from ftp.lab.catalogue import corruptions

    known = tuple(corruptions())
    if options.kind not in ("all", *known):
        raise LabError(unknown("--kind", options.kind, ("all", *known)))
    kinds = known if options.kind == "all" else (options.kind,)
    source, target = Path(options.source), Path(options.target)
    jobs = _jobs(source, target, kinds, many=options.kind == "all")
    existing = [to for _, to, _, _ in jobs if to.exists()]
    if existing and not options.force:
        more = f" and {len(existing) - 1} more are" if len(existing) > 1 else " is"
        raise LabError(f"{existing[0]}{more} there already; add --force to write over, or name another OUT")
    failed = _work(jobs, options, alone=source.is_file())
    written = len(jobs) - len(failed)
    say(f"wrote {written} picture{'' if written == 1 else 's'} to {target}")
    if failed:
        say(f"{len(failed)} of {len(jobs)} could not be made")
    return 1 if failed else 0


def _jobs(source: Path, target: Path, kinds: tuple[str, ...], *, many: bool) -> list[Job]:
    """What is to be made of what; each picture has its own seed, whatever lies beside it."""
    if source.is_file():
        if source.suffix.lower() not in FORMATS:
            raise LabError(f"{source} is no picture that is known here; it must end with one of {', '.join(FORMATS)}")
        if many:
            folder, stem, suffix = target, source.stem, source.suffix
            if target.suffix.lower() in FORMATS:
                folder, stem, suffix = target.parent, target.stem, target.suffix
            return [(source, folder / f"{stem}-{kind}{suffix}", kind, 0) for kind in kinds]
        target = target / source.name if target.is_dir() else target
        if target.suffix.lower() not in FORMATS:
            raise LabError(f"OUT is {str(target)!r}; for a picture it must end with one of {', '.join(FORMATS)}")
        return [(source, target, kinds[0], 0)]
    if not source.is_dir():
        raise LabError(f"IN is {str(source)!r}; there is no such picture or folder")
    if target.resolve().is_relative_to(source.resolve()):
        raise LabError(f"OUT is {str(target)!r} and lies inside IN; name a folder beside it")
    if target.exists() and not target.is_dir():
        raise LabError(f"OUT is {str(target)!r}, which is a file; for a folder it must be a folder")
    pictures = sorted(path for path in source.rglob("*") if path.suffix.lower() in FORMATS and path.is_file())
    if not pictures:
        raise LabError(f"there are no pictures in {source}; they must end with one of {', '.join(FORMATS)}")
    jobs = []
    for path in pictures:
        name = path.relative_to(source)
        seed = zlib.crc32(name.as_posix().encode(errors="surrogateescape"))
        jobs += [(path, (target / kind if many else target) / name, kind, seed) for kind in kinds]
    return jobs


def _work(jobs: list[Job], options: Namespace, *, alone: bool) -> list[Path]:
    """Do all jobs; returns what could not be made. A picture that is alone has nothing to go on with."""
    importlib.import_module("ftp.lab.corruptions")  # and with it torch: before the clock of the bar starts
    failed = []
    with Progress(len(jobs), "pictures") as progress:
        for count, (path, to, kind, seed) in enumerate(jobs, 1):
            try:
                data = _damaged(path, to.suffix.lower(), kind, options, seed)
                to.parent.mkdir(parents=True, exist_ok=True)
                write(str(to), data)
            except (OSError, ValueError, SyntaxError, MemoryError) as error:  # Pillow raises all of these
                reason = str(error) if isinstance(error, LabError) else f"{path} cannot be used ({_short(error)})"
                if alone:
                    raise LabError(f"{reason}; give another picture") from None
                progress.say(f"{reason}; the others go on")
                failed.append(path)
            if not alone or len(jobs) > 1:
                progress.at(count)
    return failed


def _short(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _damaged(path: Path, suffix: str, kind: str, options: Namespace, seed: int) -> bytes:
    """The damaged picture as a file; what is see-through stays so, if the format can hold it."""
    import torch
    from PIL import Image, ImageOps

    from ftp.lab.corruptions import corrupt

    with Image.open(path) as opened:
        image = ImageOps.exif_transpose(opened)
        image.load()
    alpha = None
    if "A" in image.getbands() or "transparency" in image.info:
        if image.mode != "LA":
            image = image.convert("RGBA")
        alpha = image.getchannel("A")
    image = _plain(image)
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    pixels = pixels.view(image.height, image.width, -1).permute(2, 0, 1).contiguous()
    g = torch.Generator().manual_seed(options.seed + seed)
    out = corrupt(pixels, kind, options.severity, generator=g, parameters=options.parameters)
    damaged = Image.frombytes(image.mode, image.size, out.permute(1, 2, 0).contiguous().numpy().tobytes())
    form = FORMATS[suffix]
    if alpha is not None and form in ("PNG", "WEBP"):
        damaged.putalpha(alpha)
    file = io.BytesIO()
    damaged.save(file, form, **HOW.get(form, {}))
    return file.getvalue()


def _plain(image: "Image") -> "Image":
    """Eight bits, grey or RGB."""
    if image.mode.startswith("I"):  # 16 bits: Pillow itself would clip them
        return image.convert("I").point(lambda level: level / 257).convert("L")
    return image.convert("L" if image.mode in ("1", "L", "LA", "La", "F") else "RGB")
