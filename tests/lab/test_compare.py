"""Comparisons: the same budget for all, words that know about noise, a page that stands alone, the example tree."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from browsers import chromium, visiting
from lab.records import make, many
from playwright.sync_api import expect

from ftp.lab import emoji, methods
from ftp.lab.__main__ import main
from ftp.lab.emoji import tree
from ftp.lab.record import EvalEvent, RunRecord, result_of
from ftp.lab.report import Page, Tried, to_html
from ftp.lab.summary import Measures, Metric
from ftp.lab.tuning import MOST, SEED, Trial, best, trials
from ftp.lab.verdict import AHEAD, BEHIND, LEVEL, UNTOLD, judge


def scored(method: str, seed: int, home: float, shift: float) -> RunRecord:
    """A finished run with these scores."""
    run = make(method, seed)
    scores = {"accuracy": {"val": home, "id": home, **dict.fromkeys(run.measures.splits("shift"), shift)}}
    final = EvalEvent(300, scores, counts={"id": 400}, final=True)
    run = replace(run, evals=(final,))
    return replace(run, result=result_of(run))


def against(ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> list[str]:
    """The words for FTP against fine-tuning, at home and on the shifts."""
    runs = [scored(m, i, *s) for m, rows in (("finetune", theirs), ("ftp", ours)) for i, s in enumerate(rows)]
    return [difference.word for difference in judge(runs).differences]


def test_the_words_know_about_noise() -> None:
    base = [(90.0, 50.0), (90.2, 51.0), (89.9, 52.0)]
    clear = [(90.1, 60.0), (90.2, 61.2), (90.0, 62.0)]
    assert against(clear, base) == [LEVEL, AHEAD]
    assert against(base, clear) == [LEVEL, BEHIND]
    wild = [(90.1, 40.0), (90.2, 75.0), (90.0, 51.0)]
    assert against(wild, base) == [LEVEL, UNTOLD]
    assert against(clear[:2], base[:2]) == [UNTOLD, UNTOLD], "two seeds never tell"


def test_the_verdict_says_what_it_stands_on() -> None:
    runs = [scored("finetune", seed, 90.0 + seed / 10, 50.0 + seed) for seed in range(2)]
    runs += [scored("ftp", seed, 90.0, 60.0 + seed) for seed in range(2)]
    verdict = judge(runs)
    assert verdict.headline == (
        "Whether FTP helps here cannot be told with 2 seeds: −0.05 % at home, +10.00 % on the 5 shifts."
    )
    assert "home has 400 of them, and with 400 others each score would move by about 1.5 %" in verdict.limits
    of_sets = [
        replace(run, measures=Measures((replace(run.measures.main, per_picture=False),), run.measures.roles))
        for run in runs
    ]
    assert "others each score would move" not in judge(of_sets).limits, "no coin is thrown for each picture"
    alone = judge(runs[:2])
    assert alone.headline.startswith("Vanilla FT reaches 90.05 % at home")
    assert alone.differences == ()


@pytest.mark.parametrize("count", [2, MOST])
def test_every_method_gets_the_same_budget(count: int) -> None:
    for method in methods.PAPER:
        tried = trials("digits", method, count)
        assert len({str(sorted(trial.changed.items())) for trial in tried}) == count, method
        assert {trial.settings.seed for trial in tried} == {SEED}
        assert tried == trials("digits", method, MOST)[:count], "more trials begin with the same ones"


def test_what_a_person_fixes_is_not_varied_and_a_run_that_fell_apart_is_not_chosen() -> None:
    assert [trial.changed for trial in trials("digits", "finetune", 4, {"lr": "0.02"})] == [{}]
    assert all("lr" not in trial.changed for trial in trials("digits", "ftp", 4, {"lr": "0.02"}))
    first, *others = trials("digits", "ftp", 3)
    tried = [replace(trial, val=val) for trial, val in zip((first, *others), (math.nan, 90.0, 90.0), strict=True)]
    assert best(tried, Metric("accuracy")) is tried[1]
    with pytest.raises(ValueError, match="no trial of ftp came to an end with a validation score; try lower"):
        best([Trial(first.settings, {})], Metric("accuracy"))


def test_the_report_in_a_browser_asks_nobody_and_shows_every_figure(tmp_path: Path) -> None:
    runs = many(("finetune", "linear_probe", "ftp"))
    tried = [Tried("ftp", "lr=0.1 <b>", "97.1", True), Tried("ftp", "lr=0.3", "96.0", False)]
    file = tmp_path / "report.html"
    file.write_text(to_html(Page("Digits & more", runs, tried, "ftp-lab compare digits --seeds 3")), encoding="utf-8")
    assert file.stat().st_size < 8_000_000
    assert file.read_text(encoding="utf-8").count("Plotly.react(") == 1
    with chromium() as browser, visiting(browser, file.as_uri(), dark=True) as (page, seen):
        page.goto(file.as_uri())
        expect(page.locator(".plot").last.locator(".main-svg").first).to_be_visible()
        names = page.eval_on_selector_all(".plot", "all => all.map(plot => plot.getAttribute('aria-label'))")
        drawn = page.eval_on_selector_all(".plot", "all => all.filter(plot => plot.querySelector('.main-svg')).length")
        assert names[:4] == ["differences", "id_ood", "severity_curves", "constraint_growth"]
        assert drawn == len(names)
        assert page.locator(".headline").inner_text() == judge(runs).headline
        assert page.locator("tr.chosen").inner_text().startswith("FTP\tlr=0.1 <b>")
        assert page.locator("pre").inner_text() == "ftp-lab compare digits --seeds 3"
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(paper)
        page.locator("#theme").click()
        assert page.evaluate(paper) == "rgb(255, 255, 255)" != dark
        page.set_viewport_size({"width": 390, "height": 720})
        for _ in range(100):  # figures follow the window a moment later; the policy forbids wait_for_function
            if fits := page.evaluate("document.documentElement.scrollWidth") <= 390:
                break
            page.wait_for_timeout(100)
        assert fits, "something is wider than a phone"
        assert seen.errors == []
        assert [url for url in seen.foreign if not url.startswith("file:")] == []


def test_the_sheets_hold_the_same_things_and_lie_under_their_licences() -> None:
    assert len({thing.code for thing in emoji.things()}) == len({thing.name for thing in emoji.things()}) == 1410
    assert {thing.coarse for thing in emoji.things()} == {"", *emoji.classes()}
    licences = (emoji.HOME / "LICENCES.md").read_text(encoding="utf-8")
    for artist in emoji.artists():
        assert f"`{artist}.webp`" in licences
        assert (emoji.HOME / f"{artist}.webp").stat().st_size < 2_000_000
        opaque = emoji.pictures(artist)[..., 3].max(axis=(1, 2))
        empty = [thing.name for thing, most in zip(emoji.things(), opaque, strict=True) if most < 100]
        assert empty == (["squared new"] if artist == "openmoji_black" else []), "as in its package"


def test_the_tree_differs_in_the_artist_alone(tmp_path: Path) -> None:
    rows = list(tree.plan("things", 2023))
    parts = {part: {(label, thing.code, scene) for p, _, label, thing, scene in rows if p == part} for part, *_ in rows}
    assert len(parts) == 8
    assert all(parts[f"ood/{artist}"] == parts["id/test"] for artist in emoji.artists()[1:])
    kinds = list(tree.plan("kinds", 2023))
    seen = {part: {thing.code for p, _, _, thing, _ in kinds if p == part} for part, *_ in kinds}
    assert not seen["id/train"] & seen["id/test"]
    assert not seen["id/val"] & (seen["id/test"] | seen["id/train"])
    thing = emoji.things()[0]
    same = [tree.drawn("noto", thing, "a scene").tobytes() for _ in range(2)]
    assert same[0] == same[1] != tree.drawn("noto", thing, "another").tobytes()


def test_the_example_refuses_to_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["example", "emoji", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path} is not empty; name a new folder, such as {tmp_path / 'emoji'}\n"
    assert main(["example", "cats", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == "example is 'cats'; it must be one of emoji\n"
    assert main(["compare", "digits", "--report", "page.pdf"]) == 2
    assert capsys.readouterr().err == "--report is 'page.pdf'; it must be a page, such as --report report.html\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
