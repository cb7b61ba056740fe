"""Pictures of the dashboard for the README: docs/app/<view>.png, and the Live view in motion, docs/app/live.gif.

    .venv/bin/python data_scripts/pictures.py [--views live race]

Needs Chromium. A server with an empty store is started for it, so what is seen are the recorded runs.
"""

import argparse
import io
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from ftp.lab.recordings import recorded
from ftp.lab.store import Store
from ftp.lab.store.serialisation import to_form

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "docs" / "app"
SIZE = {"width": 1280, "height": 720}
VIEWS = (
    "live",
    "microscope",
    "race",
    "corruptions",
    "wise",
    "ask",
    "tasks",
    "dense",
    "geometry",
    "runs",
    "paper",
    "wall",
)
PATIENCE = 120_000  # milliseconds
FRAMES, FRAME_SECONDS, WIDE, COLOURS = 31, 0.2, 900, 128
PLAYER = ".ftp-player"
SCRUB = """([slider, share]) => {
  const range = document.querySelector(slider);
  range.value = Math.round(Number(range.min) + share * (range.max - range.min));
  range.dispatchEvent(new Event("input", { bubbles: true }));
}"""
# what is there when a view has drawn itself; `:visible` alone is what a person sees, the menu has hidden tables too
CHARTS = {
    "live": ".ftp-player .net rect:visible",
    "microscope": ".slice polygon:visible",
    "race": ".ftp-race .main-svg:visible",
    "corruptions": ".bars .fill:visible",
    "wise": "svg.plane circle:visible",
    "ask": ".asked .cell .fill:visible",
    "tasks": ".tiles .ink:visible",
    "dense": ".four[data-counted]:visible",
    "geometry": "svg.board polygon:visible",
    "runs": "[data-testid=stPlotlyChart] .main-svg:visible",
    "paper": "[data-testid=stTable]:visible",
    "wall": ".ftp-wall .main-svg:visible",
}
RUNS = ("finetune", "l2_sp", "ftp")  # the runs that are compared in Runs


def fill(path: str) -> None:
    """Recorded runs as if a class had made them."""
    with Store(path) as store:
        for run in recorded():
            if run.settings.seed and run.settings.method in ("finetune", "linear_probe", "l2_sp", "ftp"):
                store.import_(to_form(run, str(run.provenance["code"])))


@contextmanager
def server(filled: bool = False) -> Iterator[str]:
    """A dashboard in class mode, so that the wall is there too; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        if filled:
            fill(f"{folder}/runs.db")
        command = [sys.executable, "-m", "app", "--port", str(port), "--store", f"{folder}/runs.db"]
        command += ["--class", "--host", "127.0.0.1"]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=2).read()
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def still(browser: Browser, url: str, view: str) -> None:
    """One picture of a view as a visitor finds it: what comes after a guess is not given away."""
    with browser.new_context(viewport=SIZE, color_scheme="light") as context:
        page = context.new_page()
        page.goto(f"{url}/{view}{_query(view)}")
        page.locator(CHARTS[view]).first.wait_for(timeout=PATIENCE)
        page.wait_for_timeout(5000)
        page.screenshot(path=HOME / f"{view}.png")


def _query(view: str) -> str:
    if view == "tasks":  # it does not fit the first world; its matrix is the picture, so nothing is asked
        return "?world=stream&guess=no"
    if view == "ask":  # the same
        return "?world=captions&guess=no"
    if view == "dense":  # from higher up, where the errors are
        return "?world=scenes&dial=elevation&at=30&method=finetune"
    if view != "runs":
        return ""
    return "?" + "&".join(f"runs={recorded(method=name, seed=0)[0].run_id}" for name in RUNS)


def motion(browser: Browser, url: str) -> None:
    """The recorded run of the Live view, from its first step to its last."""
    frames = []
    with browser.new_context(viewport=SIZE, color_scheme="light") as context:
        page = context.new_page()
        page.goto(f"{url}/live")
        page.locator(CHARTS["live"]).first.wait_for(timeout=PATIENCE)
        page.wait_for_timeout(1500)
        for frame in range(FRAMES):
            # moving the slider also pauses the player
            page.evaluate(SCRUB, [f"{PLAYER} input[type=range]", frame / (FRAMES - 1)])
            page.wait_for_timeout(400)
            picture = Image.open(io.BytesIO(page.screenshot()))
            tall = round(picture.height * WIDE / picture.width)
            small = picture.convert("RGB").resize((WIDE, tall), Image.Resampling.LANCZOS)
            # the median cut would grey the small coloured things, lines and pictures
            frames.append(small.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE))
    milliseconds = [round(1000 * FRAME_SECONDS)] * (FRAMES - 1) + [3000]
    frames[0].save(
        HOME / "live.gif", save_all=True, append_images=frames[1:], duration=milliseconds, loop=0, optimize=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Take pictures of every view.")
    parser.add_argument("--views", nargs="*", choices=VIEWS, default=VIEWS)
    parser.add_argument("--no-motion", action="store_true")
    asked = parser.parse_args()
    HOME.mkdir(parents=True, exist_ok=True)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("There is no Chromium here; install it, on Debian with: apt install chromium")
    with server() as url, sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for view in asked.views:
            if view == "wall":
                with server(filled=True) as busy:
                    still(browser, busy, view)
            else:
                still(browser, url, view)
            print(view, flush=True)
        if not asked.no_motion:
            motion(browser, url)
        browser.close()


if __name__ == "__main__":
    main()
