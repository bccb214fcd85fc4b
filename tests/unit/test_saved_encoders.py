"""What `save_encoder` writes: sentence-transformers gives the vectors of the encoder as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from neuralviz.errors import SettingsError, StoreError
from neuralviz.models import TextModel, load_text_model
from neuralviz.training import check_family_can_be_saved, save_encoder
from neuralviz.training.settings import TrainingSettings
from tests.support.families import save_family
from tests.support.models import BERT_SPECIALS, SENTENCES, byte_level, draw_weights, word_piece
from tests.support.trained import train_briefly

END = "<|endoftext|>"
LEFT = {"padding_side": "left", "truncation_side": "left"}
TEXTS = [
    *SENTENCES,
    " ".join(SENTENCES),  # longer than any window here
    "Dog",
    f"A dog [MASK] and [SEP] ran {END} twice",
    "  two  spaces ",
    "École ÉCOLE",
]


def gpt2(**options: Any) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    """Neither special tokens around a text nor, unless it is given, a padding token."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level((END,), trim_offsets=False),
        eos_token=END,
        bos_token=END,
        model_max_length=40,
        **options,
    )
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return tokenizer, GPT2Model(config)


def bert(
    around: str = "[CLS] $A [SEP]", *, is_cased: bool = False, **options: Any
) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    backend = word_piece(BERT_SPECIALS)
    if is_cased:
        from tokenizers.normalizers import BertNormalizer

        backend.normalizer = BertNormalizer(lowercase=False)
    backend.post_processor = TemplateProcessing(
        single=around, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    given = {"model_max_length": 512, "pad_token": "[PAD]", **options}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        mask_token="[MASK]", **given,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=40, type_vocab_size=3,
    )  # fmt: skip
    return tokenizer, BertModel(config)


KINDS = {
    "no padding token": gpt2,
    "no padding token, left": lambda: gpt2(**LEFT),
    "the end as padding": lambda: gpt2(pad_token=END),
    "a window smaller than the tokenizer's": bert,
    "left": lambda: bert(**LEFT),
    "a tokenizer without a window": lambda: bert(model_max_length=int(1e30)),
    "no padding token, an encoder": lambda: bert(pad_token=None),
    "no token before a text": lambda: bert("$A [SEP]"),
    "no token around a text": lambda: bert("$A"),
    "two tokens behind a text": lambda: bert("$A [SEP] [CLS]"),
    "cased": lambda: bert(is_cased=True),
}


def loaded(kind: str, folder: Path) -> TextModel:
    tokenizer, network = KINDS[kind]()
    draw_weights(network, 1)
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)
    return load_text_model(str(folder))


def plain_vectors(model: TextModel, network: PreTrainedModel) -> np.ndarray:
    """By the model's own tokenizer and plain transformers, a text at a time, nothing padded."""
    tokenizer = AutoTokenizer.from_pretrained(model.id)
    tokenizer.truncation_side = "right"
    found = []
    for text in TEXTS:
        ids = tokenizer(
            text, truncation=True, max_length=40, split_special_tokens=True
        )["input_ids"]  # fmt: skip
        with torch.no_grad():
            states = network(input_ids=torch.tensor([ids])).last_hidden_state[0]
        found.append(states.mean(0).numpy())
    return np.stack(found)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_encoder_equals_the_live_one_whatever_its_tokenizer(
    kind: str, tmp_path: Path
) -> None:
    model = loaded(kind, tmp_path / "model")
    assert model.window == 40
    result = train_briefly(model)
    save_encoder(result, model, tmp_path / "mine")
    encoder = SentenceTransformer(str(tmp_path / "mine"), device="cpu")
    found = encoder.encode(TEXTS, batch_size=4)
    np.testing.assert_allclose(found, encoder.encode(TEXTS, batch_size=1), atol=1e-5)
    with torch.no_grad():
        live = result.learner.vectors(TEXTS).numpy()
    np.testing.assert_allclose(found, live, atol=1e-5)
    network: Any = result.learner.network
    np.testing.assert_allclose(found, plain_vectors(model, network), atol=1e-5)
    again = load_text_model(str(tmp_path / "mine"))
    assert (again.prefix_ids, again.suffix_ids) == (model.prefix_ids, model.suffix_ids)
    assert again.window == model.window


@pytest.mark.parametrize("kind", ["no padding token", "cased"])
def test_a_saved_table_equals_the_live_one(kind: str, tmp_path: Path) -> None:
    model = loaded(kind, tmp_path / "model")
    result = train_briefly(model, part="table")
    save_encoder(result, model, tmp_path / "mine")
    found = SentenceTransformer(str(tmp_path / "mine"), device="cpu").encode(TEXTS)
    weights = result.learner.state_dict()["table.weight"].numpy()
    backend = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    backend.encode_special_tokens = True
    ids = [backend.encode(text, add_special_tokens=False).ids for text in TEXTS]
    np.testing.assert_allclose(found, [weights[of].mean(axis=0) for of in ids], atol=1e-5)


def test_a_family_that_reads_more_than_texts_is_refused_before_training(tmp_path: Path) -> None:
    model = load_text_model(str(save_family("layoutlmv3", tmp_path / "theirs")), device="cpu")
    with pytest.raises(SettingsError, match="needs a processor that is missing"):
        check_family_can_be_saved(model, TrainingSettings())
    check_family_can_be_saved(model, TrainingSettings(part="table"))


def test_an_encoder_that_is_read_again_as_another_is_refused(tmp_path: Path, monkeypatch) -> None:
    """As of a family whose stored weights are not those that it computes with."""
    model = loaded("left", tmp_path / "model")
    result = train_briefly(model)
    whole = BertModel.save_pretrained

    def save_altered(self: BertModel, *arguments: Any, **named: Any) -> None:
        with torch.no_grad():
            self.encoder.layer[0].output.dense.weight.mul_(2)
        whole(self, *arguments, **named)
        with torch.no_grad():
            self.encoder.layer[0].output.dense.weight.div_(2)

    monkeypatch.setattr(BertModel, "save_pretrained", save_altered)
    with pytest.raises(StoreError, match="gets other vectors than those"):
        save_encoder(result, model, tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
