"""One rank of a sharded run; started by test_sharded.py as `python sharded_worker.py RANK RANKS FILE FOLDER CASE`."""

import copy
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ftp import SGDP, AdamP

CASES: dict[str, Any] = {
    "sgdp": lambda p: SGDP(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3, exclude_set={"head.*"}),
    "adamp": lambda p: AdamP(p, lr=0.01, k=0.5),
    "low_memory": lambda p: SGDP(p, lr=0.05, momentum=0.9, low_memory=True),
    "per_element": lambda p: SGDP(p, lr=0.05, per_element=True, gamma_rows="outside"),
    "ddp": lambda p: AdamP(p, lr=0.01, exclude_set={"head.*"}),
    "anchors": lambda p: SGDP(p, lr=0.05, anchors=moved()),
    "replicated": lambda p: SGDP(p, lr=0.05, momentum=0.9),
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 7)  # 7 rows over 2 or 3 ranks: uneven
        self.thin = nn.Linear(7, 2)  # 2 rows over 3 ranks: one rank has none
        self.head = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.thin(torch.tanh(self.body(x)))))
        return out


def net() -> Net:
    torch.manual_seed(0)
    return Net().double()


def moved() -> dict[str, Tensor]:
    """A full state dict, as a checkpoint of the pre-trained model would give it."""
    generator = torch.Generator().manual_seed(5)
    state = net().state_dict()
    return {k: v + 0.1 * torch.randn(v.shape, generator=generator, dtype=v.dtype) for k, v in state.items()}


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(12, 6, dtype=torch.float64, generator=generator)  # every rank sees the same batch
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
        optimizer.step()


def full(model: nn.Module) -> list[list[float]]:
    return [
        (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().flatten().tolist() for p in model.parameters()
    ]


def main(rank: int, ranks: int, store: str, folder: Path, case: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    build = CASES[case]
    alone = net()
    single = build(alone.named_parameters())
    train(alone, single, 12, 1)

    def sharded() -> tuple[Net, torch.optim.Optimizer]:
        model = net()
        if case == "replicated":  # hybrid sharding: replicas of shards
            mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("replicate", "shard"))
            fully_shard(model, mesh=mesh)
        elif case == "ddp":
            return model, build(nn.parallel.DistributedDataParallel(model).named_parameters())
        else:
            fully_shard(model)
        return model, build(model.named_parameters())

    model, optimizer = sharded()
    train(model, optimizer, 12, 1)
    report = {name: list(row) for name, row in optimizer.report().items()}
    result = {
        "alone": full(alone),
        "sharded": full(model),
        "gammas alone": single.constraints(),
        "gammas": optimizer.constraints(),
        "report alone": {name: list(row) for name, row in single.report().items()},
        "report": report,
    }

    state = {"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)}
    dcp.save(copy.deepcopy(state), checkpoint_id=folder / "checkpoint")
    train(model, optimizer, 5, 2)
    again, resumed = sharded()
    target = {"model": again.state_dict(), "optimizer": get_optimizer_state_dict(again, resumed)}
    dcp.load(target, checkpoint_id=folder / "checkpoint")
    again.load_state_dict(target["model"])
    set_optimizer_state_dict(again, resumed, target["optimizer"])
    train(again, resumed, 5, 2)
    result["straight"], result["resumed"] = full(model), full(again)
    (folder / f"rank{rank}.json").write_text(json.dumps(result))
    leave()


def leave() -> NoReturn:
    """End this rank at once: all is written, and gloo's threads now and then abort a process that is torn down."""
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", message="something that is not a step")  # FSDP2 swaps parameters all the time
    torch.set_num_threads(1)
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5])
