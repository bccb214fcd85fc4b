"""The small models of every family, built once a session, and a store of corpora."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.models import save_family

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel
    from neuralviz.store.corpora import CorpusStore


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    """Small models: threads would only wait for each other, also those that numba leaves behind."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    from neuralviz.store.corpora import CorpusStore

    return CorpusStore(tmp_path / "corpora")


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LanguageModel]:
    """``small_model("roberta")``: a small random model of a family, loaded from a folder."""
    from neuralviz.models import load_model

    @cache
    def make(family: str) -> LanguageModel:
        folder = save_family(family, tmp_path_factory.mktemp(family))
        return load_model(folder, device="cpu")

    return make


@pytest.fixture(scope="session")
def tiny(small_model: Callable[[str], LanguageModel]) -> LanguageModel:
    """The small BERT."""
    return small_model("bert")


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family("bert", tmp_path_factory.mktemp("bert"))


@pytest.fixture
def folder(bert_folder: Path, tmp_path: Path) -> Path:
    """A small model's folder, to be spoilt."""
    return Path(shutil.copytree(bert_folder, tmp_path / "model"))
