"""The first pictures of home and of each shift, for the strip of Live: ftp/lab/recordings/WORLD/pictures.json.gz.

    .venv/bin/python data_scripts/record_pictures.py WORLD

Seconds. A world without this file has its pictures made by its first run.
"""

import argparse

from _finished import write

from ftp.lab import worlds
from ftp.lab.answers import pictures


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the first pictures of every set of a world.")
    parser.add_argument("world", choices=worlds.names())
    world = worlds.load(parser.parse_args().world)
    write("pictures", pictures(world), world.name)


if __name__ == "__main__":
    main()
