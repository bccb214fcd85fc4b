"""Models loaded for the vectors they give, whatever they predict."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuralviz.errors import ModelError
from neuralviz.models import MINILM, LanguageModel, load_model, load_text_model, tokenize
from tests.support.models import BERT_SPECIALS, SENTENCES, save_tokenizer, word_piece


def test_the_sentence_encoder_needs_no_network() -> None:
    model = load_text_model(device="cpu")
    assert (model.id, model.n_blocks, model.d_model, model.window) == (MINILM, 6, 384, 256)
    assert not isinstance(model, LanguageModel)
    assert not model.network.training
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    (text,) = tokenize(model, [SENTENCES[0]])
    ids = model.tokenizer(SENTENCES[0])["input_ids"]
    assert [*model.prefix_ids, *text.ids.tolist(), *model.suffix_ids] == ids
    with pytest.raises(ModelError, match="Micro-tuning needs a masked language model"):
        load_model(MINILM)


def test_an_encoder_with_a_decoder_is_refused(tmp_path: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = word_piece(BERT_SPECIALS)
    config = T5Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=16, d_kv=4, d_ff=16, num_layers=1,
        num_heads=2, decoder_start_token_id=0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    save_tokenizer(tokenizer, tmp_path, BERT_SPECIALS)
    with pytest.raises(ModelError, match=r"\(t5\) is an encoder-decoder model"):
        load_text_model(tmp_path, device="cpu")
