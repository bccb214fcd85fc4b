"""Weights in a file that the architecture has no place for; and what counts as a model's files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from neuralviz.errors import ModelError
from neuralviz.models import load_model, load_sentence_transformer, load_text_model
from neuralviz.models.loading import resolve
from neuralviz.models.shared import files_stamp
from tests.support.models import save_family, save_sentence_transformer

LOADERS = (load_text_model, load_model, load_sentence_transformer)
BLOCK = "encoder.layer.1.attention.self"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT with a head, of 3 blocks."""
    return save_family("bert", tmp_path_factory.mktemp("plain") / "bert")


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a model of sentence-transformers."""
    return save_sentence_transformer(tmp_path_factory.mktemp("dense") / "dense")


def take_a_block_out(folder: Path, prefix: str) -> str:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    return f"{prefix}encoder.layer.2."


def add_weights(folder: Path, **weights: torch.Tensor) -> None:
    file = folder / "model.safetensors"
    save_file(load_file(file) | weights, file, metadata={"format": "pt"})


def leave_lora_unmerged(folder: Path, prefix: str) -> str:
    name = f"{prefix}{BLOCK}.query.lora_A.default.weight"
    add_weights(folder, **{name: torch.ones(4, 32)})
    return name


def add_relative_positions(folder: Path, prefix: str) -> str:
    name = f"{prefix}{BLOCK}.distance_embedding.weight"
    add_weights(folder, **{name: torch.ones(127, 8)})
    return name


@pytest.mark.sweep(1)
@pytest.mark.parametrize("change", [take_a_block_out, leave_lora_unmerged, add_relative_positions])
def test_weights_without_a_place_are_refused(
    change: Callable[[Path, str], str], plain: Path, dense: Path, tmp_path: Path
) -> None:
    for load in LOADERS:
        is_dense = load is load_sentence_transformer
        folder = Path(shutil.copytree(dense if is_dense else plain, tmp_path / load.__name__))
        name = change(folder, "" if is_dense else "bert.")
        with pytest.raises(ModelError, match="no place for, for example") as caught:
            load(folder, device="cpu")
        assert name in str(caught.value)


def test_heads_and_old_buffers_are_accepted(plain: Path, dense: Path, tmp_path: Path) -> None:
    for load in LOADERS:
        is_dense = load is load_sentence_transformer
        folder = Path(shutil.copytree(dense if is_dense else plain, tmp_path / load.__name__))
        prefix = "" if is_dense else "bert."
        extra = {
            "cls.seq_relationship.weight": torch.ones(2, 32),
            "cls.seq_relationship.bias": torch.ones(2),
            f"{prefix}pooler.dense.weight": torch.ones(32, 32),
            f"{prefix}pooler.dense.bias": torch.ones(32),
            f"{prefix}embeddings.position_ids": torch.arange(64)[None],
        }
        add_weights(folder, **extra)
        load(folder, device="cpu")


@pytest.mark.parametrize("path", ["enc", "pool", "parts/enc", "a/b/c"])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "x.model"])
def test_nested_files_are_a_part_of_the_model(path: str, name: str, tmp_path: Path) -> None:
    (tmp_path / path).mkdir(parents=True)
    (tmp_path / "modules.json").write_text(json.dumps([{"path": path, "type": "x"}]))
    file = tmp_path / path / name
    file.write_text("first")
    fingerprint, stamp = resolve(str(tmp_path))[1], files_stamp(str(tmp_path))
    assert (resolve(str(tmp_path))[1], files_stamp(str(tmp_path))) == (fingerprint, stamp)
    then = file.stat()
    file.write_text("other")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns + 1_000_000))
    assert resolve(str(tmp_path))[1] != fingerprint
    assert files_stamp(str(tmp_path)) != stamp
