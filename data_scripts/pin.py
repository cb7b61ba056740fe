"""Write constraints.txt anew: every package that `make` installs, at the newest version that fits pyproject.toml.

    .venv/bin/python data_scripts/pin.py

Run it to take newer versions, then `make test`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Every package that `make` installs, at the version that was tested. Made by data_scripts/pin.py.\n"


def resolve() -> list[str]:
    """What pip would install into an empty environment, as name==version."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        subprocess.run([*command, "--report", str(report), "-e", ".[all]"], cwd=ROOT, check=True)
        found = [item["metadata"] for item in json.loads(report.read_text())["install"]]
    return sorted(f"{canonicalize_name(m['name'])}=={m['version']}" for m in found if m["name"] != "ftp-kit")


if __name__ == "__main__":
    pins = resolve()
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(pins) + "\n")
    print(f"constraints.txt: {len(pins)} packages")
