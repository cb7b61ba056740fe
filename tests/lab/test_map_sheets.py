"""Maps in sheets: nothing is lost on the way, and what is recorded of dense worlds says what its scores say."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ftp.lab import map_sheets, worlds
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.worlds._dense import IGNORED, LabelMapMeter, NormalMeter

RECORDED = [name for name in worlds.names() if has_extra("dense", name)]


def test_labels_come_back_to_the_last_one() -> None:
    labels = np.random.default_rng(0).integers(0, 256, (11, 16, 16)).astype(np.uint8)  # more than one row
    assert (map_sheets.tiles_of(map_sheets.sheet(labels), 16, 11) == labels[..., None]).all()


def test_directions_come_back_within_half_a_degree() -> None:
    vectors = F.normalize(torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    ignored = np.zeros((5, 16, 16), bool)
    ignored[:, 0] = True
    tiles = map_sheets.tiles_of(map_sheets.sheet(map_sheets.directions(vectors.numpy(), ignored)), 16, 5)
    assert (tiles[:, 0] == 0).all()
    assert (tiles[:, 1:].max(-1) > 0).all()
    back = F.normalize(torch.from_numpy(np.moveaxis(map_sheets.vectors_of(tiles), -1, 1)), dim=1)
    apart = torch.rad2deg(torch.acos((back[:, :, 1:] * vectors[:, :, 1:]).sum(1).clamp(-1, 1)))
    assert float(apart.max()) < 0.5


def test_a_map_is_enlarged_as_the_network_does_it() -> None:
    small = torch.randn(2, 3, 4, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    wanted = F.interpolate(small, (16, 16), mode="bilinear", align_corners=False)
    ours = map_sheets.enlarged(np.moveaxis(small.numpy(), 1, -1), 16)
    assert np.abs(np.moveaxis(ours, -1, 1) - wanted.numpy()).max() < 1e-12


@pytest.mark.parametrize("world", RECORDED)
def test_recorded_maps_have_the_recorded_scores(world: str) -> None:
    data = extra("dense", world)
    side, poses = data["side"], data["poses"]
    for about in data["tasks"].values():
        for run in about["runs"][::2]:
            for n in (0, len(data["scene_list"]) - 1):
                truth = map_sheets.tiles_of(about["truth"][n], side, max(poses) + 1)
                said = map_sheets.tiles_of(run["said"][n], run["side"], len(poses))
                for state in (0, 3, len(poses) - 1):
                    score, right = run["scores"][n][state], truth[poses[state]]
                    if about["classes"]:
                        meter = LabelMapMeter(about["classes"], leave_out_absent=True)
                        meter.add_labels(
                            torch.from_numpy(said[state, ..., 0])[None], torch.from_numpy(right[..., 0])[None]
                        )
                        assert meter.values()["mIoU"] == pytest.approx(score, abs=1e-3)
                    else:
                        vectors = map_sheets.enlarged(map_sheets.vectors_of(said[state : state + 1]), side)
                        wanted = np.where(right.any(-1, keepdims=True), map_sheets.vectors_of(right), IGNORED)
                        pairs = (torch.from_numpy(np.moveaxis(maps, -1, 1)) for maps in (vectors, wanted[None]))
                        normals = NormalMeter()
                        normals.add(*pairs)
                        assert normals.values()["mean angle"] == pytest.approx(score, abs=0.5)


@pytest.mark.parametrize("world", RECORDED)
def test_what_is_recorded_is_what_the_world_draws_today(world: str) -> None:
    from ftp.lab.worlds.scenes import drawn_maps, of_split

    data = extra("dense", world)
    where, dial = data["scene_list"][0], data["dials"][0]
    scene = of_split(where["split"])[where["number"]]
    for place in (0, len(dial["values"]) - 1):
        moved = replace(scene, **{dial["name"]: getattr(scene, dial["name"]) + dial["values"][place]})
        pose = data["poses"][dial["states"][place]]
        for task, truth in drawn_maps([moved]).items():
            if task in ("semseg", "parts"):
                tiles = map_sheets.tiles_of(data["tasks"][task]["truth"][0], data["side"], pose + 1)
                assert (tiles[pose, ..., 0] == truth[0].numpy()).all()
