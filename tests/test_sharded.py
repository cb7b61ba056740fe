"""FSDP2 and DDP in real processes: the same weights and constraints as on one, the same bits on every rank."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

WORKER = Path(__file__).with_name("sharded_worker.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "ranks"),
    [("sgdp", 2), ("adamp", 3), ("low_memory", 3), ("per_element", 2), ("ddp", 2), ("anchors", 2), ("replicated", 4)],
)
def test_sharded_training(case: str, ranks: int, tmp_path: Path) -> None:
    command = [sys.executable, str(WORKER)]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(ranks), str(tmp_path / "store"), str(tmp_path), case],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        outputs = [process.communicate(timeout=150)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(outputs)
    results = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(ranks)]
    for result in results:
        assert result == results[0]  # every rank learned the same, to the last bit
    result = results[0]
    tolerance = 1e-12
    for ours, truth in zip(result["sharded"], result["alone"], strict=True):
        assert torch.allclose(torch.tensor(ours), torch.tensor(truth), rtol=0, atol=tolerance)
    assert result["gammas"] == pytest.approx(result["gammas alone"], abs=tolerance)
    for name, row in result["report"].items():
        assert row == pytest.approx(result["report alone"][name], abs=tolerance)
    assert max(result["gammas"].values()) > 1e-2
    assert result["resumed"] == result["straight"]


@pytest.mark.filterwarnings("ignore")
def test_rows_that_are_cut_are_refused(tmp_path: Path) -> None:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    from ftp import SGDP

    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        cut = distribute_tensor(torch.zeros(4, 4), init_device_mesh("cpu", (1,)), [Shard(1)])
        with pytest.raises(TypeError) as error:
            SGDP([("w", torch.nn.Parameter(cut))])
    finally:
        dist.destroy_process_group()
    assert str(error.value) == (
        "'w' is a DTensor placed as S(1), which cuts its rows; the projection needs whole rows: "
        "use Shard(0) or Replicate, or put the name into exclude_set"
    )
