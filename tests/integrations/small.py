"""Small networks and data for the frameworks: built from configs, trained for seconds."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x))
        return out


def net(seed: int = 0) -> Net:
    torch.manual_seed(seed)
    return Net()


def pairs(count: int = 64, shape: tuple[int, ...] = (12,)) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, *shape, generator=generator)
    return TensorDataset(x, (x.flatten(1)[:, :3]).argmax(1))


def loader(shape: tuple[int, ...] = (12,), batch: int = 8) -> DataLoader:
    return DataLoader(pairs(shape=shape), batch_size=batch)


class Sentences(Dataset):
    """What Trainer expects of a data set for text classification."""

    def __init__(self) -> None:
        self.tokens = torch.randint(1, 40, (48, 6), generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index].sum() % 3}


def bert(seed: int = 0) -> nn.Module:
    """Hugging Face's BERT, small; its new layer is called classifier.

    (Not its ViT: transformers 5.23 saves that under older names, and Trainer loads what has other names not at all.)
    """
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        vocab_size=40,
        max_position_embeddings=8,
        num_labels=3,
    )
    model: nn.Module = BertForSequenceClassification(config)
    return model


def timm_vit(seed: int = 0) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    torch.manual_seed(seed)
    model: nn.Module = VisionTransformer(
        img_size=8, patch_size=4, embed_dim=16, depth=3, num_heads=2, mlp_ratio=2, num_classes=3
    )
    return model


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])
