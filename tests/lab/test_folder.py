"""The world of one's own pictures: how a tree is read, what is said about it, and that a run can be repeated."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lab.cli import Call
from lab.trees import KINDS, add_odd_ones, draw
from PIL import Image

from ftp.lab import worlds
from ftp.lab.catalogue import corruptions
from ftp.lab.evaluate import Corrupted
from ftp.lab.record import LabError
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning
from ftp.lab.worlds import _augment, _pictures
from ftp.lab.worlds._pictures import decode

LAYOUT = "id/train/<class>/*.jpg and, as you like, id/val, id/test and ood/<shift>, each with folders of classes"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_pictures, "FRESH_SECONDS", 0.0)
    _pictures.forget()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return draw(tmp_path / "pictures")


def opened(tree: Path, **options: Any) -> Any:
    return worlds.load("folder", {"data": str(tree), "size": 32, "weights": "none", **options})


def sentence(tree: Path, **options: Any) -> str:
    with pytest.raises(LabError) as error:
        opened(tree, **options).split("train")
    return str(error.value)


# ---- what a tree is


def test_val_and_test_are_split_off_train_class_by_class(tree: Path) -> None:
    world = opened(tree)
    assert world.roles == {"train": "train", "val": "val", "id": "home", "sketch": "shift"}
    assert world.classes == KINDS
    parts = {name: set(world.split(name).names) for name in ("train", "val", "id")}
    assert [len(part) for part in parts.values()] == [15, 3, 6]
    assert len(set.union(*parts.values())) == 24
    other = opened(tree, split_seed=1)
    assert set(other.split("train").names) != parts["train"]
    shutil.copy(tree / "id/train/circle/0.jpg", tree / "id/train/circle/new.jpg")
    moved = set(opened(tree).split("train").names) ^ parts["train"]
    assert len(moved) <= 2  # one picture more moves no other, but at the seams


def test_splits_that_are_there_are_taken_as_they_are(tmp_path: Path) -> None:
    tree = draw(tmp_path / "pictures", 3, 2, ("id/train", "id/val", "id/test"))
    world = opened(tree)
    assert [len(world.split(name)) for name in ("train", "val", "id", "sketch")] == [9, 9, 9, 6]
    assert all(name.startswith("id/test/") for name in world.split("id").names)
    labels = world.split("id").labels.tolist()
    assert labels != sorted(labels)  # mixed: the first pictures stand for all


def test_fewer_labels_keep_every_class(tree: Path) -> None:
    world = opened(tree)
    few, more = world.split("train", 0.2), world.split("train", 0.6)
    assert few.labels.bincount().tolist() == [1, 1, 1]
    assert set(few.names) < set(more.names)


def test_the_contract_of_a_world(tree: Path) -> None:
    world = opened(tree)
    model = world.model(0).eval()
    for split in world.roles:
        images, labels = world.split(split).batch(torch.arange(3))
        assert images.shape == (3, 3, 32, 32)
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert 0 <= images.min() <= images.max() <= 1
        assert int(labels.max()) < 3
        assert model(images).shape == (3, 3)
    assert world.unanchored == world.readout == ("head.weight", "head.bias")
    before, other = dict(model.named_parameters()), dict(world.model(1).named_parameters())
    assert {n for n, p in before.items() if not torch.equal(p, other[n])} == set(world.unanchored)
    assert world.provenance()["images"] == {"train": 15, "val": 3, "id": 6, "sketch": 12}


def test_the_id_follows_the_content_and_not_the_path(tree: Path, tmp_path: Path) -> None:
    def run(place: Path, **options: Any) -> str:
        return identify(resolve("folder", "ftp", {"data": str(place), "weights": "none", **options}))

    first = run(tree)
    copied = tmp_path / "elsewhere"
    shutil.copytree(tree, copied)
    assert run(copied) == run(tree, workers=3, cache="no") == first
    assert run(tree, size=64) != first
    picture = copied / "id/train/circle/0.jpg"
    picture.write_bytes((copied / "id/train/square/0.jpg").read_bytes())
    assert run(copied) != first


def test_looking_it_up_reads_no_picture(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pictures, "header", None)
    world = opened(tree)
    assert (world.shifts, world.classes, world.missing()) == (("sketch",), KINDS, "")
    code = (
        "import sys; from ftp.lab import worlds; from ftp.lab.run import identify\n"
        "from ftp.lab.settings import resolve\n"
        "identify(resolve('folder', 'ftp')); print('torch' in sys.modules, worlds.load('folder').shifts)"
    )
    env = {**os.environ, "FTP_DATA": str(tree), "FTP_MODEL": "torchvision:resnet18"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "False ('sketch',)\n", done.stderr


# ---- reading


@pytest.mark.parametrize("size", [(300, 200), (57, 121), (64, 64)])
def test_pictures_are_those_of_torchvision(size: tuple[int, int], tmp_path: Path) -> None:
    """The oracle: torchvision's own transforms of evaluation."""
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms import functional as F

    pixels = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    for name, mode in (("bilinear", InterpolationMode.BILINEAR), ("bicubic", InterpolationMode.BICUBIC)):
        expected = F.center_crop(F.resize(Image.fromarray(pixels), 73, mode), 64)
        assert np.array_equal(_augment.centre(decode(tmp_path / "a.png", 73, name), 64), np.asarray(expected))


def test_odd_pictures_are_read_as_people_see_them(tmp_path: Path) -> None:
    files = add_odd_ones(tmp_path)
    plain = {name: decode(files[name], 48, "bilinear") for name in ("cmyk", "deep", "palette", "turned", "clear")}
    assert all(pixels.shape[-1] == 3 and pixels.dtype == np.uint8 for pixels in plain.values())
    assert plain["turned"].shape[:2] == (56, 48)  # upright now
    assert (plain["clear"] == 255).all()
    grey = plain["cmyk"].astype(float).mean()
    assert abs(plain["deep"].astype(float).mean() - grey) < 40  # not all white, as a cut to 8 bit would be
    assert plain["deep"].std() > 2


def test_the_cache_and_reading_each_time_give_the_same(tree: Path, tmp_path: Path) -> None:
    kept, fresh = (opened(tree, cache=cache).split("train") for cache in ("disk", "no"))
    assert (kept.source.file is not None, fresh.source.file is None) == (True, True)
    for generator in (None, 3):
        a, b = (
            split.batch(torch.arange(6), generator and torch.Generator().manual_seed(generator))
            for split in (kept, fresh)
        )
        assert torch.equal(a[0], b[0])
    files = sorted(path.suffix for path in (tmp_path / "cache").rglob("*.*") if path.is_file())
    assert files == [".bin", ".json", ".json"]


@pytest.mark.parametrize("augment", _augment.KINDS)
def test_batches_do_not_depend_on_the_workers(augment: str, tree: Path) -> None:
    def batch(workers: int, seed: int) -> torch.Tensor:
        split = opened(tree, augment=augment, workers=workers).split("train")
        images: torch.Tensor = split.batch(torch.arange(12), torch.Generator().manual_seed(seed))[0]
        return images

    assert torch.equal(batch(1, 5), batch(3, 5))
    assert torch.equal(batch(1, 5), batch(1, 6)) == (augment == "none")


def test_every_operation_of_randaugment_changes_a_picture() -> None:
    pixels = np.random.default_rng(0).integers(0, 200, (32, 32, 3), dtype=np.uint8)
    changed = [not np.array_equal(action(Image.fromarray(pixels), 1.0), pixels) for action in _augment._ACTIONS]
    assert changed == [False, *[True] * 13]  # the first of the fourteen leaves it as it is


@pytest.mark.parametrize("kind", ["mixup", "cutmix"])
def test_mixed_pictures_have_mixed_labels(kind: str, tree: Path) -> None:
    split = opened(tree, augment="none", **{kind: 1.0}).split("train")
    images, targets = split.batch(torch.arange(8), torch.Generator().manual_seed(0))
    plain, labels = split.batch(torch.arange(8))
    assert targets.shape == (8, 3)
    torch.testing.assert_close(targets.sum(1), torch.ones(8))
    own = targets.gather(1, labels[:, None])[:, 0]
    other = plain.roll(1, 0)
    differs = labels != labels.roll(1)
    share = own[differs][0]
    if kind == "mixup":
        torch.testing.assert_close(images, share * plain + (1 - share) * other)
    else:
        same = (images == plain).all(1).float().mean((1, 2))
        assert (same >= share - 1e-6).all()
        assert ((images == plain) | (images == other)).all()


def test_all_nineteen_corruptions_work_at_the_size_of_the_network(tree: Path) -> None:
    world = opened(tree, size=64)
    clean = world.split("id").batch(torch.arange(3))[0]
    assert len(corruptions()) == 19
    for kind in corruptions():
        damaged, _ = Corrupted(world, kind, 3).batch(torch.arange(3))
        assert damaged.shape == clean.shape
        assert 0 <= damaged.min() <= damaged.max() <= 1
        assert not torch.equal(damaged, clean), kind


# ---- runs


def run_of(tree: Path, method: str = "ftp", checkpoint: Path | None = None, **settings: Any) -> FineTuning:
    own = {"data": str(tree), "size": 32, "weights": "none", "steps": 4, "batch": 6, **settings}
    how = {"stop": own.pop("stop")} if "stop" in own else {}
    how |= {"amp": own.pop("amp")} if "amp" in own else {}
    return FineTuning(
        resolve("folder", method, own), device="cpu", checkpoint=checkpoint, watches=0, evaluate_at_end=False, **how
    )


def weights(run: FineTuning) -> dict[str, torch.Tensor]:
    for _ in run:
        pass
    return {name: tensor.clone() for name, tensor in run.model.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_resume_is_exact_with_any_number_of_workers(tree: Path, tmp_path: Path) -> None:
    more = {"augment": "randaugment", "mixup": 0.2, "smoothing": 0.1}
    whole = weights(run_of(tree, workers=1, **more))
    file = tmp_path / "run.ckpt"
    answers = iter([False, False, True])
    half = run_of(tree, checkpoint=file, workers=2, stop=lambda: next(answers), **more)
    for _ in half:
        pass
    assert half.step == 2
    assert same(weights(run_of(tree, checkpoint=file, workers=3, **more)), whole)


def test_parts_of_a_batch_give_its_gradient(tree: Path) -> None:
    """LayerNorm's network: no layer there sees the batch as a whole."""
    whole, parts = (
        run_of(tree, model="timm:vit_tiny_patch16_224", accumulate=n, steps=1, augment="none") for n in (1, 3)
    )
    for run in (whole, parts):
        run.advance()
    for (name, a), (_, b) in zip(whole.model.named_parameters(), parts.model.named_parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_the_branches_of_a_gpu_run_on_a_cpu_where_it_can(tree: Path) -> None:
    run = run_of(tree, amp="bfloat16", steps=2)
    assert (run.amp, run.scaler.is_enabled()) == (torch.bfloat16, False)
    seen: list[torch.dtype] = []
    run.model.blocks[0].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    after = weights(run)
    assert set(seen) == {torch.bfloat16}
    assert all(tensor.dtype != torch.bfloat16 for tensor in after.values())  # weights stay as they are
    assert not same(after, weights(run_of(tree, steps=2)))
    convolutions = [m for m in run.model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert all(m.weight.is_contiguous(memory_format=torch.channels_last) for m in convolutions)


def test_memory_holds_only_the_batches_in_flight(tree: Path) -> None:
    run = run_of(tree, steps=40)
    for _ in range(5):
        run.advance()
        assert len(run.ahead._coming) <= 2
    assert isinstance(run.train.source.bytes, np.memmap)


# ---- what is said before training


def test_a_path_that_is_no_tree(tmp_path: Path, tree: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert sentence(nowhere) == f"data is '{nowhere}', which is not there; give a folder with {LAYOUT}"
    file = tmp_path / "a.zip"
    file.write_text("x")
    assert sentence(file) == f"data is '{file}', which is a file; give a folder with {LAYOUT}"
    (tmp_path / "flat" / "cats").mkdir(parents=True)
    flat = tmp_path / "flat"
    assert sentence(flat) == f"data is '{flat}', which has no id/train; arrange the pictures as {LAYOUT}"
    shutil.rmtree(tree / "id/train/circle")
    shutil.rmtree(tree / "id/train/square")
    where = tree / "id" / "train"
    assert sentence(tree) == f"{where} has one class (triangle); a task needs two or more folders of pictures in it"
    shutil.rmtree(tree / "id/train/triangle")
    assert sentence(tree) == f"{where} has no class with pictures; a task needs two or more folders of pictures in it"


def test_a_world_without_pictures_says_what_it_needs(lab: Call) -> None:
    need = (
        "the world folder needs your pictures; give a folder that has id/train/<class>/: "
        "--set data=PATH on the command line, make app DATA=PATH for the page"
    )
    assert worlds.load("folder").missing() == need
    said = lab("run", "folder")
    assert (said.code, said.err.strip()) == (2, need)
    assert "option data=: the folder" in lab("list", "worlds").out
    assert lab("recipe", "folder", "ftp").code == 0


def test_too_few_pictures_to_split_off_and_a_size_that_cannot_be_damaged(tree: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    for label in ("circle", "square"):
        (few / "id/train" / label).mkdir(parents=True)
        shutil.copy(tree / "id/train/circle/0.jpg", few / "id/train" / label / "0.jpg")
    assert sentence(few) == (
        f"{few / 'id' / 'train'} has 2 pictures of 2 classes, too few to split off val and test; "
        "put at least 3 pictures into each class"
    )
    assert opened(tree, size=7).missing() == "size is 7; it must be 0, for the size of the weights, or 8 to 2048"


def test_a_class_that_a_shift_lacks_is_told(tree: Path) -> None:
    lacking = tree / "ood/lacking/circle"
    lacking.mkdir(parents=True)
    shutil.copy(tree / "id/train/circle/0.jpg", lacking / "0.jpg")
    said = [remark for remark in opened(tree).remarks() if remark.startswith("the shift lacking has no picture of ")]
    assert len(said) == 1
    assert said[0].endswith("so its score is of the other classes alone; nothing to do if that is meant")


def test_a_shift_without_a_known_class_or_with_the_name_of_a_split(tree: Path) -> None:
    (tree / "ood/photos/dog").mkdir(parents=True)
    shutil.copy(tree / "id/train/circle/0.jpg", tree / "ood/photos/dog/0.jpg")
    photos = tree / "ood/photos"
    assert sentence(tree) == (f"{photos} has no picture of a class of id/train; put some there, or remove the folder")
    photos.rename(tree / "ood" / "val")
    assert sentence(tree) == f"{tree / 'ood' / 'val'} is called as a split at home; give the folder another name"


def test_a_healthy_tree_has_no_remarks(tree: Path) -> None:
    assert opened(tree).remarks() == []


def test_remarks(tmp_path: Path) -> None:
    tree = draw(tmp_path / "pictures", 4, 2, ("id/train", "id/val", "id/test"))
    add_odd_ones(tree / "id/train/circle")
    (tree / "id/train/circle/notes.heic").write_text("x")
    shutil.copy(tree / "id/train/square/1.png", tree / "id/test/square/again.png")
    (tree / "ood/sketch/dog").mkdir()
    shutil.copy(tree / "ood/sketch/circle/0.jpg", tree / "ood/sketch/dog/0.jpg")
    shutil.rmtree(tree / "id/test/triangle")
    (tree / "id/train/star").mkdir()
    shutil.copy(tree / "ood/sketch/circle/1.png", tree / "id/train/star/0.png")
    endings = ".jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff, .ppm, .pgm"
    circle = "id/train/circle"
    said = opened(tree).remarks()
    broken, foreign, double, shifted, stranger, no_val, no_test, lacking, single, *odd = said
    assert broken in (
        f"2 pictures cannot be read and will be left out: {circle}/{a}, {circle}/{b}; replace or delete them"
        for a, b in (
            ("text.jpg (no picture)", "truncated.jpg (truncated)"),
            ("truncated.jpg (truncated)", "text.jpg (no picture)"),
        )
    )
    assert foreign == (
        f"1 file is not read, by the ending: {circle}/notes.heic; "
        f"pictures may end in {endings}: convert them, or move them elsewhere"
    )
    assert double == (
        "1 picture of id is also in train, so id would look better than it is: "
        "id/test/square/again.png = id/train/square/1.png; delete one of each pair"
    )
    assert shifted == (
        "1 picture of sketch is also in train, so sketch would look better than it is: "
        "ood/sketch/circle/1.png = id/train/star/0.png; delete one of each pair"
    )
    assert stranger == (
        "sketch has a class that id/train does not have: dog; its pictures are left out: "
        "rename the folders, or add to id/train"
    )
    assert no_val == "val has no picture of star, so nothing is measured there for it: add some to id/val"
    assert no_test == (
        "id has no picture of star, triangle, so nothing is measured there for them: add some to id/test"
    )
    assert lacking == (
        "the shift sketch has no picture of star, so its score is of the other classes alone; "
        "nothing to do if that is meant"
    )
    assert single == "train has one picture of the class star; add more, or remove the folder"
    assert odd == [
        f"1 picture is in CMYK, colours of a printer: converted to RGB ({circle}/cmyk.jpg); "
        "nothing to do if that is meant",
        f"1 picture is in 16 bit, brought to 8 ({circle}/deep.png); nothing to do if that is meant",
        f"1 picture is in a palette: converted to RGB, transparent places white ({circle}/palette.png); "
        "nothing to do if that is meant",
        f"1 picture is in RGB with transparency: transparent places become white ({circle}/clear.png); "
        "nothing to do if that is meant",
        f"1 picture will be turned as the camera asks (EXIF): {circle}/turned.jpg; nothing to do",
    ]
    names = [name for split in ("train", "val") for name in opened(tree).split(split).names]
    assert not [name for name in names if "truncated" in name or "text" in name]


def test_a_full_disk_is_a_remark_and_no_obstacle(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(_pictures.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    world = opened(tree)
    needed = world.pictures.decoded_bytes(37)
    (remark,) = world.remarks()
    assert remark == (
        f"the decoded pictures need {needed / 1e9:.1f} GB and {tmp_path / 'cache/ftp-kit/pictures'} has 0.0 GB free, "
        "so they are decoded each time, which is slower; make room, or set XDG_CACHE_HOME to a folder on another disk"
    )
    assert len(world.split("train")) == 15


def test_a_cache_that_cannot_be_written(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    (remark,) = opened(tree).remarks()
    assert remark == (
        f"{tmp_path / 'cache/ftp-kit/pictures'} cannot hold the decoded pictures (not a directory), so they are "
        "decoded each time, which is slower; make room, or set XDG_CACHE_HOME to a folder on another disk"
    )


def test_a_picture_that_vanishes_is_a_sentence(tree: Path) -> None:
    split = opened(tree, cache="no").split("train")
    gone = tree / split.names[0]
    gone.unlink()
    with pytest.raises(LabError) as error:
        split.batch(torch.arange(1))
    assert (
        str(error.value) == f"{gone} cannot be read any more (No such file or directory); put it back, then run again"
    )


def test_doctor_says_it_all(tree: Path, lab: Call) -> None:
    add_odd_ones(tree / "id/train/circle")
    said = lab(
        *f"doctor --data {tree} --model efficientnet_lite0 --set size=32 --set weights=none --set batch=4".split()
    )
    lines = said.out.splitlines()
    assert said.code == 0
    assert lines[0].startswith("train     19 pictures: circle 9, square 5, triangle 5")
    assert "network   efficientnet_lite0 at 32 pixels, cut from 37" in lines
    assert sum(line.startswith("look at   ") for line in lines) == 6
    assert any(line.startswith("a run     about ") and "ftp-lab run folder --set" in line for line in lines)
    assert lines[-1] == "Training works; what to look at is said above."
    said = lab("doctor", "--model", "torchvision:resnet18")
    assert said.code == 2
    assert said.err.strip() == (
        "--model, --set and --labels belong to --data; write: ftp-lab doctor --data PATH --model M"
    )


def test_from_the_command_line_to_the_store(tree: Path, lab: Call) -> None:
    add_odd_ones(tree / "id/train/circle")
    call = f"run folder --set data={tree} --set size=32 --set weights=none --set steps=2 --set batch=4".split()
    said = lab(*call)
    assert said.code == 0, said.err
    assert "2 pictures cannot be read and will be left out" in said.err
    assert "images/s" in said.err
    assert "sketch" in said.out
    assert "is in the store already, so nothing was trained" in lab(*call).err


# ---- on the page


def test_the_page_takes_no_path_from_an_address_or_a_form(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a class anybody may write an address: it must not open a folder of the server."""
    options = worlds.world("folder").options
    assert {name for name, option in options.items() if option.private} == {"data", "model", "weights"}
    assert all(option.private for option in options.values() if option.path)
    import streamlit as st

    from app import widgets, world

    address = {"world": "folder", "data": str(tree), "model": "timm:resnet10t", "size": "64"}
    monkeypatch.setattr(st, "query_params", address)
    monkeypatch.setattr(st, "session_state", {})
    current = world.current()
    assert (current.option("data"), current.option("model"), current.option("size")) == ("", "efficientnet_lite0", 64)
    assert widgets._place() == {"world": "folder", "size": "64"}
    hidden = {name for name, option in options.items() if not widgets._is_for_a_form(option)}
    assert hidden == {"data", "model", "weights", "workers", "cache"}


def test_damage_is_drawn_on_the_first_test_pictures(tree: Path) -> None:
    from ftp.lab.damage import sheets

    drawn = sheets(opened(tree))
    assert set(drawn["pictures"]) == set(corruptions())
    assert len(drawn["labels"]) == 8
    assert set(drawn["labels"]) == {*KINDS, ""}  # six test pictures, and two empty places
