"""Figures with all methods, or with several settings of one, can still be read."""

from collections import Counter

import pytest
from lab.records import METHODS, make, many

from ftp.lab.figures import FIGURES, WiseCurve, draw


def test_the_names_of_a_finished_run_lie_beside_its_stars() -> None:
    drawn = draw("training", make())
    stars = max(trace.x[0] for trace in drawn.data if trace.marker.symbol == "star")
    notes = [note for note in drawn.layout.annotations if note.yref == "y2"]
    assert len(notes) == 7  # ID, the mean, five shifts
    assert all(note.x > stars and note.x == drawn.layout.xaxis.range[1] for note in notes)
    running = draw("training", make(status="running", upto=100))
    assert {note.x for note in running.layout.annotations} == {100}  # at the ends of the lines


def test_a_constraint_that_is_the_same_everywhere_is_told_in_words() -> None:
    runs = many(["mars_sp", "ftp"])
    drawn, alone = draw("constraint_final", runs), draw("constraint_final", many(["ftp"]))
    assert [trace.y for trace in drawn.data] == [trace.y for trace in alone.data]
    gamma = runs[0].points[-1].gamma[0]
    told = drawn.layout.title.subtitle.text
    assert told == f"{alone.layout.title.subtitle.text}; MARS-SP: γ = {gamma:g} everywhere"
    assert drawn.layout.yaxis.range == alone.layout.yaxis.range
    methods = {line["method"] for line in FIGURES["constraint_final"].table(runs)}
    assert methods == {"MARS-SP", "FTP"}  # the numbers are all there


@pytest.mark.parametrize("dark", [False, True])
def test_settings_of_one_method_have_colours_of_their_own_where_markers_tell_the_kind(dark: bool) -> None:
    drawn = draw("constraint_final", [make("tpgm"), *(make("ftp", k=k) for k in (0.0, 0.5, 1.0))], dark=dark)
    named = [trace for trace in drawn.data if trace.x == (None,)][:4]
    assert [trace.name for trace in named] == ["TPGM", "FTP (k=0.0)", "FTP (k=0.5)", "FTP (k=1.0)"]
    assert len({trace.marker.color for trace in named}) == 4
    points = Counter(trace.marker.color for trace in drawn.data if trace.x != (None,))
    assert points == Counter({trace.marker.color: 3 for trace in named})  # as the legend says


def test_the_axis_of_constraints_holds_every_point_and_no_empty_half() -> None:
    drawn = draw("constraint_final", many(["ftp"]))
    low, high = drawn.layout.yaxis.range
    tops = [y + bar for trace in drawn.data for y, bar in zip(trace.y, trace.error_y.array, strict=True)]
    assert low <= 0 < max(tops) < high < 1.1 * max(tops)
    assert low > -0.05 * high


def test_many_bands_are_fainter_than_few() -> None:
    def solid(methods: tuple[str, ...]) -> set[float]:
        bands = [trace for trace in draw("severity_curves", many(methods)).data if trace.fill]
        assert len(bands) == len(methods)
        return {float(trace.fillcolor.rstrip(")").split(",")[-1]) for trace in bands}

    (few,), (all_of_them,) = solid(("finetune", "ftp")), solid(METHODS)
    assert all_of_them * len(METHODS) <= 0.5 < few * 4


def test_the_reference_names_its_fine_tuning_if_there_are_several() -> None:
    drawn = draw("id_ood", [make("finetune", lr=lr) for lr in (0.2, 0.1)] + [make("ftp")])
    assert drawn.layout.annotations[0].text == "↑ more robust than Vanilla FT (lr=0.2)"
    assert drawn.layout.shapes[1].y0 == drawn.data[0].y[0]
    one = draw("id_ood", [make("finetune"), make("ftp")])
    assert one.layout.annotations[0].text == "↑ more robust than fine-tuning"


def test_a_common_start_of_wise_is_named_once_and_others_by_their_method() -> None:
    ftp = WiseCurve("0" * 16, "ftp", (0.0, 1.0), (60.0, 97.0), (80.0, 87.0))
    near = WiseCurve("1" * 16, "finetune", (0.0, 1.0), (60.1, 98.0), (80.1, 60.0))
    far = WiseCurve("2" * 16, "finetune", (0.0, 1.0), (70.0, 98.0), (80.0, 60.0))
    for other, starts in ((near, ["α = 0, pre-trained"]), (far, ["FTP, α = 0", "Vanilla FT, α = 0"])):
        texts = [note.text for note in draw("wise_curve", [ftp, other]).layout.annotations]
        assert texts == [*starts, "FTP, α = 1", "Vanilla FT, α = 1"]
