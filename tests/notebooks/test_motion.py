"""Figures that move: every position of a slider and every frame is what the kit computes there."""

from typing import Any

import pytest
import torch

from ftp.lab import motion, walks
from ftp.lab.exercises.step import number_by_number
from ftp.lab.lesson import card, figure

ROWS = torch.tensor([[1.5, 0.6], [-0.5, 1.4], [0.4, -0.3]])


def by_hand(row: list[float], length: float) -> list[float]:
    """One row pulled straight back to its post at 0, in plain numbers."""
    far = sum(map(abs, row))
    return [value * min(1.0, length / far) for value in row]


def test_every_position_of_the_leash_is_the_projection() -> None:
    fig = walks.leash_and_row(ROWS, [0.25, 1.0, 2.5])
    steps = fig.layout.sliders[0].steps
    assert [step.label for step in steps] == ["0.25", "1", "2.5"]
    for step, length in zip(steps, (0.25, 1.0, 2.5), strict=True):
        moved, layout, traces = step.args
        assert (step.method, layout, tuple(traces)) == ("update", {}, (0, 1, 2, 3))
        for at, row in enumerate(ROWS.tolist(), start=1):
            end = by_hand(row, length)
            assert [moved["x"][at][1], moved["y"][at][1]] == pytest.approx(end, abs=2e-4)
            assert moved["text"][at][1] == f"keeps {sum(map(abs, end)) / sum(map(abs, row)):.0%}"
        assert max(moved["x"][0]) == length


def test_a_row_is_chosen_without_moving_the_slider() -> None:
    fig = walks.leash_and_row(ROWS, [1.0])
    buttons = {button.label: button.args[0] for button in fig.layout.updatemenus[0].buttons}
    assert buttons["row 2"] == {"visible": [True, False, True, False]}
    assert buttons["all rows"] == {"visible": [True] * 4}


def test_a_walk_is_the_slow_loop() -> None:
    taken = walks.walk(40)
    draw = torch.Generator().manual_seed(0)
    weight, grads = walks.POSTS, []
    for step in taken:
        noise = 0.02 * torch.randn(3, 2, generator=draw, dtype=torch.float64)
        grads.append(weight - walks.GOALS + noise)
        weight = step.after
    rows = number_by_number(walks.POSTS, grads, 0.3, 1.0)
    assert [step.gamma for step in taken] == pytest.approx(rows[:, 0].tolist(), rel=1e-6, abs=1e-9)
    found = torch.stack([step.after.flatten() for step in taken])
    assert torch.allclose(found, rows[:, 1:], atol=1e-7)
    assert any(step.slope > 0 for step in taken)
    assert any(step.slope < 0 for step in taken)


def test_the_phases_of_a_step_come_one_after_the_other() -> None:
    taken = walks.walk(4)
    fig = walks.step_by_step(taken)
    steps = {step.label: step.args for step in fig.layout.sliders[0].steps}
    assert list(steps)[:6] == ["1 run", "1 look back", "1 pull", "2 run", "2 look back", "2 pull"]
    words = list(steps["3 look back"][1])
    assert words == ["annotations[0].text"]
    says = "longer" if taken[2].slope < 0 else "shorter"
    assert f"{says}; γ = {taken[2].gamma:.4f}" in steps["3 look back"][1][words[0]]
    assert "nobody has been asked yet" in steps["1 look back"][1][words[0]]
    ran, pulled = steps["3 run"][0], steps["3 pull"][0]
    assert ran["x"][2] == taken[2].before[:, 0].round(decimals=4).tolist()
    assert pulled["x"][2] == taken[2].after[:, 0].round(decimals=4).tolist()
    assert max(x for x in pulled["x"][0] if x is not None) == pytest.approx(0.4 + taken[2].gamma, abs=1e-4)


def test_a_played_walk_has_a_frame_for_every_second_step() -> None:
    fig = walks.playing(walks.walk(9))
    assert [frame.name for frame in fig.frames] == ["1", "3", "5", "7", "9"]
    assert [len(frame.data) for frame in fig.frames] == [3] * 5
    assert [entry.args[0] for entry in fig.layout.sliders[0].steps] == [(frame.name,) for frame in fig.frames]
    assert [button.label for button in fig.layout.updatemenus[0].buttons] == ["▶ play", "❚❚ stop"]


def moving() -> Any:
    fig = figure("A title").add_scatter(x=[0], y=[0]).add_bar(y=[1])
    positions = {"a": {"x": [[1], None]}, "b": {"x": [[2], None]}}
    return motion.slide(fig, "x", positions, [0, 1], words={"a": "first", "b": "second"}, start=1)


def test_a_slider_starts_where_it_says_and_leaves_room_for_itself() -> None:
    before, fig = figure("A title"), moving()
    assert (fig.data[0].x, fig.data[1].x) == ((2,), None)
    assert fig.layout.annotations[0].text == "second"
    assert fig.layout.height == before.layout.height + motion.BELOW + motion.LINE
    assert card(fig).layout.annotations[-1].text.endswith("live")
    assert "annotations[0].text" in fig.layout.sliders[0].steps[0].args[1]  # the card comes behind, and keeps its place
