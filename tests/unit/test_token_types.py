"""Token types that a tokenizer gives a text reach the model, wherever it reads the text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tokenizers.processors import TemplateProcessing
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from neuralviz.embedders import NeuralEmbedder, PooledEmbedder
from neuralviz.errors import ModelError
from neuralviz.models import load_model, load_text_model
from tests.support.models import BERT_SPECIALS, SENTENCES, draw_weights, word_piece
from tests.support.plain_loop import plain_embedding, plain_micro_tune

TEXTS = ["a", " ".join(SENTENCES[:2]), "The dog barks.", SENTENCES[0]]
KINDS = {
    "all 1": ("bert", "[CLS]:1 $A:1 [SEP]:1"),
    "the text alone": ("bert", "[CLS]:0 $A:1 [SEP]:0"),
    "three": ("bert", "[CLS]:2 $A:0 [SEP]:1 [SEP]:2"),
    "none before": ("bert", "$A:1 [SEP]:2"),
    "xlnet": ("xlnet", "$A:0 [SEP]:0 [CLS]:2"),
}


def save_model(kind: str, folder: Path) -> Path:
    """Write a small random model whose tokenizer gives these types."""
    family, around = KINDS[kind]
    backend = word_piece(BERT_SPECIALS)
    specials = [(token, BERT_SPECIALS.index(token)) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = TemplateProcessing(single=around, special_tokens=specials)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=60,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip
    n = len(tokenizer)
    network = (
        transformers.XLNetModel(
            transformers.XLNetConfig(vocab_size=n, d_model=32, n_layer=2, n_head=4, d_inner=48)
        )
        if family == "xlnet"
        else transformers.BertForMaskedLM(
            transformers.BertConfig(
                vocab_size=n, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=48, max_position_embeddings=64, type_vocab_size=3,
            )
        )
    )  # fmt: skip
    draw_weights(network, 0)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_with_token_types(kind: str, tmp_path: Path) -> None:
    folder = save_model(kind, tmp_path / "model")
    network, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    plain, untyped = [], []
    with torch.no_grad():
        for text in TEXTS:
            given = tokenizer(text, return_tensors="pt")
            assert given["token_type_ids"].any()
            plain.append(network(**given).last_hidden_state[0].numpy())
            del given["token_type_ids"]
            untyped.append(network(**given).last_hidden_state[0].numpy())
    model = load_text_model(folder, device="cpu")
    behind = -len(model.suffix_ids)  # the first token after the text
    for pooling, pool in (("mean", lambda s: s.mean(axis=0)), ("sep", lambda s: s[behind])):
        expected = np.stack([pool(states) for states in plain])
        assert np.abs(expected - [pool(states) for states in untyped]).max() > 0.01
        embedder = PooledEmbedder(model, pooling)
        together = embedder.encode(TEXTS, normalize_embeddings=False)
        alone = [embedder.encode(text, normalize_embeddings=False) for text in TEXTS]
        np.testing.assert_allclose(together, expected, atol=2e-5 * np.abs(expected).max())
        np.testing.assert_allclose(alone, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["all 1", "three"])
def test_neural_embeddings_with_token_types(kind: str, tmp_path: Path) -> None:
    folder = save_model(kind, tmp_path / "model")
    model = load_model(folder, device="cpu")
    network = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    class Typed(torch.nn.Module):
        """The network with the types that its tokenizer gives."""

        device = network.device

        def __init__(self) -> None:
            super().__init__()
            self.inside = network

        def forward(self, **given: torch.Tensor) -> object:
            n = given["input_ids"].shape[1]
            own = n - (len(tokenizer("a")["input_ids"]) - 1)
            types = tokenizer(" ".join(["a"] * own), return_tensors="pt")["token_type_ids"]
            assert types.shape[1] == n
            return self.inside(**given, token_type_ids=types.expand(len(given["input_ids"]), n))

    layers = [f"inside.{name}" for name in model.head_layers]
    for text in TEXTS[1:]:
        vector = NeuralEmbedder(model, epochs=2).encode(text)
        ids = [model.encoder.encode(text, add_special_tokens=False).ids]
        deltas, _ = plain_micro_tune(Typed(), tokenizer, ids, layers, epochs=2)
        assert vector @ plain_embedding(deltas) == pytest.approx(1, abs=1e-5)
    with pytest.raises(ModelError, match="token types of its own"):
        NeuralEmbedder(model, layers="last_block", epochs=1).encode(TEXTS[0])
