"""What one person waits for: the server, the first chart, a reload, a whole run, a stop. In a real Chromium.

    python benchmarks/app_first.py [--rounds 3]

The browser, the server and the worker share this machine. A chart counts as there when a browser finds it visible.
"""

import argparse
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from app.__main__ import free_port
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.store import Store

GOALS = {"server up": 4.0, "first chart": 3.0, "reload": 2.0, "whole run": 30.0, "stop": 1.0}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
SIZE = {"width": 1280, "height": 720}
CHART, SAYS = ".ftp-player .accuracy .main-svg", ".ftp-player .says"
WARM = 12.0  # seconds until the spare worker has read all it needs
PATIENCE = 240.0


def seconds_until(true: Callable[[], bool], every: float = 0.02) -> float:
    """How long it takes until a function says so."""
    began = time.perf_counter()
    while not true():
        if time.perf_counter() - began > PATIENCE:
            raise TimeoutError("this took too long")
        time.sleep(every)
    return time.perf_counter() - began


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/api/health", timeout=2).read()
    except OSError:
        return False
    return True


def shown(page: Page) -> float:
    """Seconds until the chart is there."""
    began = time.perf_counter()
    page.wait_for_selector(CHART, timeout=PATIENCE * 1000)
    return time.perf_counter() - began


def one(browser: Browser, seed: int) -> dict[str, float]:
    """One server, one viewer, one run with the usual settings, and one that is stopped."""
    port = free_port(8600)
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder, browser.new_context(viewport=SIZE) as context:
        page, path = context.new_page(), Path(folder) / "runs.db"
        command = [sys.executable, "-m", "app", "--port", str(port), "--store", str(path)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "CI": "true"}}
        server = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
        try:
            found = {"server up": seconds_until(lambda: answers(url))}
            page.goto(url, wait_until="commit")
            found["first chart"] = shown(page)
            time.sleep(WARM)
            page.reload(wait_until="commit")
            found["reload"] = shown(page)
            with Store(path) as store:
                for name, steps in (("whole run", 300), ("stop", 2000)):
                    run = identify(resolve("digits", "ftp", {"seed": seed, "steps": steps}))
                    page.goto(f"{url}/?seed={seed}&steps={steps}")
                    shown(page)
                    time.sleep(WARM)
                    page.get_by_role("button", name="Train").click()
                    began = time.perf_counter()
                    if name == "stop":
                        page.wait_for_function(
                            f"/Step [1-9]\\d? of {steps}/.test(document.querySelector('{SAYS}').innerText)"
                        )
                        began = time.perf_counter()
                        page.get_by_role("button", name="Stop").click()
                    seconds_until(functools.partial(over, store, run))
                    found[name] = time.perf_counter() - began
        finally:
            server.terminate()
            server.wait()
    return found


def over(store: Store, run: str) -> bool:
    return any(record.status in ("done", "stopped") for record in store.runs(text=run, limit=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        print("There is no Chromium here; install chromium to measure what a person waits for.")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        found = [one(browser, seed) for seed in range(1000, 1000 + rounds)]
        browser.close()
    print(f"seconds that one viewer waits, {rounds} rounds: median (least to most)")
    for name, goal in GOALS.items():
        values = sorted(row[name] for row in found)
        print(f"  {name:12}{statistics.median(values):6.2f}  ({values[0]:.2f} to {values[-1]:.2f})   goal {goal:g}")


if __name__ == "__main__":
    main()
