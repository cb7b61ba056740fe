"""The frameworks are optional: without the extra `integrations` these tests are skipped. Nothing is downloaded."""

import importlib.util
import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a model from a config needs no hub, and nothing here may ask one
NEEDED = ("transformers", "accelerate", "lightning", "timm", "peft")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.slow)
            # frameworks warn of much; what our optimizers have to say is still an error
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            item.add_marker(pytest.mark.filterwarnings("error:something that is not a step"))
            item.add_marker(pytest.mark.filterwarnings("error:the parameters have no names"))
            if MISSING:
                item.add_marker(
                    pytest.mark.skip(reason=f"needs {', '.join(MISSING)}: pip install ftp-kit[integrations]")
                )
