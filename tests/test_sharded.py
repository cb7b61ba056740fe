"""FSDP2 and DDP in real processes: the same weights and constraints as on one, the same bits on every rank."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from processes import PATIENCE, started


def run_ranks(worker: str, ranks: int, folder: Path, *arguments: str) -> list[dict]:
    """Start one process per rank, as `python WORKER RANK [...]`, and return what each of them wrote."""
    script = Path(__file__).with_name(worker)
    commands = [[sys.executable, str(script), str(rank), *arguments] for rank in range(ranks)]
    with started(*commands, stderr=subprocess.STDOUT) as processes:
        outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(outputs)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "ranks"),
    [("sgdp", 2), ("adamp", 3), ("low_memory", 3), ("per_element", 2), ("ddp", 2), ("anchors", 2), ("replicated", 4)],
)
def test_sharded_training(case: str, ranks: int, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    results = run_ranks("sharded_worker.py", ranks, tmp_path, str(ranks), store, str(tmp_path), case)
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


@pytest.mark.slow
def test_ranks_that_start_differently_do_not_drift_apart(tmp_path: Path) -> None:
    # the optimizer is made before DistributedDataParallel makes the ranks' weights equal
    first, second = run_ranks("ddp_worker.py", 2, tmp_path, str(tmp_path / "store"), str(tmp_path), "late")
    assert first == second
    assert max(first["gammas"].values()) > 1e-2


@pytest.mark.slow
def test_anchors_that_differ_between_ranks_are_refused(tmp_path: Path) -> None:
    results = run_ranks("ddp_worker.py", 2, tmp_path, str(tmp_path / "store"), str(tmp_path), "given")
    assert [result.get("error") for result in results] == [
        "the anchors of ranks [1] differ from those of rank 0, so the ranks would drift apart; "
        "load the same weights on every rank, or leave anchors= out: then the anchors are the weights at the "
        "first step, which DistributedDataParallel has made equal"
    ] * 2


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
