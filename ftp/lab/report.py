"""A comparison as one page that can be mailed: headline, figures, table, settings tried, provenance. Without torch.

The page asks no other machine for anything (its own Content-Security-Policy forbids it): Plotly is inside, once, and
every figure is there in light and in dark.
"""

import html
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ftp.lab.figures import draw
from ftp.lab.figures.data import about
from ftp.lab.formats import counted, duration
from ftp.lab.record import LabError, RunRecord
from ftp.lab.summary import Metric
from ftp.lab.table import Cell, columns, groups, rows, title
from ftp.lab.verdict import Verdict, judge


@dataclass(frozen=True)
class Tried:
    """One row of the settings tried: a method, what was set, its validation score as text, whether it was chosen."""

    method: str
    settings: str
    val: str
    chosen: bool


@dataclass(frozen=True)
class Page:
    """What a report is made of. `facts` are lines about the world; `command` repeats the comparison."""

    heading: str
    records: Sequence[RunRecord]
    tried: Sequence[Tried] = ()
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def to_html(page: Page) -> str:
    """The whole page. The same runs give the same page, but for the day it was made."""
    from plotly.offline import get_plotlyjs

    verdict = judge(page.records)
    metric = page.records[0].measures.main
    drawings = list(_figures(page.records))
    frames = [
        f'<figure><div class="plot" id="plot{i}" role="img" aria-label="{_safe(name)}"></div>'
        f"<figcaption>{_safe(caption)}</figcaption></figure>"
        for i, (name, caption, _) in enumerate(drawings)
    ]
    data = [{"light": light, "dark": dark} for _, _, (light, dark) in drawings]
    fields = {
        "{{HEADING}}": _safe(page.heading),
        "{{HEADLINE}}": _safe(verdict.headline),
        "{{DAY}}": time.strftime("%Y-%m-%d"),
        "{{SUMMARY}}": _safe(_summary(page.records)),
        "{{PARAGRAPH}}": _sentences(verdict),
        "{{LIMITS}}": _safe(verdict.limits),
        "{{FIGURES}}": "\n".join(frames),
        "{{TABLE}}": _scores(page.records),
        "{{AXIS}}": _safe(metric.axis),
        "{{COST}}": _cost(page.records, verdict.reference),
        "{{TRIED}}": _tried(page.tried, metric),
        "{{FACTS}}": _rows({**page.facts, **_provenance(page.records)}.items()),
        "{{COMMAND}}": _safe(page.command),
        "{{RUNS}}": _safe(", ".join(record.run_id for record in page.records)),
        "{{DATA}}": json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
        "{{PLOTLY}}": get_plotlyjs().replace("</script", "<\\/script"),
    }
    text = _PAGE
    for name, value in fields.items():  # Plotly last: nothing in it can look like a field
        text = text.replace(name, value)
    return text


def _safe(text: str) -> str:
    return html.escape(text)


def _sentences(verdict: Verdict) -> str:
    return "".join(f"<p>{_safe(sentence)}</p>" for sentence in verdict.sentences)


def _summary(records: Sequence[RunRecord]) -> str:
    run_groups = groups(records)
    seeds = max(len(group.records) for group in run_groups)
    first = records[0].provenance
    names = ", ".join(group.name for group in run_groups)
    trained = f", {first['trained_on']:,} training pictures" if "trained_on" in first else ""
    weights = f", a network of {first['parameters'] / 1e6:.2g} M weights" if "parameters" in first else ""
    steps = counted(records[0].settings.steps, "step")
    return f"{names}; {counted(seeds, 'seed')} each; {steps}{trained}{weights}."


def _figures(records: Sequence[RunRecord]) -> Iterable[tuple[str, str, tuple[Any, Any]]]:
    """Every figure that these runs have data for: its name, what to see in it, and the picture in light and dark."""
    with_leash = [r for r in records if r.points and any(g is not None for g in r.points[-1].gamma)]
    first = {record.settings.method: record for record in reversed(with_leash)}  # the first seed of each
    plans: list[tuple[str, str, Any, dict[str, Any]]] = [
        (
            "differences",
            "A bar that crosses the dashed line: level, or no telling. With one or two seeds none tells.",
            records,
            {},
        ),
        ("id_ood", "Right is better at home, up is better elsewhere.", records, {}),
        ("severity_curves", "The same test pictures, damaged more and more.", records, {}),
    ]
    plans += [
        ("constraint_growth", f"{about(run)}: one line for each tensor; long leashes are layers that moved.", run, {})
        for run in first.values()
        if len({g for g in run.points[-1].gamma if g is not None}) > 1  # a fixed length has nothing to show
    ]
    plans.append(("constraint_final", "The lengths at the end, from the first layer to the last.", with_leash, {}))
    plans.append(("training", "The loss, and the scores on the way.", records[0], {}))
    for name, caption, data, options in plans:
        try:
            pictures = tuple(json.loads(draw(name, data, dark=dark, **options).to_json()) for dark in (False, True))
        except LabError:  # such as a world without shifts: the figure says why it cannot be drawn, nobody needs to know
            continue
        yield name, caption, (pictures[0], pictures[1])


def _scores(records: Sequence[RunRecord]) -> str:
    shown = columns(rows(records))
    head = "".join(f"<th>{_safe(name)}</th>" for name in shown)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in line)}</tr>" for line in zip(*shown.values(), strict=True))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Cell) -> str:
    text = _safe(cell.text)
    bold = f"<b>{text}</b>" if cell.best else text
    return f"<td>{bold}{f' <small>{_safe(cell.std)}</small>' if cell.std else ''}</td>"


def _cost(records: Sequence[RunRecord], reference: str) -> str:
    """Seconds of a step and of a whole run, and what is trained, method by method."""
    table_rows = {row.name: row for row in rows(records)}
    base = table_rows[reference].seconds.mean
    lines = []
    for group in groups(records):
        seconds = table_rows[group.name].seconds.mean
        weights = group.records[0].provenance.get("trained_parameters")
        whole = group.results[0].get("provenance", {}).get("seconds")
        lines.append(
            f"<tr><td>{_safe(group.name)}</td><td>{1000 * seconds:.0f} ms</td><td>{seconds / base:.2f}</td>"
            f"<td>{duration(float(whole)) if whole else '-'}</td><td>{f'{weights:,}' if weights else '-'}</td></tr>"
        )
    head = "".join(
        f"<th>{name}</th>"
        for name in ("Method", "One step", f"÷ {_safe(reference)}", "Training of one run", "Weights trained")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _tried(tried: Sequence[Tried], metric: Metric) -> str:
    if not tried:
        return "<p>Nothing was tried: every method ran with its recipe or its defaults.</p>"
    lines = "".join(
        f"<tr{' class=chosen' if row.chosen else ''}><td>{_safe(title(row.method))}</td><td>{_safe(row.settings)}</td>"
        f"<td>{_safe(row.val)}</td><td>{'chosen' if row.chosen else ''}</td></tr>"
        for row in tried
    )
    head = f"<th>Method</th><th>Setting</th><th>Home validation, {_safe(metric.axis)}</th><th></th>"
    return f"<table class=left><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _provenance(records: Sequence[RunRecord]) -> dict[str, str]:
    first = records[0].provenance
    facts = {name.replace("_", " "): _text(value) for name, value in first.items() if value not in ("", [], {})}
    facts["code"] = ", ".join(dict.fromkeys(str(r.provenance.get("code", "")) for r in records))
    return facts


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _rows(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<tr><td>{_safe(name)}</td><td>{_safe(value)}</td></tr>" for name, value in pairs)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:">
<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<title>{{HEADING}}</title>
<style>
:root { --paper: #fff; --text: #1f2430; --muted: #5b6270; --line: #e4e7ec; --mark: #fdf1e7; --accent: #b34700 }
:root.dark { --paper: #171614; --text: #f2f1ee; --muted: #b3b0a9; --line: #363430; --mark: #33261b; --accent: #ff9a57 }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--text);
  font: 16px/1.55 "Source Sans 3", "Segoe UI", "Helvetica Neue", Arial, sans-serif }
main { max-width: 900px; margin: 0 auto; padding: 28px 20px 60px }
header p, figcaption, .muted { color: var(--muted) }
h1 { font-size: 19px; font-weight: 600; margin: 0 }
h2 { font-size: 20px; margin: 44px 0 8px }
.headline { font-size: 28px; line-height: 1.25; font-weight: 650; margin: 14px 0 10px; text-wrap: balance }
.words p { margin: 6px 0 }
.limits { border-left: 4px solid var(--accent); background: var(--mark); padding: 10px 14px; margin: 16px 0 }
figure { margin: 22px 0; break-inside: avoid } figcaption { font-size: 14px; padding: 0 16px }
.plot { width: 100%; min-height: 180px }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 14px; min-width: 100% }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top }
th { font-weight: 600; vertical-align: bottom } th:first-child, td:first-child, .left th, .left td { text-align: left }
small { color: var(--muted); white-space: nowrap } tr.chosen { background: var(--mark); font-weight: 600 }
pre { background: var(--line); padding: 12px 14px; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 6px }
.ids { overflow-wrap: anywhere; font-size: 13px }
button { float: right; font: inherit; font-size: 14px; padding: 4px 12px; color: var(--text); background: none;
  border: 1px solid var(--muted); border-radius: 6px; cursor: pointer }
@media print { button { display: none } main { max-width: none; padding: 0 } h2 { break-after: avoid }
  tr { break-inside: avoid } }
</style></head><body><main>
<header><button type="button" id="theme">Light / dark</button><h1>{{HEADING}}</h1>
<p class="headline">{{HEADLINE}}</p><p>{{SUMMARY}} {{DAY}}</p></header>
<section class="words">{{PARAGRAPH}}<p class="limits">{{LIMITS}}</p></section>
<h2>Figures</h2>
{{FIGURES}}
<h2>Scores</h2><p class="muted">{{AXIS}}, mean (standard deviation over seeds). Δ is relative to plain fine-tuning.</p>
<div class="wide">{{TABLE}}</div>
<h2>Cost</h2><div class="wide">{{COST}}</div>
<h2>Settings tried</h2><p class="muted">The same number for every method, chosen by home validation alone, with a seed
that no table uses. Among equals the setting that is nearest to the method's own.</p>
<div class="wide">{{TRIED}}</div>
<h2>Where these numbers come from</h2><div class="wide"><table class="left"><tbody>{{FACTS}}</tbody></table></div>
<p>The same again, from the store in seconds, or anew on another machine:</p><pre>{{COMMAND}}</pre>
<p class="ids muted">Runs: {{RUNS}}</p>
</main>
<script id="data" type="application/json">{{DATA}}</script>
<script>{{PLOTLY}}</script>
<script>
const figures = JSON.parse(document.getElementById("data").textContent);
const night = matchMedia("(prefers-color-scheme: dark)"), print = matchMedia("print");
let chosen = null;
function show() {
  const dark = !print.matches && (chosen === null ? night.matches : chosen);
  document.documentElement.classList.toggle("dark", dark);
  figures.forEach((figure, i) => {
    const { data, layout } = figure[dark ? "dark" : "light"];
    Plotly.react("plot" + i, data, layout, { responsive: true, displaylogo: false });
  });
}
document.getElementById("theme").onclick = () => {
  chosen = !document.documentElement.classList.contains("dark");
  show();
};
night.addEventListener("change", show); print.addEventListener("change", show);
show();
</script></body></html>
"""
