"""What `make lab` opens: the contents page of the course, as a page and not as its source."""

import json
import shlex
import subprocess

from notebooks.lessons import NOTEBOOKS, ROOT


def test_make_lab_opens_the_contents_page() -> None:
    command = ["make", "--no-print-directory", "-n", "lab"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    words = shlex.split(made.stdout.replace("\\\n", " "))
    given = dict(word.removeprefix("--LabApp.").split("=", 1) for word in words if word.startswith("--LabApp."))
    assert words[-1] == NOTEBOOKS.name
    page = given["default_url"].partition("/tree/")[2]
    assert "Start with [00" in (NOTEBOOKS / page).read_text(encoding="utf-8")
    # JupyterLab takes its defaults from there; what a person has chosen stands above them
    defaults = json.loads((ROOT / given["app_settings_dir"] / "overrides.json").read_text())
    assert defaults["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"] == {"markdown": "Markdown Preview"}
