"""The severity dial with its pictures, bars and curves; its drawing is in corruptions.js."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.components._look import component
from ftp.lab.summary import Metric

STYLE = """
.dial { display: flex; gap: 1.5rem; align-items: center; max-width: 36rem; }
.dial label { flex: 1; }
.dial button { flex: none; }
.marks { display: flex; justify-content: space-between; font-size: 0.875rem; }
.tiles { display: grid; grid-template-columns: repeat(8, 1fr); gap: 4px; max-width: 36rem; margin: 0.4rem 0 0.6rem; }
.tile { aspect-ratio: 1; background-size: 800% 600%; image-rendering: pixelated; border-radius: 4px; }
.bar { display: grid; grid-template-columns: 7.6rem 1fr 6.6rem; gap: 0.6rem; align-items: center; line-height: 1.55; }
.bar.strong { font-weight: 700; }
.bar .numbers { text-align: right; }
.track { height: 0.85rem; border-radius: 0.4rem; background: var(--line); overflow: hidden; position: relative; }
.whisker { position: absolute; top: 35%; height: 30%; background: var(--st-text-color); border-radius: 1px;
  box-shadow: 0 0 0 1px var(--st-background-color); }
.fill { height: 100%; transition: width 0.25s; }
@media (prefers-reduced-motion: reduce) { .fill { transition: none; } }
"""
_COMPONENT = component("corruptions", STYLE)


def severity_dial(
    title: str,
    picture: str,
    labels: Sequence[str],
    runs: Sequence[dict[str, Any]],
    severity: int,
    metric: Metric,
    hold: bool,
) -> int:
    """Show one kind of corruption; the severity at which the hand rested last comes back.

    picture: WebP in base64, six rows (clean, 1 to 5) of eight pictures. runs: name, light, dark, dash, strong, and six
    values of the metric with their spread over seeds, if there are several. hold: the dial stays at clean until there
    is a guess.
    """
    data = {"title": title, "picture": picture, "labels": list(labels), "runs": list(runs), "severity": severity}
    data |= {"metric": asdict(metric), "hold": hold}
    state = _COMPONENT(key="corruptions", data=data, default={"severity": severity}, on_severity_change=lambda: None)
    sent = state["severity"]
    # a browser may send anything
    return sent if isinstance(sent, int) and 0 <= sent <= 5 else severity
