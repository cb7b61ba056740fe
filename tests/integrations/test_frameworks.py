"""The optimizers inside real frameworks: anchors in the right place, the head free, resume to the last bit."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from integrations.small import Sentences, bert, loader, net, timm_vit, weights
from torch import nn

import ftp
from ftp._members import FACTORS

STEPS = 12  # two epochs of six batches


def trainer(folder: Path, way: str, seed: int = 0, **more: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    model = bert(seed)
    arguments = TrainingArguments(
        str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=8,
        save_strategy="steps",
        save_steps=6,
        warmup_steps=2,  # the first step has a learning rate of zero
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=3,
        **more,
    )
    groups = ftp.named_groups(model, weight_decay=0.05, head="classifier")
    if way == "optimizer":
        return Trainer(model, arguments, train_dataset=Sentences(), optimizers=(ftp.AdamP(groups, lr=1e-2), None))
    options = {"params": groups, "lr": 1e-2}
    return Trainer(model, arguments, train_dataset=Sentences(), optimizer_cls_and_kwargs=(ftp.AdamP, options))


@pytest.mark.parametrize("way", ["optimizer", "class"])
def test_hugging_face_trainer_resumes_to_the_last_bit(way: str, tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", way)
    whole.train()
    assert whole.state.global_step == STEPS
    broken = trainer(tmp_path / "whole", way, seed=8)  # another start: all must come from the checkpoint
    broken.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-6"))
    assert torch.equal(weights(whole.model), weights(broken.model))
    first, second = (t.optimizer.optimizer for t in (whole, broken))
    assert first.constraints() == second.constraints()
    assert not any("classifier" in name for name in first.constraints())
    assert max(first.constraints().values()) > 0.01
    report = first.report()
    assert all(row.distance <= row.gamma * (1 + 1e-5) + 1e-6 for row in report.values())


def test_the_groups_of_hugging_faces_trainer_have_no_names_and_it_is_said(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(str(tmp_path), report_to="none", use_cpu=True)
    bare = Trainer(bert(), arguments, train_dataset=Sentences(), optimizer_cls_and_kwargs=(ftp.AdamP, {"lr": 1e-3}))
    with pytest.warns(UserWarning, match="the parameters have no names"):
        bare.create_optimizer()


def test_gpt2_has_its_rows_along_axis_1() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=2, n_head=2, vocab_size=17, n_positions=6))
    groups = {name: group for group in ftp.named_groups(model) for name, _ in group["params"]}
    rows = {name: (group["row_axis"], group["split"]) for name, group in groups.items()}
    assert rows["transformer.h.0.attn.c_attn.weight"] == (1, 3)
    assert rows["transformer.h.0.attn.c_attn.bias"] == (0, 3)
    assert rows["transformer.h.0.mlp.c_fc.weight"] == (1, 1)
    assert rows["transformer.wte.weight"] == (0, 1)  # tied to lm_head: a row for each token in both
    start = copy.deepcopy(model)
    optimizer = ftp.AdamP(ftp.named_groups(model), lr=0.01)
    for seed in range(8):
        tokens = torch.randint(17, (4, 6), generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
    report = optimizer.report()
    change = (model.transformer.h[0].mlp.c_fc.weight - start.transformer.h[0].mlp.c_fc.weight).detach()
    x = torch.eye(8)
    truth = (x @ change).abs().sum(0).max().item()  # the largest answer to an input of ones and minus ones
    assert report["transformer.h.0.mlp.c_fc.weight"].distance == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_accelerate_accumulates_and_resumes(precision: str, tmp_path: Path) -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(mixed_precision=precision, gradient_accumulation_steps=2, cpu=True)
    model = net()
    anchors = copy.deepcopy(net(seed=4).state_dict())
    optimizer = ftp.SGDP(ftp.named_groups(model, head="head"), lr=0.05, momentum=0.9)
    model, optimizer, batches = accelerator.prepare(model, optimizer, loader())
    model.load_state_dict(anchors)  # late, after accelerate has loaded an empty state into the optimizer

    def epoch() -> None:
        for x, y in batches:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()

    epoch()
    inner = optimizer.optimizer
    assert int(inner.state[model.body[0].weight]["gamma_state"][3]) == 4  # eight batches, two to a step
    assert torch.equal(inner.state[model.body[0].weight]["anchor"], anchors["body.0.weight"])
    accelerator.save_state(str(tmp_path))
    epoch()
    straight = weights(model)
    accelerator.load_state(str(tmp_path))
    epoch()
    assert torch.equal(weights(model), straight)
    AcceleratorState._reset_state(reset_partial_state=True)


def lightning_parts() -> tuple[Any, Any]:
    import lightning
    from lightning.pytorch.callbacks import BaseFinetuning

    class FineTuning(lightning.LightningModule):
        def __init__(self, seed: int = 0) -> None:
            super().__init__()
            self.model = net(seed)

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            groups = ftp.named_groups(self.model, head="head", trainable_only=False)
            optimizer = ftp.AdamP(groups, lr=1e-2)
            return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)]

    class Unfreeze(BaseFinetuning):
        def freeze_before_training(self, module: Any) -> None:
            self.freeze(module.model.body)

        def finetune_function(self, module: Any, epoch: int, optimizer: Any) -> None:
            if epoch == 2:
                self.make_trainable(module.model.body)

    return FineTuning, Unfreeze


def quiet_trainer(folder: Path, epochs: int, *callbacks: Any, **more: Any) -> Any:
    import lightning

    return lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(folder),
        callbacks=list(callbacks),
        **more,
    )


def test_lightning_resumes_from_its_model_checkpoint(tmp_path: Path) -> None:
    from lightning.pytorch.callbacks import ModelCheckpoint

    fine_tuning, _ = lightning_parts()
    keep = ModelCheckpoint(str(tmp_path), filename="{epoch}", save_top_k=-1)
    whole = fine_tuning()
    quiet_trainer(tmp_path, 4, keep).fit(whole, loader())
    broken = fine_tuning(seed=6)
    resumed = quiet_trainer(tmp_path, 4, ModelCheckpoint(str(tmp_path / "again")))
    resumed.fit(broken, loader(), ckpt_path=str(tmp_path / "epoch=1.ckpt"), weights_only=False)
    assert torch.equal(weights(whole), weights(broken))
    assert max(resumed.optimizers[0].constraints().values()) > 0.01


def test_lightning_unfreezes_later(tmp_path: Path) -> None:
    fine_tuning, unfreeze = lightning_parts()
    module = fine_tuning()
    start = copy.deepcopy(module.model.body.state_dict())
    trainer = quiet_trainer(tmp_path, 2, unfreeze(), enable_checkpointing=False)
    trainer.fit(module, loader())
    (optimizer,) = trainer.optimizers
    assert set(optimizer.state) == set(module.model.head.parameters())  # a frozen layer has no state
    assert optimizer.constraints() == {}

    module = fine_tuning()
    trainer = quiet_trainer(tmp_path, 4, unfreeze(), enable_checkpointing=False)
    trainer.fit(module, loader())
    (optimizer,) = trainer.optimizers
    assert sorted(optimizer.constraints()) == ["body.0.bias", "body.0.weight", "body.2.bias", "body.2.weight"]
    state = optimizer.state[module.model.body[0].weight]
    assert int(state["gamma_state"][3]) == 16  # two epochs of eight
    assert torch.equal(state["anchor"], start["0.weight"])
    assert 0 < optimizer.report()["body.0.weight"].distance <= state["gamma_state"][0] * (1 + 1e-5)


def test_timms_layer_decay_is_ours() -> None:
    from timm.optim import param_groups_layer_decay

    model = timm_vit()
    theirs = {
        id(p): (group["lr_scale"], group["weight_decay"])
        for group in param_groups_layer_decay(
            model, weight_decay=0.05, layer_decay=0.75, no_weight_decay_list=model.no_weight_decay()
        )
        for p in group["params"]
    }
    ours = ftp.named_groups(model, lr=1.0, weight_decay=0.05, layer_decay=0.75, head="head")
    for group in ours:
        for name, param in group["params"]:
            assert (group["lr"], group["weight_decay"]) == pytest.approx(theirs[id(param)]), name
    assert sum(len(group["params"]) for group in ours) == len(theirs)


def test_timms_schedulers_set_every_groups_rate() -> None:
    from timm.scheduler import CosineLRScheduler, StepLRScheduler

    for build in (
        lambda o: CosineLRScheduler(o, t_initial=6, warmup_t=2, warmup_lr_init=1e-6),
        lambda o: StepLRScheduler(o, decay_t=2, decay_rate=0.5),
    ):
        rates = []
        for make in (ftp.AdamP, torch.optim.AdamW):
            model = timm_vit()
            groups = ftp.named_groups(model, lr=1e-2, layer_decay=0.5, head="head")
            if make is torch.optim.AdamW:
                groups = [{"params": g["params"], "lr": g["lr"], "weight_decay": g["weight_decay"]} for g in groups]
            optimizer = make(groups, lr=1e-2)
            scheduler = build(optimizer)
            seen = []
            for epoch in range(5):
                for x, y in loader((3, 8, 8), batch=32):
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(model(x), y).backward()
                    optimizer.step()
                scheduler.step(epoch + 1)
                seen.append([group["lr"] for group in optimizer.param_groups])
            rates.append(seen)
        assert rates[0] == rates[1]
        assert rates[0][0] != rates[0][-1]


def lora(model: nn.Module) -> nn.Module:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, lora_alpha=8, target_modules=["qkv", "fc1"], modules_to_save=["head"])
    wrapped: nn.Module = get_peft_model(model, config)
    return wrapped


def fit(model: nn.Module, optimizer: torch.optim.Optimizer, epochs: int = 3) -> None:
    for _ in range(epochs):
        for x, y in loader((3, 8, 8)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def change_of(layer: Any) -> float:
    """How far LoRA moves a layer, as PEFT itself computes it."""
    return float(ftp.mars_norm(layer.get_delta_weight("default").detach()))


def test_lora_on_a_leash_is_held_where_it_acts() -> None:
    torch.manual_seed(0)
    model = lora(timm_vit())
    groups = ftp.named_groups(model, head="head")
    optimizer = ftp.AdamP(groups, lr=5e-2)
    fit(model, optimizer)
    report = optimizer.report()
    assert len(report) == 6  # qkv and fc1 of three blocks; the head is free, the base is frozen
    layers = {name: m for name, m in model.named_modules() if hasattr(m, "get_delta_weight")}
    for name, layer in layers.items():
        row = report[ftp.anchors.plain_name(f"{name}.lora_B.default.weight")]
        assert change_of(layer) == pytest.approx(row.distance, rel=1e-4)
        assert row.distance <= row.gamma * (1 + 1e-4)
    assert max(row.distance for row in report.values()) > 0.05


def test_heads_side_by_side_are_not_taken_for_q_k_and_v() -> None:
    """CoAtNet lays q, k and v of each head together; a Swin all q, then all k, then all v."""
    import timm

    for name, split in (("coatnet_nano_rw_224", 1), ("swin_tiny_patch4_window7_224", 3)):
        model = timm.create_model(name, pretrained=False)
        splits = {g["split"] for g in ftp.named_groups(model) for n, _ in g["params"] if n.endswith("qkv.weight")}
        assert splits == {split}


def test_an_adapter_without_a_plain_pair_is_spoken_of_once() -> None:
    from peft import LoraConfig, get_peft_model

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

    model = get_peft_model(Reader(), LoraConfig(r=2, target_modules=["words", "out"]))
    with pytest.warns(UserWarning, match="is part of an adapter that is not a plain pair") as caught:
        groups = ftp.named_groups(model)
    assert (len(caught), caught[0].filename) == (1, __file__)
    assert sum(group["product"] is not None for group in groups) == 1  # out's
    assert len(ftp.named_groups(model, head="*lora_embedding_*")) > 1  # they run free: nothing is said


def test_lora_with_leashes_on_the_factors_is_not_held() -> None:
    torch.manual_seed(0)
    model = lora(timm_vit())
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    with pytest.warns(UserWarning, match="LoRA's factors A and B are on leashes of their own") as caught:
        optimizer = ftp.AdamP(named, lr=5e-2, exclude_set={"head.*"})
    assert [str(warning.message) for warning in caught] == [FACTORS]
    fit(model, optimizer)
    gammas = optimizer.constraints()
    layers = {name: m for name, m in model.named_modules() if hasattr(m, "get_delta_weight")}
    ratios = []
    for name, layer in layers.items():
        factors = [gammas[ftp.anchors.plain_name(f"{name}.lora_{f}.default.weight")] for f in "AB"]
        ratios.append(change_of(layer) / max(factors))
    assert max(ratios) > 2


def test_lora_costs_what_it_trains() -> None:
    model = lora(timm_vit())
    optimizer = ftp.AdamP(ftp.named_groups(model, head="head"), lr=1e-3)
    peer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    fit(model, optimizer, epochs=1)
    fit(model, peer, epochs=1)
    sizes = [
        sum(v.nbytes for state in o.state.values() for v in state.values() if torch.is_tensor(v))
        for o in (optimizer, peer)
    ]
    assert sizes[0] < 1.5 * sizes[1]
