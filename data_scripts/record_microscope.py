"""Steps of FTP under the microscope, for an early and a late layer: ftp/lab/recordings/digits/microscope.json.gz.

    .venv/bin/python data_scripts/record_microscope.py

About a minute on one core.
"""

import torch
from _finished import write

from ftp.lab.microscope import trace
from ftp.lab.settings import resolve

LAYERS = ("blocks.0.conv1.weight", "blocks.5.conv2.weight")


def main() -> None:
    torch.set_num_threads(1)
    settings = resolve("digits", "ftp", {"seed": 0})
    write("microscope", {"traces": [trace(settings, layer) for layer in LAYERS]})


if __name__ == "__main__":
    main()
