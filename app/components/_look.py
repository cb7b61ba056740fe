"""The shared half of the hand-drawn components: their common script and style, and how one is registered."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ftp.lab.palette import palette

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

HERE = Path(__file__).resolve().parent


def variables(dark: bool) -> str:
    """The colours of the palette as CSS variables.

    >>> variables(dark=False)
    '--leash: #0B6B78; --walk: #8A6A00; --anchor: #858585; --id: #4343C4; --ood: #C2154A;'
    """
    colors = palette(dark)
    names = ("leash", "walk", "anchor", "id", "ood")
    return " ".join(f"--{name}: {getattr(colors, name)};" for name in names)


# where the weights are, W, has the colour of text
STYLE = (
    f"""
.root {{ {variables(dark=False)} --here: var(--st-text-color); }}
.root.dark {{ {variables(dark=True)} }}
"""
    + """
:host, .root { font-family: var(--st-font); color: var(--st-text-color); font-size: 1rem; line-height: 1.5; }
.root { --line: color-mix(in srgb, var(--st-text-color) 18%, transparent);
  --faint: color-mix(in srgb, var(--st-text-color) 6%, transparent); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 0.5rem 2rem;
  align-items: start; }
.numbers { font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--st-text-color); font-family: var(--st-font); font-size: 14px; }
[tabindex]:focus-visible, input:focus-visible, button:focus-visible {
  outline: 3px solid var(--st-primary-color); outline-offset: 2px; border-radius: 4px; }
label { display: grid; gap: 0.1rem; margin: 0.35rem 0; }
input[type=range] { width: 100%; accent-color: var(--st-primary-color); margin: 0.2rem 0; touch-action: pan-y; }
button { font: inherit; color: var(--st-text-color); background: var(--st-background-color); cursor: pointer;
  border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.25rem 0.75rem; }
button:hover:not(:disabled) { border-color: var(--st-primary-color); }
button:disabled { cursor: default; opacity: 0.55; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.5rem 0; align-items: center; }
p { margin: 0.4rem 0; }
"""
)


def script(*names: str) -> str:
    """Files of this folder, one after another, as one script."""
    return "\n".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in names)


def component(name: str, style: str = "", parts: Sequence[str] = ()) -> "ComponentRenderer":
    """Register NAME.js of this folder, behind the common script and `parts`; `style` is added to the common style."""
    return st.components.v2.component(f"ftp_{name}", css=STYLE + style, js=script("_common", *parts, name))
