"""`ftp-lab corrupt`: pictures of every kind, folders, and what cannot be read."""

from pathlib import Path

import numpy as np
import pytest
from lab.cli import Call
from PIL import Image

from ftp.lab.corruptions import KINDS


def picture(path: Path, mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ramp = np.arange(size[0] * size[1] * 4, dtype=np.uint8).reshape(size[1], size[0], 4)
    image = Image.fromarray(ramp, "RGBA") if mode != "I;16" else Image.fromarray(ramp[..., 0].astype(np.uint16) * 257)
    (image if mode == "I;16" else image.convert(mode)).save(path)
    return path


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "1", "I;16"])
def test_corrupt_a_picture(mode: str, lab: Call, tmp_path: Path) -> None:
    picture(tmp_path / "a.png", mode)
    assert lab("corrupt", "a.png", "b.png", "--kind", "brightness") == (0, "", "wrote 1 picture to b.png\n")
    with Image.open("a.png") as before, Image.open("b.png") as after:
        check(mode, before, after)


def check(mode: str, before: Image.Image, after: Image.Image) -> None:
    assert (after.size, "A" in after.getbands()) == (before.size, mode in ("RGBA", "LA", "P"))
    if "transparency" in before.info:
        before = before.convert("RGBA")
    grey = "L" if mode in ("L", "LA", "1", "I;16") else "RGB"
    if mode != "I;16":
        assert np.asarray(after.convert(grey)).mean() > np.asarray(before.convert(grey)).mean() + 3
    else:
        assert 120 < np.asarray(after).mean() < 200  # its mean level is 127 of 255
    if "A" in before.getbands():
        assert before.getchannel("A").tobytes() == after.getchannel("A").tobytes()


def test_corrupt_is_repeatable_and_never_writes_over(lab: Call, tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg")
    for out, seed in (("b.png", 1), ("c.png", 1), ("d.png", 2)):
        assert lab("corrupt", "a.jpg", out, "--kind", "gaussian_noise", "--seed", seed).code == 0
    b, c, d = ((tmp_path / f"{name}.png").read_bytes() for name in "bcd")
    assert b == c != d
    assert lab("corrupt", "a.jpg", "b.png", "--kind", "fog").code == 2
    assert (tmp_path / "b.png").read_bytes() == b
    assert lab("corrupt", "a.jpg", "b.png", "--kind", "fog", "--force").code == 0
    assert (tmp_path / "b.png").read_bytes() != b
    sets = [lab("corrupt", "a.jpg", f"{s}.png", "--kind", "contrast", "--parameters", s) for s in ("cifar", "imagenet")]
    assert [said.code for said in sets] == [0, 0]
    assert (tmp_path / "cifar.png").read_bytes() != (tmp_path / "imagenet.png").read_bytes()


def test_corrupt_by_all_kinds(lab: Call, tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    assert lab("corrupt", "a.png", "out", "--kind", "all").code == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"a-{kind}.png" for kind in KINDS}


def test_corrupt_a_folder(lab: Call, tmp_path: Path) -> None:
    names = ["a.png", "sub/b.JPG", "sub/deep/c.webp", "d.bmp"]
    for name in names:
        picture(tmp_path / "in" / name)
    (tmp_path / "in" / "sub" / "broken.png").write_bytes(b"no picture")
    picture(tmp_path / "in" / "small.png", size=(4, 4))
    (tmp_path / "in" / "note.txt").write_text("stays")
    said = lab("corrupt", "in", "out", "--kind", "shot_noise", "--severity", 5)
    assert said.code == 1
    lines = said.err.splitlines()
    assert sum("in/sub/broken.png cannot be used (" in line for line in lines) == 1
    assert sum("in/small.png cannot be used (" in line for line in lines) == 1
    assert lines[-2:] == ["wrote 4 pictures to out", "2 of 6 could not be made"]
    made = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert made == set(names)
    assert lab("corrupt", "in", "out", "--kind", "fog").err == (
        "out/a.png and 3 more are there already; add --force to write over, or name another OUT\n"
    )
