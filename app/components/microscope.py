"""One step of SGDP at a time; its drawing is in microscope.js."""

from typing import Any

from app.components._look import component

STYLE = """
.top { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: 0 1rem; }
.top .buttons { margin: 0.1rem 0; }
.slice { max-width: max(18rem, min(26rem, 45vh)); margin: 0 auto; overflow: hidden; }
.stages { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.15rem; }
.stages li { padding: 0.2rem 0.75rem; border-left: 4px solid var(--line); border-radius: 0 0.4rem 0.4rem 0;
  min-height: 3.45rem; line-height: 1.27; }
.stages li.lit { background: var(--faint); border-left-color: var(--st-primary-color); }
.stages li div { font-size: 0.9rem; line-height: 1.27; }
.slice .gamma { paint-order: stroke; stroke: var(--st-background-color); stroke-width: 4px; }
.formula { overflow-wrap: anywhere; }
"""
_COMPONENT = component("microscope", STYLE)


def steps_of(trace: dict[str, Any], step: int, run: str = "") -> int:
    """Show a trace of `ftp.lab.microscope`; the step at which the hand rested last comes back."""
    data = {"trace": trace, "step": step, "run": run}
    state = _COMPONENT(key="microscope", data=data, default={"step": step}, on_step_change=lambda: None)
    sent = state["step"]
    # a browser may send anything
    return sent if sent in [one["step"] for one in trace["steps"]] else step
