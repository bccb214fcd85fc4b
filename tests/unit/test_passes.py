"""A text's vector depends on the text and the model alone, whatever the architecture does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import nn

from neuralviz.embedders import NeuralEmbedder, PooledEmbedder
from neuralviz.embedders.pooled import SbertWkEmbedder
from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
from neuralviz.errors import ModelError
from neuralviz.models import BUNDLED, MINILM, bundled, export_model, load_model, load_text_model
from neuralviz.models.bundled.network import BEHAVIOUR
from neuralviz.models.loading import assemble
from neuralviz.models.passes import Behaviour, probe_encoder
from tests.support.models import BERT_SPECIALS, SENTENCES, draw_weights, fast_tokenizer, word_piece
from tests.support.plain_loop import plain_micro_tune

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCAB = 200
WINDOW = 100
SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
}
XLM = {"vocab_size": VOCAB, "emb_dim": 32, "n_layers": 3, "n_heads": 4, "pad_index": 0}
TEXTS = ["dog ran", " ".join(SENTENCES[:3]), "The dog barks.", SENTENCES[0], "a"]
"""Short beside long, so that most of a padded batch is padding."""

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertForMaskedLM", SMALL),
    "fnet": ("FNetForMaskedLM", {**SMALL, "pad_token_id": 0}),
    "convbert": ("ConvBertForMaskedLM", {**SMALL, "embedding_size": 32}),
    "nystromformer": ("NystromformerForMaskedLM", SMALL),
    "yoso": ("YosoForMaskedLM", SMALL),
    "big_bird": (
        "BigBirdForMaskedLM",
        {**SMALL, "block_size": 4, "num_random_blocks": 1, "attention_type": "block_sparse"},
    ),
    "clip_text_model": ("CLIPTextModel", {**SMALL, "eos_token_id": 3}),
    "tipsv2_text_model": ("Tipsv2TextModel", SMALL),
    "xlnet": ("XLNetModel", {"vocab_size": VOCAB, "d_model": 32, "n_layer": 3, "n_head": 4,
                             "d_inner": 48}),
    "mpt": ("MptModel", {"vocab_size": VOCAB, "d_model": 32, "n_layers": 2, "n_heads": 4,
                         "max_seq_len": 128}),
    "mra": ("MraForMaskedLM", SMALL),
    "dpr": ("DPRQuestionEncoder", SMALL),
    "funnel": ("FunnelModel", {"vocab_size": VOCAB, "block_sizes": [1, 1], "d_model": 32,
                               "n_head": 4, "d_head": 8, "d_inner": 48, "num_decoder_layers": 1}),
    "xmod": ("XmodModel", {**SMALL, "languages": ["en_XX", "de_DE"]}),
    "flaubert": ("FlaubertModel", {**XLM, "pre_norm": True}),
    "opt": ("OPTModel", {**SMALL, "word_embed_proj_dim": 16, "ffn_dim": 48}),
    "rwkv": ("RwkvModel", {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 4,
                           "rescale_every": 1, "context_length": 128}),
}  # fmt: skip


def save_model(kind: str, folder: Path, **changes: Any) -> Path:
    """Write a small random model of an architecture, with the tokenizer of the other tests."""
    name, settings = CONFIGS[kind]
    architecture = getattr(transformers, name)
    network = architecture(architecture.config_class(**{**settings, **changes})).eval()
    draw_weights(network, 0)
    network.save_pretrained(folder)
    tokenizer = fast_tokenizer(word_piece(BERT_SPECIALS), BERT_SPECIALS)
    tokenizer.model_max_length = WINDOW
    tokenizer.save_pretrained(folder)
    return folder


def plain_states(folder: Path, text: str) -> np.ndarray:
    """[token, dim] last hidden states of a text by a model that has read nothing before."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def assert_equal(first: np.ndarray, second: np.ndarray) -> None:
    scale = np.abs(second).max(axis=-1, keepdims=True)
    assert np.abs(first - second).max() <= 1e-5 * scale.max()


ACCEPTED = (
    "bert", "fnet", "convbert", "nystromformer", "yoso", "big_bird", "clip_text_model",
    "tipsv2_text_model", "xlnet", "mpt",
)  # fmt: skip


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", ACCEPTED)
def test_vectors_are_those_of_the_text_alone(kind: str, tmp_path: Path) -> None:
    folder = save_model(kind, tmp_path / kind)
    model = load_text_model(folder)
    plain = [plain_states(folder, text) for text in TEXTS]
    alone = np.stack([SbertWkEmbedder(load_text_model(folder)).encode(text) for text in TEXTS])
    for order in (slice(None), slice(None, None, -1)):
        texts = TEXTS[order]
        mean = PooledEmbedder(model).encode(texts, normalize_embeddings=False)[order]
        last = PooledEmbedder(model, "sep").encode(texts, normalize_embeddings=False)[order]
        assert_equal(mean, np.stack([states.mean(axis=0) for states in plain]))
        assert_equal(last, np.stack([states[-1] for states in plain]))
        together = SbertWkEmbedder(model).encode(texts)[order]
        assert (together * alone).sum(axis=1) == pytest.approx(1, abs=1e-5)


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
    behaviour = load_text_model(save_model(kind, tmp_path / kind)).behaviour
    assert (behaviour.batching, behaviour.keeps_state) == (batching, keeps_state)
    assert not behaviour.draws


@pytest.mark.sweep(1)
@pytest.mark.parametrize("n_words", [36, 37, 38, 39])
def test_big_bird_after_a_short_text(n_words: int, tmp_path: Path) -> None:
    """Of long texts it attends to blocks, which a short one once switched off for good."""
    folder = save_model("big_bird", tmp_path / "model")
    embedder = PooledEmbedder(load_text_model(folder))
    text = " ".join(["dog ran the"] * 21).split()[:n_words]
    expected = plain_states(folder, " ".join(text)).mean(axis=0)
    for _ in range(2):
        assert_equal(embedder.encode(" ".join(text), normalize_embeddings=False), expected)
        embedder.encode("a dog")


@pytest.mark.parametrize("kind", ["fnet", "convbert"])
def test_neural_embedding_without_padding(kind: str, tmp_path: Path) -> None:
    folder = save_model(kind, tmp_path / kind)
    model = load_model(folder)
    vectors = NeuralEmbedder(model, epochs=2).encode(TEXTS)
    for vector, text in zip(vectors, TEXTS, strict=True):
        ids = [model.encoder.encode(text, add_special_tokens=False).ids]
        network = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
        deltas, _ = plain_micro_tune(network, model.tokenizer, ids, model.head_layers, epochs=2)
        parts = [np.asarray(delta) / np.linalg.norm(delta) for delta in deltas]
        expected = np.concatenate(parts) / np.sqrt(len(parts))
        assert vector @ expected == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("mra", "no token knows of another"),
        ("dpr", "vectors of every token"),
        ("funnel", "do not give one vector for each token"),
        ("xmod", "does not read a plain text: Input language unknown"),
        ("flaubert", "does not read a plain text"),
        ("opt", "differ in size"),
        ("rwkv", "changes its own weights"),
    ],
)
def test_what_cannot_be_read_is_refused(kind: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=sentence):
        load_text_model(save_model(kind, tmp_path / kind))


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


def altered_bert(module: nn.Module) -> PreTrainedModel:
    network = transformers.BertForMaskedLM(transformers.BertConfig(**SMALL))
    draw_weights(network, 0)
    network.bert.encoder.layer[1].attention.output.dropout = module
    return network


@pytest.mark.parametrize("module", [_Noisy, _Counting, _LooksAtTheBatch])
def test_networks_that_look_at_more_than_the_text(module: Callable[[], nn.Module]) -> None:
    tokenizer = fast_tokenizer(word_piece(BERT_SPECIALS), BERT_SPECIALS)
    model = assemble("altered", "0", altered_bert(module()), tokenizer)
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


def test_random_numbers_of_others_stay_as_they_are() -> None:
    tokenizer = fast_tokenizer(word_piece(BERT_SPECIALS), BERT_SPECIALS)
    model = assemble("altered", "0", altered_bert(_Noisy()), tokenizer)
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
        ("bert", {"max_position_embeddings": 128}, 0, 128),
        ("bert", {}, 4, 4),
        ("bert", {"max_position_embeddings": 5}, None, 5),
    ],
)
def test_windows(
    kind: str, changes: dict[str, int], tokenizer_window: int | None, expected: int, tmp_path: Path
) -> None:
    folder = save_model(kind, tmp_path / "model", **changes)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = int(1e30) if tokenizer_window is None else tokenizer_window
    tokenizer.save_pretrained(folder)
    model = load_text_model(folder)
    assert model.window == expected
    vector = PooledEmbedder(model).encode(" ".join(SENTENCES * 12))  # many chunks
    assert np.isfinite(vector).all()


def test_a_text_that_the_network_does_not_take_in_spite_of_its_window(tmp_path: Path) -> None:
    folder = save_model("mpt", tmp_path / "model", max_seq_len=64)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 200
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match=r"\(mpt\) cannot read a text of 198 tokens"):
        PooledEmbedder(load_text_model(folder)).encode(" ".join(SENTENCES * 4))


@pytest.mark.parametrize("kind", ["fnet", "convbert", "big_bird", "xlnet"])
def test_sentence_encoders(kind: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    folder = str(save_model(kind, tmp_path / kind))

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
        folder = save_model(kind, tmp_path / kind)
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
    model = load_model(save_model("bert", tmp_path / "model"))
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
    assert bundled.WINDOW
