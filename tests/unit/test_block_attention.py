"""Attention in blocks of the sizes that published models have, on texts that fill several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from neuralviz.embedders import PooledEmbedder
from neuralviz.models import load_text_model
from tests.support.models import BERT_SPECIALS, SENTENCES, draw_weights, fast_tokenizer, word_piece

SMALL = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 1100,
    "pad_token_id": 0,
}
CONFIGS = {
    "big_bird": transformers.BigBirdConfig(
        **SMALL, block_size=64, num_random_blocks=3, attention_type="block_sparse"
    ),
    "longformer": transformers.LongformerConfig(**SMALL, attention_window=512),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONFIGS)
def test_long_texts_in_blocks(kind: str, tmp_path: Path) -> None:
    network = AutoModel.from_config(CONFIGS[kind]).eval()
    draw_weights(network, 0)
    network.save_pretrained(tmp_path)
    tokenizer = fast_tokenizer(word_piece(BERT_SPECIALS), BERT_SPECIALS)
    tokenizer.model_max_length = 1024
    tokenizer.save_pretrained(tmp_path)
    words = " ".join(SENTENCES * 9).split()
    texts = ["a dog", " ".join(words[:450]), " ".join(words[:30])]
    expected = []
    for text in texts:
        fresh = AutoModel.from_pretrained(tmp_path).eval()
        given = AutoTokenizer.from_pretrained(tmp_path)(text, return_tensors="pt")
        with torch.no_grad():
            expected.append(fresh(**given).last_hidden_state[0].mean(dim=0).numpy())
        if text is texts[1]:
            assert 800 < given["input_ids"].shape[1] < 1024
    embedder = PooledEmbedder(load_text_model(tmp_path, device="cpu"))
    for order in (slice(None), slice(None, None, -1)):
        vectors = embedder.encode(texts[order], normalize_embeddings=False)[order]
        np.testing.assert_allclose(vectors, expected, atol=2e-5 * np.abs(expected).max())
