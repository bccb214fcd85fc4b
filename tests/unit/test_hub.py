"""Models from a hub: fetched once, and a sentence for everything that can go wrong on the way."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import _snapshot_download

from neuralviz.errors import ModelError
from neuralviz.models import hub, load_model, load_sentence_transformer, load_text_model
from tests.support.hub import COMMIT
from tests.support.hub import hub as local_hub
from tests.support.models import save_sentence_transformer, split_weights
from tests.support.waiting import free_port

MODEL = "someone/a-model"


def sentence_of(model_id: str = MODEL) -> str:
    """The sentence with which a model is refused."""
    with pytest.raises(ModelError) as caught:
        load_model(model_id)
    return str(caught.value)


@pytest.fixture
def hub_at(monkeypatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Switch the hub on, with nothing in its cache and no proxy; takes the hub's address."""
    from huggingface_hub import close_session, constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    close_session()  # the next one sees the environment anew

    def lies_at(address: str) -> None:
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    yield lies_at
    close_session()


def test_a_model_is_fetched_once(hub_at, folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    (folder / "README.md").write_text("not needed")
    with local_hub({MODEL: folder}) as address:
        hub_at(address)
        model = load_model(MODEL, device="cpu")
        assert (model.id, model.fingerprint, model.family) == (MODEL, COMMIT, "bert")
        fetched = {path.name for path in hub.fetch(MODEL).iterdir()}
        assert "model.safetensors" in fetched
        assert not fetched & {"pytorch_model.bin", "README.md"}
    assert load_model(MODEL, device="cpu").fingerprint == COMMIT  # the hub is gone


def test_a_sentence_transformer_comes_with_its_modules(hub_at, tmp_path: Path) -> None:
    folder = save_sentence_transformer(tmp_path / "model")
    (folder / "onnx").mkdir()
    shutil.copy(folder / "model.safetensors", folder / "onnx" / "model.safetensors")
    (folder / "1_Pooling" / "code.py").write_text("raise SystemExit")
    with local_hub({MODEL: folder}) as address:
        hub_at(address)
        encoder, fingerprint = load_sentence_transformer(MODEL, device="cpu")
        fetched = hub.fetch(MODEL)
    assert fingerprint == COMMIT
    assert fetched.name == COMMIT
    assert (fetched / "1_Pooling" / "config.json").is_file()
    assert not (fetched / "onnx").exists()
    assert not list(fetched.rglob("*.py"))
    here, _ = load_sentence_transformer(folder, device="cpu")
    text = ["The dog barks."]
    assert (encoder.encode(text) == here.encode(text)).all()
    assert load_text_model(MODEL, device="cpu").d_model == 32  # the same files, without the hub


@pytest.mark.parametrize("lost", ["tokenizer", "a shard", "the index"])
def test_a_model_of_which_the_cache_holds_a_part_is_fetched(
    lost: str, hub_at, folder: Path, monkeypatch
) -> None:
    from huggingface_hub import constants

    _, second, _ = split_weights(folder)
    gone = {"tokenizer": "token*", "a shard": second.name, "the index": "*.index.json"}[lost]
    with local_hub({MODEL: folder}) as address:
        hub_at(address)
        for path in hub.fetch(MODEL).glob(gone):
            path.unlink()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert "HF_HUB_OFFLINE" in sentence_of()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        assert load_model(MODEL, device="cpu").fingerprint == COMMIT


@pytest.mark.parametrize("refuses", [None, 401, 404])
def test_a_model_that_the_hub_has_not(refuses: int | None, hub_at) -> None:
    with local_hub({}, refuses=refuses) as address:
        hub_at(address)
        sentence = f"The Hugging Face Hub has no public model “{MODEL}”. Check the spelling"
        assert sentence in sentence_of()


def test_weights_that_could_hold_code_are_not_fetched(hub_at, folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with local_hub({MODEL: folder}) as address:
        hub_at(address)
        assert "no weights in safetensors format, only pytorch_model.bin" in sentence_of()


class TransportError(Exception):
    """What the library below the hub's client raises, which is none of the hub's own errors."""


def gated() -> Exception:
    from unittest.mock import Mock

    from huggingface_hub import errors

    return errors.GatedRepoError("403", response=Mock(headers={}, status_code=403))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "(OSError: [Errno 28] No space"),
        (TransportError("slow"), "(TransportError: slow)"),
        (gated(), "hf auth login"),
    ],
    ids=["disk full", "transport", "gated"],
)
def test_what_breaks_off_a_fetch(error, sentence, hub_at, folder, monkeypatch) -> None:
    def hf_hub_download(*_: object, **__: object) -> str:
        raise error

    # what snapshot_download calls for every file
    monkeypatch.setattr(_snapshot_download, "hf_hub_download", hf_hub_download)
    with local_hub({MODEL: folder}) as address:
        hub_at(address)
        assert sentence in sentence_of()


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:{port}", "http://192.0.2.1", "http://no-such-host.invalid"],
    ids=["closed port", "no route", "no name"],
)
def test_no_network(endpoint: str, hub_at) -> None:
    hub_at(endpoint.format(port=free_port()))
    start = time.perf_counter()
    assert "could not be fetched from the Hugging Face Hub" in sentence_of()
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("where", ["", "/api/models"], ids=["at all", "where it matters"])
def test_a_hub_that_is_silent(where: str, hub_at, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(hub, "NETWORK_SECONDS", 0.5)
    with local_hub({MODEL: folder}, silent_on=where) as address:
        hub_at(address)
        start = time.perf_counter()
        assert "could not be fetched from the Hugging Face Hub" in sentence_of()
        assert time.perf_counter() - start < 2
