"""Figures as functions: what every one promises, and what each one shows."""

import csv
import dataclasses
import importlib
import io
import itertools
import json
import math
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio
import pytest
from lab.records import LAYERS, METHODS, SHIFTS, make, many

import ftp.lab.figures as package
from ftp.lab.figures import FIGURES, METHOD_STYLE, Figure, WiseCurve, draw, figure, find
from ftp.lab.figures._labels import around, column
from ftp.lab.figures.data import BIAS, GAIN, WEIGHT, example_in_tasks, kind_of, rank_correlation
from ftp.lab.figures.severity_curves import kinds
from ftp.lab.figures.template import depth_colors, style
from ftp.lab.formats import thin
from ftp.lab.palette import DARK, LIGHT
from ftp.lab.record import CORRUPTIONS, LabError, RunRecord

WANTED = {
    *("constraint_growth", "constraint_heat", "constraint_final", "distance", "id_ood"),
    *("curves", "paper_table", "severity_curves", "training", "wise_curve"),
}
FEW = ("finetune", "l2_sp", "tpgm", "ftp")


def wise(method: str = "ftp", seed: int = 0) -> WiseCurve:
    alphas = tuple(i / 10 for i in range(11))
    id_ = tuple(60 + 37 * (1 - (1 - a) ** 3) for a in alphas)
    ood = tuple(80 + (7 if method == "ftp" else -2) * a + 30 * a * (1 - a) - seed for a in alphas)
    return WiseCurve(f"{seed:016x}", method, alphas, id_, ood, seed)


def data_for(name: str) -> Any:
    in_tasks = [example_in_tasks(method, seed) for method in ("finetune", "ftp") for seed in (0, 1)]
    data = {"one": make(), "many": many(FEW), "wise": [wise("finetune"), wise("ftp")]}
    return (data | {"task run": in_tasks[-1], "task runs": in_tasks})[FIGURES[name].needs]


def numbers(part: Any) -> Iterator[float]:
    """Every number in a figure's plain form."""
    if isinstance(part, dict):
        for value in part.values():
            yield from numbers(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from numbers(value)
    elif isinstance(part, float | int) and not isinstance(part, bool):
        yield part


def texts(part: Any) -> Iterator[str]:
    """Every text in a figure's plain form."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list | tuple):
        for value in part.values() if isinstance(part, dict) else part:
            yield from texts(value)


def colors(part: Any) -> set[str]:
    return set(re.findall(r"#[0-9A-Fa-f]{6}|rgba?\([^)]*\)", json.dumps(part)))


def told(call: Callable[..., Any], *given: Any, **options: Any) -> str:
    """The sentence that a person gets."""
    with pytest.raises(LabError) as caught:
        call(*given, **options)
    return str(caught.value)


def names(drawn: go.Figure) -> list[str]:
    return [trace.name for trace in drawn.data]


def broken(run: RunRecord, after: int) -> RunRecord:
    """A run whose numbers end at a step, as after a division by zero."""
    bad: dict[str, Any] = {"loss": math.nan, "gamma": (math.nan,) * 27, "distance": (math.inf,) * 27}
    return dataclasses.replace(
        run, points=tuple(p if p.step <= after else dataclasses.replace(p, **bad) for p in run.points)
    )


def test_the_registry_found_every_module() -> None:
    shared = {"data", "template", "logit_plane"}  # what figures share; one that needs runs of two kinds
    files = {m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")} - shared
    assert set(FIGURES) == files
    assert files >= WANTED
    assert all(importlib.import_module(f"ftp.lab.figures.{name}").__doc__ for name in files)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_contract(name: str) -> None:
    chosen, data = FIGURES[name], data_for(name)
    assert chosen.title
    assert len(chosen.title) <= 45
    assert chosen.question.endswith("?")
    light, dark = chosen.draw(data), chosen.draw(data, dark=True)
    assert isinstance(light, go.Figure)
    assert light.layout.title.text
    assert len(light.layout.title.text) <= 45
    assert all(math.isfinite(number) for number in numbers(light.to_dict()))
    assert "\\" not in light.to_json().replace("\\u", "").replace('\\"', "")  # no LaTeX
    assert "$" not in light.to_json()
    assert len(light.data) == len(dark.data)
    for drawn, look in ((light, LIGHT), (dark, DARK)):
        assert drawn.layout.paper_bgcolor == drawn.layout.plot_bgcolor == look.paper
        assert drawn.layout.title.font.color == drawn.layout.font.color == look.text
        for axis in (drawn.layout.xaxis, drawn.layout.yaxis):
            if not isinstance(drawn.data[0], go.Table):
                assert axis.tickfont.color == axis.color == look.text
        assert "#F0E442" not in colors(light.to_dict()["data"])  # yellow cannot be seen on white
    lines = chosen.table(data)
    assert lines
    assert all(isinstance(line, dict) and line.keys() == lines[0].keys() for line in lines)
    assert all(math.isfinite(v) for line in lines for v in line.values() if isinstance(v, float))
    assert len(list(csv.DictReader(io.StringIO(chosen.csv(data))))) == len(lines)


@pytest.mark.parametrize("name", sorted(WANTED))
def test_plotlys_default_template_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("streamlit.elements.plotly_chart")  # makes the template "streamlit" and the default
    drawn = []
    for default in ("plotly", "streamlit", "plotly_dark", None):
        monkeypatch.setattr(pio.templates, "default", default)
        drawn.append(draw(name, data_for(name)).to_json())
    assert len(set(drawn)) == 1


@pytest.mark.parametrize("name", sorted(WANTED))
def test_nothing_is_left_to_the_template(name: str) -> None:
    assert list(draw(name, data_for(name)).layout.template.to_plotly_json()["layout"]) == ["colorway"]


@pytest.mark.parametrize("name", sorted(WANTED))
def test_names_from_a_file_are_shown_letter_by_letter(name: str) -> None:
    link = '<a href="https://example.org">x</a>'
    run = make()
    evals = tuple(
        dataclasses.replace(e, scores={"accuracy": {**e.main, link: 50.0}}, corruptions={link: (50.0,) * 5})
        for e in run.evals
    )
    settings = dataclasses.replace(run.settings, method=link)
    measures = dataclasses.replace(run.measures, roles={**run.measures.roles, link: "shift"})
    run = dataclasses.replace(run, settings=settings, evals=evals, layers=(link, *LAYERS[1:]), measures=measures)
    drawn = draw(name, dataclasses.replace(wise(), method=link) if FIGURES[name].needs == "wise" else run)
    assert any("&lt;a " in text for text in texts(drawn.to_dict()))
    assert not any("<a " in text for text in texts(drawn.to_dict()))


ALONE = "there is one method, and nothing to compare it with; choose runs of two methods"


@pytest.mark.parametrize("name", sorted(WANTED))
def test_nothing_to_draw_is_a_sentence(name: str) -> None:
    assert told(draw, name, []) == f"the figure {name} was given nothing to draw; give at least one run"


@pytest.mark.parametrize("name", [name for name, f in FIGURES.items() if f.needs == "one"])
def test_one_run_or_a_list_of_one(name: str) -> None:
    assert draw(name, make()) == draw(name, [make()])
    assert told(draw, name, many(["ftp"])) == f"the figure {name} draws one run and 3 were given; choose one of them"


@pytest.mark.parametrize("name", [name for name, f in FIGURES.items() if f.needs == "many"])
def test_a_single_run_and_unfinished_ones(name: str) -> None:
    if name == "differences":
        assert told(draw, name, make()) == ALONE
        return
    assert draw(name, make()) == draw(name, [make()])
    running = make("ftp", 1, status="running", upto=40)
    if name == "curves":  # it follows runs while they train
        assert {trace.name for trace in draw(name, [make(), running]).data} == {"FTP, seed 0", "FTP, seed 1"}
        return
    sentence = f"run {running.run_id} (ftp, seed 1) is running; leave it out, or run it to its end first"
    assert told(draw, name, [make(), running]) == sentence


@pytest.mark.parametrize(
    "name", [name for name, f in FIGURES.items() if f.needs in ("one", "many") and name != "paper_table"]
)
def test_a_run_without_steps(name: str) -> None:
    bare = dataclasses.replace(make(), points=())
    if name in ("curves", "id_ood", "severity_curves"):
        assert draw(name, [bare]).data
        return
    if name == "differences":
        assert told(draw, name, [bare]) == ALONE
        return
    sentence = f"run {bare.run_id} (ftp, seed 0) has no training steps yet; draw it when its first ones are there"
    assert told(draw, name, [bare]) == sentence


@pytest.mark.parametrize("name", ["constraint_growth", "constraint_heat", "constraint_final"])
def test_a_run_without_constraints(name: str) -> None:
    run = make("finetune")
    sentence = f"run {run.run_id} (finetune, seed 0) has no constraint γ; choose a run of ftp, tpgm or mars_sp"
    assert told(draw, name, [run]) == sentence


@pytest.mark.parametrize("name", [name for name, f in FIGURES.items() if f.needs == "one"])
def test_a_run_that_broke_is_drawn_up_to_there(name: str) -> None:
    run = dataclasses.replace(broken(make(), 100), status="failed", evals=make().evals[:3], result=None)
    drawn = draw(name, run)
    assert all(math.isfinite(number) for number in numbers(drawn.to_dict()))
    if name == "training":
        assert "from step 102 on the loss is no number" in [note.text for note in drawn.layout.annotations]
        assert drawn.data[0].y[49] is not None
        assert drawn.data[0].y[50] is None


def test_unknown_names() -> None:
    assert told(find, "trainig") == "figure is 'trainig'; did you mean training?"
    with pytest.raises(ValueError) as caught:
        figure("training", title="", question="", needs="one", table=lambda run: [])
    assert str(caught.value) == "two figures are called 'training'; they are found by name: choose another one"


def test_options_are_told() -> None:
    assert FIGURES["severity_curves"].options == {"kind": None}
    assert FIGURES["id_ood"].options == {"each": False, "height": 500}
    assert FIGURES["training"].options == {}
    assert isinstance(FIGURES["training"], Figure)


def test_every_method_has_a_style_of_its_own() -> None:
    assert set(METHOD_STYLE) == {*METHODS, "wise"}
    for part in ("name", "light", "dark", "marker"):
        assert len({getattr(s, part) for s in METHOD_STYLE.values()}) == len(METHOD_STYLE), part
    assert "#F0E442" not in {s.light for s in METHOD_STYLE.values()}
    assert style("mine") == style("mine")
    assert style("mine").light not in {s.light for s in METHOD_STYLE.values()}


def contrast(a: str, b: str) -> float:
    """WCAG 2: (lighter + 0.05) / (darker + 0.05)."""

    def luminance(color: str) -> float:
        if color.startswith("#"):
            parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        else:
            parts = [int(v) for v in re.findall(r"\d+", color)[:3]]
        line = [v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_can_be_seen(dark: bool) -> None:
    look = DARK if dark else LIGHT
    assert contrast(look.text, look.paper) > 7
    assert contrast(look.muted, look.paper) > 4.5
    assert all(contrast(s.color(dark), look.paper) > 2.2 for s in METHOD_STYLE.values())
    layers = depth_colors(27, dark)
    assert len(set(layers)) == 27
    assert min(contrast(color, look.paper) for color in layers) > 2.4
    brightness = [contrast(color, "#000000") for color in layers]
    assert brightness == sorted(brightness)  # early layers dark, late ones light


def test_constraint_growth() -> None:
    run = make()
    drawn = draw("constraint_growth", run)
    assert names(drawn) == [*LAYERS, "depth"]
    for i, trace in enumerate(drawn.data[:-1]):
        assert trace.x == tuple(range(2, 301, 2))
        assert trace.y == tuple(point.gamma[i] for point in run.points)
    assert len({trace.line.color for trace in drawn.data[:-1]}) == 27
    assert "%{fullData.name}" in drawn.data[0].hovertemplate
    assert drawn.layout.showlegend is False
    bar = drawn.data[-1].marker.colorbar
    assert [text.split("<")[0] for text in bar.ticktext] == ["early", "late"]
    table = FIGURES["constraint_growth"].table(run)
    assert len(table) == 150
    assert list(table[0]) == ["step", *LAYERS]


def test_layers_without_a_constraint_are_left_out() -> None:
    run = make()
    points = tuple(dataclasses.replace(p, gamma=(None, *p.gamma[1:])) for p in run.points)
    run = dataclasses.replace(run, points=points)
    assert names(draw("constraint_growth", run)) == [*LAYERS[1:], "depth"]
    assert draw("constraint_heat", run).data[0].y == LAYERS[1:]
    shown = [layer for trace in draw("constraint_final", run).data for layer in trace.text]
    assert sorted(shown) == sorted(LAYERS[1:])


def test_long_runs_are_thinned() -> None:
    run = make(steps=3000, every=1)
    drawn = draw("constraint_growth", run)
    assert len(drawn.data[0].x) == 400
    assert (drawn.data[0].x[0], drawn.data[0].x[-1]) == (1, 3000)
    assert len(FIGURES["constraint_growth"].table(run)) == 3000
    assert thin([1, 2, 3], 3) == [1, 2, 3]


def test_constraint_heat() -> None:
    run = make()
    (heat,) = draw("constraint_heat", run).data
    assert heat.y == LAYERS  # plotly draws upward: early layers at the bottom
    assert heat.z[3][7] == run.points[7].gamma[3]
    assert draw("constraint_heat", run).layout.yaxis.autorange is None


def test_constraint_final() -> None:
    runs = many(["finetune", "ftp"])
    drawn = draw("constraint_final", runs)
    assert names(drawn) == [WEIGHT, GAIN, BIAS]
    assert len({trace.marker.symbol for trace in drawn.data}) == 3
    assert sum(len(trace.x) for trace in drawn.data) == 27
    ends = [run.points[-1].gamma[0] for run in runs[3:]]
    assert drawn.data[0].y[0] == pytest.approx(sum(ends) / 3)
    assert drawn.data[0].text[0] == "stem.weight"
    assert drawn.data[0].error_y.visible is True
    assert [note.text for note in drawn.layout.annotations] == ["stem", "stage1", "stage2", "stage3"]
    table = FIGURES["constraint_final"].table(runs)
    value = rank_correlation([line["depth"] for line in table], [line["gamma"] for line in table])
    assert f"all {value:+.2f}" in drawn.layout.title.subtitle.text
    several = draw("constraint_final", many(["tpgm", "ftp"]))
    shown = [trace.name for trace in several.data if trace.showlegend is not False]
    assert shown == ["TPGM", "FTP", WEIGHT, GAIN, BIAS]
    same = draw("constraint_final", many(["mars_sp"]))
    assert same.layout.title.subtitle.text.endswith("none, γ is the same everywhere")


def test_rank_correlation_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    y = [0.3, 0.1, 0.5, 0.5, 0.2, 0.9, 0.9, 0.9, 0.4]
    assert rank_correlation(range(9), y) == pytest.approx(stats.spearmanr(range(9), y).statistic)
    assert math.isnan(rank_correlation([1, 2, 3], [1, 1, 1]))
    assert math.isnan(rank_correlation([1, 2], [1, 2]))
    assert rank_correlation([1, 2, 3, 4], [1, 2, math.nan, 4]) == pytest.approx(1)


def test_kinds_of_layers() -> None:
    assert [kind_of(name) for name in LAYERS[:6]] == [WEIGHT, GAIN, BIAS] * 2
    gains = ("layer1.0.bn1.weight", "layer1.0.downsample.1.weight", "blocks.0.norm1.weight", "blocks.2.bridge.1.weight")
    assert {kind_of(name) for name in gains} == {GAIN}
    assert kind_of("blocks.2.bridge.0.weight") == kind_of("blocks.0.mlp.fc1.weight") == WEIGHT
    assert kind_of("weight") == WEIGHT


def test_distance() -> None:
    runs = many(["finetune", "ftp"])
    drawn = draw("distance", runs)
    assert names(drawn) == ["Vanilla FT", "FTP", "γ of FTP"]
    assert all(trace.y == LAYERS for trace in drawn.data)
    assert drawn.data[0].x[4] == pytest.approx(sum(run.points[-1].distance[4] for run in runs[:3]) / 3)
    assert drawn.data[2].x[4] == pytest.approx(sum(run.points[-1].gamma[4] for run in runs[3:]) / 3)
    assert drawn.data[1].marker.color == drawn.data[2].marker.color == METHOD_STYLE["ftp"].light
    gone = draw("distance", [broken(make(), 200)])
    assert set(gone.data[0].x) == {None}
    other = dataclasses.replace(make("finetune"), layers=LAYERS[::-1])
    assert told(draw, "distance", [make(), other]) == "the runs have different layers; compare runs of one model"


def test_id_ood() -> None:
    runs = many(FEW)
    drawn = draw("id_ood", runs)
    assert names(drawn) == ["Vanilla FT", "L2-SP", "TPGM", "FTP"]
    assert len({trace.marker.color for trace in drawn.data}) == len({t.marker.symbol for t in drawn.data}) == 4
    assert drawn.data[3].x[0] == pytest.approx(sum(run.result["id"] for run in runs[-3:]) / 3)
    assert drawn.data[3].y[0] == pytest.approx(sum(run.result["ood_avg"] for run in runs[-3:]) / 3)
    assert drawn.data[3].error_x.array[0] > 0
    assert drawn.data[3].error_y.array[0] > 0
    assert [note.text for note in drawn.layout.annotations[1:]] == names(drawn)
    across, along = drawn.layout.shapes
    assert across.x0 == across.x1 == drawn.data[0].x[0]  # through fine-tuning
    assert along.y0 == along.y1 == drawn.data[0].y[0]
    each = draw("id_ood", runs, each=True)
    assert [len(trace.x) for trace in each.data] == [3] * 4
    assert len(FIGURES["id_ood"].table(runs, each=True)) == 12
    alone = draw("id_ood", many(["ftp"], [0]))
    assert alone.layout.shapes == ()
    assert not alone.data[0].error_y.visible


def test_several_settings_share_a_colour_only() -> None:
    drawn = draw("id_ood", [make("ftp", k=k) for k in (0.0, 0.5, 1.0)])
    assert len({trace.marker.color for trace in drawn.data}) == 1
    assert len({trace.marker.symbol for trace in drawn.data}) == 3
    assert names(drawn) == ["FTP (k=0.0)", "FTP (k=0.5)", "FTP (k=1.0)"]


def test_severity_curves() -> None:
    runs = many(FEW)
    drawn = draw("severity_curves", runs)
    lines = [trace for trace in drawn.data if trace.mode == "lines+markers"]
    bands = [trace for trace in drawn.data if trace.fill == "toself"]
    assert [trace.name for trace in lines] == ["Vanilla FT", "L2-SP", "TPGM", "FTP"]
    assert [trace.name for trace in bands] == [f"{trace.name}, spread" for trace in lines]
    assert all(trace.x == (0, 1, 2, 3, 4, 5) and len(trace.y) == 6 for trace in lines)
    assert lines[3].y[0] == pytest.approx(sum(run.result["id"] for run in runs[-3:]) / 3)  # 0 is clean
    worst = [run.result["corruptions"][kind][4] for run in runs[-3:] for kind in CORRUPTIONS]
    assert lines[3].y[5] == pytest.approx(sum(worst) / 12)
    fog = draw("severity_curves", runs, kind="fog")
    clear = [run.result["corruptions"]["fog"][0] for run in runs[:3]]
    assert next(t for t in fog.data if t.name == "Vanilla FT").y[1] == pytest.approx(sum(clear) / 3)
    assert not [t for t in draw("severity_curves", many(FEW, [0])).data if t.fill]
    assert kinds(runs) == list(CORRUPTIONS)
    assert told(draw, "severity_curves", runs, kind="fogg") == "kind is 'fogg'; did you mean fog?"


def test_severity_needs_corruptions() -> None:
    run = make()
    final = dataclasses.replace(run.evals[-1], corruptions={})
    bare = dataclasses.replace(run, evals=(*run.evals[:-1], final))
    sentence = f"run {run.run_id} (ftp, seed 0) was not tested on corruptions; choose runs that were"
    assert told(draw, "severity_curves", [bare]) == sentence
    snow = dataclasses.replace(run.evals[-1], corruptions={"snow": (90.0,) * 5})
    other = dataclasses.replace(make("finetune"), evals=(snow,))
    sentence = "the runs were tested on different corruptions; choose runs that share at least one"
    assert told(draw, "severity_curves", [run, other]) == sentence


def test_training() -> None:
    run = make()
    drawn = draw("training", run)
    wanted = ["loss", "loss, smoothed", "ID", "OOD mean", *SHIFTS, "ID, final", "OOD mean, final"]
    assert names(drawn) == wanted
    assert drawn.data[0].y == tuple(point.loss for point in run.points)
    assert drawn.data[2].x == tuple(range(25, 301, 25))
    assert drawn.data[3].y[0] == pytest.approx(sum(run.evals[0].main[shift] for shift in SHIFTS) / 5)
    assert drawn.data[-2].y == (run.evals[-1].main["id"],)
    assert max(drawn.data[1].y) < max(drawn.data[0].y)
    early = draw("training", make(status="running", upto=10))
    assert names(early) == ["loss", "loss, smoothed"]
    assert early.layout.xaxis.range[1] > 300  # so that one sees how far it has to go


def test_wise_curve() -> None:
    drawn = draw("wise_curve", [wise("finetune"), wise("ftp"), wise("ftp", 1)])
    assert names(drawn) == ["Vanilla FT, seed 0", "FTP, seed 0", "FTP, seed 1"]
    assert drawn.data[0].x == wise("finetune").id
    assert drawn.data[1].y == wise("ftp").ood_avg
    assert drawn.data[1].marker.color == drawn.data[2].marker.color != drawn.data[0].marker.color
    texts = [note.text for note in drawn.layout.annotations]
    assert texts == ["Vanilla FT, α = 0", "FTP, α = 0", "Vanilla FT, α = 1", "FTP, α = 1"]
    empty = dataclasses.replace(wise(), alphas=(), id=(), ood_avg=())
    sentence = "the curve of run 0000000000000000 has no points; compute it for some alphas from 0 to 1"
    assert told(draw, "wise_curve", [empty]) == sentence
    gap = dataclasses.replace(wise(), id=(math.nan, *wise().id[1:]))
    assert draw("wise_curve", [gap]).data[0].x[0] is None


def test_paper_table() -> None:
    (drawn,) = draw("paper_table", many(FEW)).data
    assert [re.sub("<[^>]*>", "", name) for name in drawn.header.values][:2] == ["Method", "ID"]
    assert len(drawn.header.values) == len(drawn.cells.values) == 13
    assert all(len(cells) == 4 for cells in drawn.cells.values)
    assert sum("<b>" in cell for cell in drawn.cells.values[1]) == 1
    assert FIGURES["paper_table"].table(many(FEW))[0]["id_delta"] == 0


def test_labels_in_a_column_keep_apart_and_in_order() -> None:
    places = [50.0, 52.0, 53.0, 90.0, 99.0, 2.0]
    moved = column(places, 0, 100, gap=10)
    order = sorted(moved)
    assert all(b - a >= 10 - 1e-9 for a, b in itertools.pairwise(order))
    assert min(moved) >= 0
    assert max(moved) <= 100
    assert [sorted(moved).index(v) for v in moved] == [sorted(places).index(v) for v in places]
    assert column([50.0, 52.0], 0, 100, gap=10) == [46.0, 56.0]  # both give way


def test_labels_around_points_do_not_touch() -> None:
    points = [(100.0 + 3 * i, 100.0 + 2 * i) for i in range(6)]
    texts = ["Vanilla FT"] * 6
    centres = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(points, around(points, texts, 600, 400), strict=True)]
    for i, a in enumerate(centres):
        for b in centres[:i]:
            assert abs(a[0] - b[0]) > 66 or abs(a[1] - b[1]) > 15


def test_no_torch_is_loaded() -> None:
    code = "import sys, ftp.lab.figures as f; f.draw('id_ood', f.data.example()); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_curves_overlay_runs_and_say_what_tells_them_apart() -> None:
    runs = [make("finetune"), make("ftp"), make("ftp", k=0.5), make("ftp", status="running", upto=40, k=0.0)]
    drawn = draw("curves", runs)
    names = ["Vanilla FT", "FTP, k 1.0", "FTP, k 0.5", "FTP, k 0.0"]
    assert [trace.name for trace in drawn.data] == names * 3
    assert len({(trace.line.color, trace.line.dash) for trace in drawn.data}) == 4
    assert {trace.line.color for trace in drawn.data} == {METHOD_STYLE["finetune"].light, METHOD_STYLE["ftp"].light}
    assert drawn.data[1].y[-1] == pytest.approx(runs[1].summary().shift_mean)
    assert [drawn.layout.yaxis.title.text, drawn.layout.yaxis3.title.text] == ["OOD (%)", "loss"]
    assert [a.text for a in drawn.layout.annotations] == names
    bare = dataclasses.replace(make(), points=(), evals=())
    assert (
        told(draw, "curves", [bare]) == f"run {bare.run_id} (ftp, seed 0) has no steps yet; choose a run that has begun"
    )
