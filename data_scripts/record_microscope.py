"""Steps of FTP under the microscope, for an early and a late layer: ftp/lab/recordings/WORLD/microscope.json.gz.

    .venv/bin/python data_scripts/record_microscope.py
    .venv/bin/python data_scripts/record_microscope.py --world WORLD

About a minute on one core.
"""

import argparse

import torch
from _finished import write

from ftp.lab import worlds
from ftp.lab.microscope import trace
from ftp.lab.settings import resolve

LAYERS = ("blocks.0.conv1.weight", "blocks.5.conv2.weight")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record single steps.")
    parser.add_argument("--world", default=worlds.default(), choices=worlds.names())
    asked = parser.parse_args()
    torch.set_num_threads(1)
    settings = resolve(asked.world, "ftp", {"seed": 0})
    write("microscope", {"traces": [trace(settings, layer) for layer in LAYERS]}, asked.world)


if __name__ == "__main__":
    main()
