"""One step of SGDP at a time; its drawing is in microscope.js."""

from typing import Any

from app.components._look import component

STYLE = """
.slice { max-width: 26rem; margin: 0 auto; overflow: hidden; }
.stages { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.4rem; }
.stages li { padding: 0.35rem 0.75rem; border-left: 4px solid var(--line); border-radius: 0 0.4rem 0.4rem 0;
  min-height: 4.4rem; }
.stages li.lit { background: var(--faint); border-left-color: var(--st-primary-color); }
.stages li div { font-size: 0.95rem; line-height: 1.4; }
.formula { overflow-wrap: anywhere; }
"""
_COMPONENT = component("microscope", STYLE)


def steps_of(trace: dict[str, Any], step: int, run: str = "") -> int:
    """Show a trace of `ftp.lab.microscope`; the step at which the hand rested last comes back."""
    data = {"trace": trace, "step": step, "run": run}
    state = _COMPONENT(key="microscope", data=data, default={"step": step}, on_step_change=lambda: None)
    held = state["step"]
    # a browser may send anything
    return held if held in [one["step"] for one in trace["steps"]] else step
