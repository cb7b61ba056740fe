"""One rank of a run whose ranks start differently; started by test_sharded.py."""

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from sharded_worker import Net, full, leave, train
from torch import nn

from ftp import AdamP

RANKS = 2


def main(rank: int, store: str, folder: Path, case: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    torch.manual_seed(rank)  # every rank begins elsewhere, and only wrapping makes them equal
    model = Net().double()
    given = model.state_dict() if case == "given" else None
    optimizer = AdamP(model.named_parameters(), lr=0.01, anchors=given)  # before wrapping
    wrapped = nn.parallel.DistributedDataParallel(model)
    result: dict[str, object] = {}
    try:
        train(wrapped, optimizer, 12, seed=rank)  # every rank has batches of its own
        result = {"weights": full(model), "gammas": optimizer.constraints()}
    except RuntimeError as error:
        result = {"error": str(error)}
    (folder / f"rank{rank}.json").write_text(json.dumps(result))
    leave()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4])
