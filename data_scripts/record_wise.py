"""WiSE curves of recorded runs, for the dashboard and the lessons: ftp/lab/recordings/wise_digits.json.gz.

    .venv/bin/python data_scripts/record_wise.py --store runs.db

About two minutes on one core; runs that the store does not hold are made first.
"""

import argparse

import torch
from _finished import finished, write

from ftp.lab.store import Store
from ftp.lab.wise import wise

METHODS = ("finetune", "ftp")
POINTS, IMAGES = 21, 500


def main() -> None:
    parser = argparse.ArgumentParser(description="Record WiSE curves.")
    parser.add_argument("--store", required=True)
    torch.set_num_threads(1)
    alphas = [round(i / (POINTS - 1), 2) for i in range(POINTS)]
    with Store(parser.parse_args().store) as store:
        curves = [wise(record, store, alphas, limit=IMAGES) for record in finished(store, METHODS)]
    write("wise_digits", {"images": IMAGES, "curves": [curve.__dict__ for curve in curves]})


if __name__ == "__main__":
    main()
