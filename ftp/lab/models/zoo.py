"""Networks by name: `torchvision:NAME`, `timm:NAME`, `efficientnet_lite0`; with published weights or a file's own.

Whatever the family, a network here takes pixels in [0, 1], has a new head for its task, and says which parameters that
head has. Sizes, interpolation and normalisation are those of the weights.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from urllib.error import URLError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ftp.lab.record import LabError

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
LITE = "efficientnet_lite0"
EXTRA = "pip install 'ftp-kit[pictures]'"
KINDS = f"model must be torchvision:NAME, timm:NAME or {LITE}, such as model=torchvision:resnet50"
FORMS = ("safetensors", "pt", "pth", "bin", "ckpt")


@dataclass(frozen=True)
class Preprocessing:
    """What a picture has to look like for a network: its size, the side it is cut from, filter, mean and deviation."""

    size: int
    resize: int
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = IMAGENET[0]
    std: tuple[float, ...] = IMAGENET[1]

    def at(self, size: int, crop: float = 0.0) -> Preprocessing:
        """The same for pictures of another size. crop: the share of the side that is seen; 0 for the weights' own.

        >>> Preprocessing(224, 256).at(64).resize, Preprocessing(224, 256).at(64, crop=1.0).resize
        (73, 64)
        """
        size = size or self.size
        resize = round(size / crop) if crop else max(size, round(size * self.resize / self.size))
        return Preprocessing(size, resize, self.interpolation, self.mean, self.std)


@dataclass(frozen=True)
class Network:
    """A network with a new head, and the names of the head's parameters."""

    model: nn.Module
    head: tuple[str, ...]
    weights: str  # which, for provenance


def preprocessing(model: str, weights: str = "") -> Preprocessing:
    """What the weights' own transforms say; no weights are fetched.

    >>> preprocessing("torchvision:resnet50").resize, preprocessing("torchvision:resnet50", "IMAGENET1K_V1").resize
    (232, 256)
    """
    source, name = _parts(model)
    if source == LITE:
        return Preprocessing(224, 256, "bicubic", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    if source == "timm":
        config = _timm_config(name)
        size = int(config["input_size"][-1])
        resize = int(size / float(config["crop_pct"]))
        return Preprocessing(size, resize, config["interpolation"], tuple(config["mean"]), tuple(config["std"]))
    transforms = _torchvision_weights(name, weights).transforms()
    return Preprocessing(
        int(transforms.crop_size[0]),
        int(transforms.resize_size[0]),
        str(transforms.interpolation.value),
        tuple(transforms.mean),
        tuple(transforms.std),
    )


def build(model: str, weights: str, classes: int, seed: int, size: int) -> Network:
    """A network for so many classes; the head is made by `seed`, and the body too where it has no weights (by 0)."""
    source, name = _parts(model)
    prepared = preprocessing(model, weights).at(size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        make = {LITE: _lite, "timm": _timm, "torchvision": _torchvision}[source]
        network, state, which = make(name, weights, prepared.size)
        heads = _heads(network, source, model)
        torch.manual_seed(seed)
        for head in heads:
            _renew(network, head, classes)
    names = [parameter for parameter, _ in network.named_parameters()]
    fresh = tuple(n for n in names if any(n.startswith(f"{head}.") for head in heads))
    if state is not None:
        _fill(network, state, fresh, f"{model} does not take {which}")
    network.register_forward_pre_hook(_Normalise(prepared.mean, prepared.std))
    return Network(network.to(memory_format=torch.channels_last), fresh, which)


class _Normalise:
    """Pixels in [0, 1] become what the network was trained on; a hook, so that no parameter changes its name."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = tuple(mean), tuple(std)

    def __call__(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mean, std = _constants(self.mean, self.std, inputs[0].device, inputs[0].dtype)
        return ((inputs[0] - mean) / std, *inputs[1:])


@functools.lru_cache(maxsize=16)
def _constants(mean: Any, std: Any, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Made once for each device: a copy in every step would wait for it."""
    made = [torch.tensor(values, device=device, dtype=dtype).view(1, -1, 1, 1) for values in (mean, std)]
    return made[0], made[1]


def _parts(model: str) -> tuple[str, str]:
    """The source of a network and its name there."""
    source, _, name = model.partition(":")
    if source == LITE and not name:
        return LITE, ""
    if source not in ("torchvision", "timm") or not name:
        raise LabError(f"model is {model!r}; {KINDS.removeprefix('model ')}")
    return source, name


def _unknown(model: str, names: Sequence[str], where: str) -> LabError:
    close = difflib.get_close_matches(model, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else where
    return LabError(f"model is {model!r}; {hint}")


# ---- where networks come from: each gives a network, the weights to fill in (None if it has them), and which they are


def _lite(name: str, weights: str, size: int) -> tuple[nn.Module, dict[str, Tensor] | None, str]:
    from ftp.lab.models.efficientnet_lite import EfficientNetLite0, renamed, weights_file

    network = EfficientNetLite0()
    if weights == "none":
        return network, None, "no weights"
    path = Path(weights) if weights else weights_file()
    if path is None:
        raise LabError(f"the weights of {LITE} come in an extra that is not installed; write: {EXTRA}")
    return network, renamed(read_state(path)), path.name


def _torchvision_weights(name: str, weights: str) -> Any:
    """The enum of a network's published weights: the one named, else the newest."""
    from torchvision import models

    names = models.list_models(module=models)
    if name not in names:
        known = [f"torchvision:{other}" for other in names]
        raise _unknown(f"torchvision:{name}", known, "torchvision.models.list_models() says what there is")
    enum = models.get_model_weights(name)
    if weights in enum.__members__:
        return enum[weights]
    if weights not in ("", "none", "DEFAULT") and not _is_file(weights):
        published = ", ".join(enum.__members__)
        raise LabError(
            f"weights is {weights!r}; for torchvision:{name} it must be one of {published}, none, or a file, "
            f"such as weights=mine.safetensors"
        )
    return enum["DEFAULT"]


def _torchvision(name: str, weights: str, size: int) -> tuple[nn.Module, dict[str, Tensor] | None, str]:
    from torchvision import models

    chosen = _torchvision_weights(name, weights)
    options: dict[str, Any] = {}
    if name in ("googlenet", "inception_v3"):
        options = {"aux_logits": False, "init_weights": True}
    if name.startswith("vit_"):
        patch = int(name.rpartition("_")[2])
        if size % patch:
            raise LabError(f"size is {size}; torchvision:{name} takes a multiple of {patch}, such as size={patch * 14}")
        options["image_size"] = size
    network = models.get_model(name, weights=None, **options)
    if weights == "none":
        return network, None, "no weights"
    if _is_file(weights):
        state = read_state(Path(weights))
    else:
        state = _fetched(lambda: chosen.get_state_dict(progress=False, check_hash=True), f"torchvision:{name}")
    if name.startswith("vit_"):
        state = _fitted_positions(network, state, size, patch)
    if options.get("aux_logits") is False:
        state = {key: value for key, value in state.items() if not key.lower().startswith("aux")}
    return network, state, Path(weights).name if _is_file(weights) else chosen.name


def _fitted_positions(network: nn.Module, state: dict[str, Tensor], size: int, patch: int) -> dict[str, Tensor]:
    """Position embeddings of another picture size, stretched to this one."""
    from torchvision.models.vision_transformer import interpolate_embeddings

    key = "encoder.pos_embedding"
    if key not in state or state[key].shape == dict(network.named_parameters())[key].shape:
        return state
    from collections import OrderedDict

    return dict(interpolate_embeddings(size, patch, OrderedDict(state)))


def _timm_config(name: str) -> dict[str, Any]:
    try:
        import timm
    except ImportError:
        raise LabError(f"model is 'timm:{name}', and timm is not installed; write: {EXTRA}") from None
    if not timm.is_model(name):
        known = [f"timm:{other}" for other in timm.list_models()]
        raise _unknown(f"timm:{name}", known, "timm.list_models() says what there is")
    config = timm.models.get_pretrained_cfg(name)
    if config is None:  # a network without published weights
        return {
            "input_size": (3, 224, 224),
            "crop_pct": 0.875,
            "interpolation": "bicubic",
            "mean": IMAGENET[0],
            "std": IMAGENET[1],
        }
    resolve: Any = timm.data.resolve_data_config  # type: ignore[attr-defined]
    resolved: dict[str, Any] = resolve(pretrained_cfg=config.to_dict())  # type: ignore[no-untyped-call]
    return resolved


def _timm(name: str, weights: str, size: int) -> tuple[nn.Module, dict[str, Tensor] | None, str]:
    import timm

    usual_size = int(_timm_config(name)["input_size"][-1])
    if weights not in ("", "none") and not _is_file(weights):
        raise LabError(
            f"weights is {weights!r}; for timm:{name} it must be none or a file, such as weights=mine.safetensors: "
            f"timm's names have their weights after a dot, such as timm:{name.partition('.')[0]}.TAG"
        )

    def make(**options: Any) -> nn.Module:
        pretrained = weights == ""
        try:
            network: nn.Module = timm.create_model(name, pretrained=pretrained, **options)
        except TypeError:  # a network for any size takes none
            network = timm.create_model(name, pretrained=pretrained)
        return network

    options = {} if size == usual_size else {"img_size": size}
    network: Any = _fetched(lambda: make(**options), f"timm:{name}")
    if isinstance(network.get_classifier(), nn.Identity):  # published as a body alone
        network.reset_classifier(1000)
    if _is_file(weights):
        return network, read_state(Path(weights)), Path(weights).name
    return network, None, "no weights" if weights == "none" else str(network.pretrained_cfg.get("tag") or "pretrained")


def _fetched(fetch: Callable[[], Any], model: str) -> Any:
    """What comes from another machine; if it cannot be reached, what to do."""
    try:
        return fetch()
    except LabError:
        raise
    except Exception as error:  # urllib, requests and the hub each have their own
        if not isinstance(error, OSError | URLError | RuntimeError) and "hub" not in type(error).__module__:
            raise
        raise LabError(
            f"the weights of {model} cannot be fetched ({type(error).__name__}); go online once, or give a file that "
            f"you have with weights=FILE, or take model={LITE}, whose weights come with {EXTRA}"
        ) from None


# ---- weights from files


def _is_file(weights: str) -> bool:
    return bool(weights) and (Path(weights).exists() or weights.rpartition(".")[2] in FORMS or "/" in weights)


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a state dict that torch saved; nothing in it is executed."""
    if not path.is_file():
        raise LabError(f"weights is {str(path)!r}, which is no file; write the path of a .safetensors or .pth file")
    try:
        if path.suffix == ".safetensors":
            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, UnpicklingError, RuntimeError, EOFError, OSError, ValueError, KeyError):
        raise LabError(
            f"{path} holds no weights that can be read safely; save them with torch.save(model.state_dict(), FILE), "
            "or as safetensors"
        ) from None
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise LabError(f"{path} holds no state dict; save it with torch.save(model.state_dict(), FILE)")
    return {str(name).removeprefix("module."): tensor for name, tensor in state.items()}


def _fill(network: nn.Module, state: dict[str, Tensor], fresh: Sequence[str], problem: str) -> None:
    """Put weights into a network, all of them but the head's."""
    wanted = network.state_dict()
    heads = {name.rpartition(".")[0] for name in fresh}
    body = {name: tensor for name, tensor in state.items() if name.rpartition(".")[0] not in heads}
    missing = [name for name in wanted if name not in body and name.rpartition(".")[0] not in heads]
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    extra = [name for name in body if name not in wanted]
    wrong = [name for name in body if name in wanted and body[name].shape != wanted[name].shape]
    if missing or extra or wrong:
        parts = [f"{len(missing)} tensors are missing"] if missing else []
        parts += [f"{len(extra)} are not in it"] if extra else []
        parts += [f"{wrong[0]} has shape {tuple(body[wrong[0]].shape)}"] if wrong else []
        first = (missing or extra or wrong)[0]
        raise LabError(f"{problem}: {', '.join(parts)} (such as {first}); give the weights of this very network")
    network.load_state_dict(body, strict=False)


# ---- heads


def _heads(network: nn.Module, source: str, model: str) -> tuple[str, ...]:
    """The names of the modules that turn features into classes."""
    modules = dict(network.named_modules())
    if source == "timm":
        head: Any = network.get_classifier()  # type: ignore[operator]
        heads = tuple(head) if isinstance(head, tuple | list) else (head,)
        names = tuple(name for name, module in modules.items() if any(module is h for h in heads))
    else:  # torchvision's networks and ours know 1,000 classes
        names = tuple(name for name, module in modules.items() if _outputs(module) == 1000)[-1:]
    if not names or any(_outputs(modules[name]) is None for name in names):
        raise LabError(f"{model} has no head that can be replaced; choose a network for classification")
    return names


def _outputs(module: nn.Module) -> int | None:
    if isinstance(module, nn.Linear):
        return module.out_features
    return module.out_channels if isinstance(module, nn.Conv2d) and module.kernel_size == (1, 1) else None


def _renew(network: nn.Module, name: str, classes: int) -> None:
    """A new layer in the place of a head, with as many outputs as there are classes."""
    parent_name, _, attribute = name.rpartition(".")
    parent, old = network.get_submodule(parent_name), network.get_submodule(name)
    has_bias = getattr(old, "bias", None) is not None
    new: nn.Module
    if isinstance(old, nn.Linear):
        new = nn.Linear(old.in_features, classes, bias=has_bias)
    else:
        assert isinstance(old, nn.Conv2d)
        new = nn.Conv2d(old.in_channels, classes, 1, bias=has_bias)
    setattr(parent, attribute, new)
