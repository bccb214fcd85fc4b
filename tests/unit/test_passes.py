"""A text's vector depends on the text and the model alone, whatever the architecture does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import nn

from neuralviz.embedders import NeuralEmbedder, PooledEmbedder
from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
from neuralviz.errors import ModelError
from neuralviz.models import BUNDLED, MINILM, export_model, load_model, load_text_model
from neuralviz.models.bundled.network import BEHAVIOUR
from neuralviz.models.language_model import LanguageModel
from neuralviz.models.loading import assemble
from neuralviz.models.passes import Behaviour, probe_encoder
from tests.support.families import save_family
from tests.support.models import BERT_SPECIALS, SENTENCES, fast_tokenizer

TEXTS = ["dog ran", " ".join(SENTENCES[:3]), "The dog barks.", SENTENCES[0], "a"]
"""Short beside long, so that most of a padded batch is padding."""


def plain_states(folder: Path, text: str) -> np.ndarray:
    """[token, dim] last hidden states of a text by a model that has read nothing before."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def assert_equal(first: np.ndarray, second: np.ndarray) -> None:
    scale = np.abs(second).max(axis=-1, keepdims=True)
    assert np.abs(first - second).max() <= 1e-5 * scale.max()


@pytest.mark.parametrize(
    ("kind", "batching", "keeps_state"),
    [
        ("bert", "padded", False),
        ("fnet", "equal lengths", False),
        ("convbert", "equal lengths", False),
        ("big_bird", "equal lengths", True),
        ("xlnet", "padded", False),
    ],
)
def test_what_the_probe_finds(kind: str, batching: str, keeps_state: bool, tmp_path: Path) -> None:
    behaviour = load_text_model(save_family(kind, tmp_path / kind)).behaviour
    assert (behaviour.batching, behaviour.keeps_state) == (batching, keeps_state)
    assert not behaviour.draws


@pytest.mark.sweep(1)
@pytest.mark.parametrize("n_words", [36, 37, 38, 39])
def test_big_bird_after_a_short_text(n_words: int, tmp_path: Path) -> None:
    """Of long texts it attends to blocks, which a short one once switched off for good."""
    folder = save_family("big_bird", tmp_path / "model", block_size=4)
    embedder = PooledEmbedder(load_text_model(folder))
    text = " ".join(["dog ran the"] * 21).split()[:n_words]
    expected = plain_states(folder, " ".join(text)).mean(axis=0)
    for _ in range(2):
        assert_equal(embedder.encode(" ".join(text), normalize_embeddings=False), expected)
        embedder.encode("a dog")


@pytest.mark.parametrize(
    ("kind", "sizes", "sentence"),
    [
        ("mra", {}, "no token knows of another"),
        ("dpr", {}, "vectors of every token"),
        ("funnel", {}, "do not give one vector for each token"),
        ("xmod", {"languages": ["en_XX", "de_DE"]}, "a plain text: Input language unknown"),
        ("flaubert", {"pre_norm": True}, "does not read a plain text"),
        ("opt", {"word_embed_proj_dim": 16}, "differ in size"),
        ("rwkv", {"rescale_every": 1}, "changes its own weights"),
        ("t5", {}, r"\(t5\) is an encoder-decoder model"),
    ],
)
def test_what_cannot_be_read_is_refused(
    kind: str, sizes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=sentence):
        load_text_model(save_family(kind, tmp_path / kind, **sizes))


class _Noisy(nn.Module):
    """Adds noise to what goes into it, in eval mode too."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states + torch.randn_like(states)


class _Counting(nn.Module):
    """Gives more, the more often it has been called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return states * self.calls


class _LooksAtTheBatch(nn.Module):
    """Subtracts what the other texts of a batch have in common."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states - (states.mean(dim=0) if len(states) > 1 else 0)


def altered_bert(module: nn.Module, folder: Path) -> LanguageModel:
    save_family("bert", folder)
    network = transformers.BertForMaskedLM.from_pretrained(folder)
    network.bert.encoder.layer[1].attention.output.dropout = module
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return assemble(LanguageModel, "altered", network, tokenizer, "0")


@pytest.mark.parametrize("module", [_Noisy, _Counting, _LooksAtTheBatch])
def test_networks_that_look_at_more_than_the_text(
    module: Callable[[], nn.Module], tmp_path: Path
) -> None:
    model = altered_bert(module(), tmp_path)
    embedder = PooledEmbedder(model)
    together = embedder.encode(TEXTS)
    torch.manual_seed(1)
    for text, vector in zip(TEXTS, together, strict=True):
        assert_equal(embedder.encode(text), vector)
    assert model.behaviour.draws == (module is _Noisy)
    assert model.behaviour.keeps_state == (module is _Counting)
    if module is not _LooksAtTheBatch:
        NeuralEmbedder(model, epochs=1).encode(TEXTS[0])
        with pytest.raises(ModelError, match="layers of its head"):
            NeuralEmbedder(model, layers="last_block", epochs=1).encode(TEXTS[0])
    buffers = dict(model.network.named_buffers())
    assert all(not buffer.any() for name, buffer in buffers.items() if name.endswith("calls"))


def test_random_numbers_of_others_stay_as_they_are(tmp_path: Path) -> None:
    model = altered_bert(_Noisy(), tmp_path)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = torch.rand(1)
    PooledEmbedder(model).encode("a dog")
    assert torch.equal(torch.cat([first, torch.rand(1)]), expected)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("kind", "changes", "tokenizer_window", "expected"),
    [
        ("xlnet", {}, 100, 100),  # max_position_embeddings is -1
        ("xlnet", {}, None, 512),
        ("mpt", {}, 60, 60),  # no such number
        ("bert", {}, 100, 100),
        ("bert", {"max_position_embeddings": 64}, 100, 64),
        # positions are counted from behind padding
        ("roberta-prelayernorm", {"max_position_embeddings": 64, "pad_token_id": 1}, None, 62),
        ("bert", {"max_position_embeddings": 128}, 0, 128),
        ("bert", {}, 4, 4),
        ("bert", {"max_position_embeddings": 5}, None, 5),
    ],
)
def test_windows(
    kind: str, changes: dict[str, int], tokenizer_window: int | None, expected: int, tmp_path: Path
) -> None:
    folder = save_family(kind, tmp_path / "model", **changes)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = int(1e30) if tokenizer_window is None else tokenizer_window
    tokenizer.save_pretrained(folder)
    model = load_text_model(folder)
    assert model.window == expected
    vector = PooledEmbedder(model).encode(" ".join(SENTENCES * 12))  # many chunks
    assert np.isfinite(vector).all()


def test_a_text_that_the_network_does_not_take_in_spite_of_its_window(tmp_path: Path) -> None:
    folder = save_family("mpt", tmp_path / "model", max_seq_len=64)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 200
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match=r"\(mpt\) cannot read a text of 196 tokens"):
        PooledEmbedder(load_text_model(folder)).encode(" ".join(SENTENCES * 4))


@pytest.mark.parametrize("kind", ["fnet", "convbert", "big_bird", "xlnet"])
def test_sentence_encoders(kind: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    folder = str(save_family(kind, tmp_path / kind))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = "[PAD]"  # which that of XLNet lacks here
    tokenizer.save_pretrained(folder)

    def make_encoder() -> SentenceTransformer:
        return SentenceTransformer(modules=[Transformer(folder), Pooling(32, "mean")], device="cpu")

    embedder = SentenceTransformerEmbedder(make_encoder(), "0")
    expected = np.stack([make_encoder().encode([text])[0] for text in TEXTS])
    for order in (slice(None), slice(None, None, -1)):
        vectors = embedder.encode(TEXTS[order], normalize_embeddings=False)[order]
        assert_equal(vectors, expected)


def test_context_is_checked_with_tokens_that_the_tokenizer_has(tmp_path: Path) -> None:
    """Of this one every letter is the unknown token, so that no letter can be told from another."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    words = (*BERT_SPECIALS, "red", "green", "blue")
    for kind in ("bert", "mra"):
        folder = save_family(kind, tmp_path / kind)
        backend = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
        backend.pre_tokenizer = Whitespace()
        fast_tokenizer(backend, BERT_SPECIALS).save_pretrained(folder)
        pooling = Pooling(32, "mean")
        encoder = SentenceTransformer(modules=[Transformer(str(folder)), pooling], device="cpu")
        if kind == "bert":
            SentenceTransformerEmbedder(encoder)
            continue
        with pytest.raises(ModelError, match="no token knows of another"):
            SentenceTransformerEmbedder(encoder)


def test_an_export_that_would_give_other_numbers(tmp_path: Path) -> None:
    """What is no part of the saved weights counts as well."""
    model = load_model(save_family("bert", tmp_path / "model"))
    positions = model.network.bert.embeddings.position_ids
    positions.copy_(positions.flip(1))
    with pytest.raises(ModelError, match="gives other numbers"):
        export_model(model, tmp_path / "export")
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize("model_id", [BUNDLED, MINILM])
def test_recorded_behaviour(model_id: str) -> None:
    """Models that come along are not tried: what a trial would find is written down."""
    model = load_text_model(model_id)

    def make_input(n_words: int, start: int) -> list[int]:
        return [*model.prefix_ids, *range(2000 + start, 2000 + start + n_words), *model.suffix_ids]

    found = probe_encoder(model.network.base_model, model_id, make_input, model.pad_id)
    assert found == model.behaviour == BEHAVIOUR
    assert isinstance(found, Behaviour)
