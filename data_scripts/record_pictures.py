"""The first pictures of home and of each shift, for the strip of Live: ftp/lab/recordings/WORLD/pictures.json.gz.

    .venv/bin/python data_scripts/record_pictures.py WORLD
    .venv/bin/python data_scripts/record_pictures.py scenes --set task=parts

Seconds. Other options of a world have a file of their own, since other things are true of its pictures. A world
without this file has its pictures made by its first run.
"""

import argparse

from _finished import write

from ftp.lab import worlds
from ftp.lab.answers import pictures, shipped_sheet


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the first pictures of every set of a world.")
    parser.add_argument("world", choices=worlds.names())
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="options of the world")
    asked = parser.parse_args()
    world = worlds.load(asked.world, dict(pair.split("=", 1) for pair in asked.set))
    write(shipped_sheet(world), pictures(world), world.name)


if __name__ == "__main__":
    main()
