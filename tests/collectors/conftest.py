"""The real small model, loaded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from collectors.models import LoadedModel, load_model


@pytest.fixture(scope="session")
def smollm2() -> Iterator[LoadedModel]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield load_model("smollm2-135m", attention="sdpa")
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def qwen() -> Iterator[LoadedModel]:
    """Load the second built-in model; 2 GB, so for slow tests only."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield load_model("qwen2.5-coder-0.5b")
    torch.set_num_threads(threads)
