"""Every family against a plain training loop over the whole `transformers` model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from neuralviz.errors import ModelError
from neuralviz.micro_tuning import micro_tune
from neuralviz.models import LanguageModel, tokenize
from neuralviz.models.language_model import Layer
from tests.support.models import FAMILIES, REFUSED, TEXTS, WINDOW
from tests.support.plain_loop import plain_embedding, plain_micro_tune

EPOCHS = 2
ALIKE = 0.99999


def join(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names)


NORM = ("LayerNorm.weight", "LayerNorm.bias")
BERT_HEAD = join("cls.predictions.transform", *NORM, "dense.bias")
LM_HEAD = join("lm_head", "layer_norm.weight", "layer_norm.bias", "dense.bias")
HEADS = {
    "bert": BERT_HEAD,
    "roberta": LM_HEAD,
    "distilbert": ("vocab_layer_norm.weight", "vocab_layer_norm.bias", "vocab_transform.bias"),
    "mpnet": LM_HEAD,
    "electra": join("generator_predictions", *NORM, "dense.bias"),
    "modernbert": ("head.norm.weight",),
    "albert": join("predictions", *NORM, "dense.bias"),
    "deberta-v2": BERT_HEAD,
    "eurobert": (),  # its output layer sits right on the encoder
    "fnet": BERT_HEAD,
}
LAST_BLOCKS = {
    **{family: join(f"{family}.encoder.layer.2.output", *NORM, "dense.bias")
       for family in ("bert", "roberta", "mpnet", "electra", "fnet")},
    "deberta-v2": join("deberta.encoder.layer.2.output", *NORM, "dense.bias"),
    "distilbert": join("distilbert.transformer.layer.2", "output_layer_norm.weight",
                       "output_layer_norm.bias", "ffn.lin2.bias"),
    "modernbert": ("model.layers.4.mlp_norm.weight",),
    "albert": join("albert.encoder.albert_layer_groups.0.albert_layers.0",
                   "full_layer_layer_norm.weight", "full_layer_layer_norm.bias", "ffn_output.bias"),
    "eurobert": join("model.layers.2", "input_layernorm.weight", "post_attention_layernorm.weight"),
}  # fmt: skip

EMBEDDING_NORMS = ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias",
                   "embeddings.norm.weight", "final_norm.weight", "embeddings_project.bias",
                   "embedding_hidden_mapping_in.bias", "model.norm.weight")  # fmt: skip


def is_key_bias(layer: Layer) -> bool:
    """An attention key's bias adds the same to every score of a query: its gradient is zero."""
    return layer.name.endswith((".key.bias", ".k.bias", ".k_lin.bias"))


def output_bias(model: LanguageModel) -> str | None:
    found = [layer.name for layer in model.layers if layer.size == model.vocab_size]
    return found[0] if found else None


def layer_choice(model: LanguageModel, choice: str) -> tuple[str, ...]:
    """The layers of a named choice; none where the family has no such layers."""
    blocks = [la for la in model.layers if la.block is not None and not is_key_bias(la)]
    of_block = {index: [la.name for la in blocks if la.block == index]
                for index in {la.block for la in blocks}}  # fmt: skip
    bias = output_bias(model)
    match choice:
        case "head":
            return model.head_layers
        case "last block":
            return model.last_block_layers
        case "all blocks":
            return tuple(la.name for la in blocks)
        case "middle block and head":
            middle = sorted(of_block)[len(of_block) // 2]
            return (*model.head_layers[::-1], *of_block[middle][-2:])
        case "embeddings":
            return tuple(la.name for la in model.layers if la.name.endswith(EMBEDDING_NORMS))
        case "output bias":
            return (bias,) if bias else ()
        case "output bias, head, last block":
            return (bias, *model.head_layers, *model.last_block_layers) if bias else ()
    raise AssertionError(choice)


CHOICES = ("head", "last block", "embeddings", "all blocks", "middle block and head",
           "output bias", "output bias, head, last block")  # fmt: skip


def chunks_of(model: LanguageModel, text: str) -> list[list[int]]:
    """Token ids of each chunk; of a text that fits, as the model's own tokenizer reads it."""
    (tokens,) = tokenize(model, [text])
    if len(tokens.chunks) == 1:
        return [model.tokenizer(text, add_special_tokens=False)["input_ids"]]
    return [tokens.ids[chunk].tolist() for chunk in tokens.chunks]


@pytest.fixture(scope="module")
def plain(small_model: Callable[[str], LanguageModel]) -> Callable:
    """The plain loop's deltas and losses, by family, layers and text."""

    @cache
    def run(family: str, choice: str, kind: str, predict_unmasked: bool = False) -> tuple:
        model = small_model(family)
        return plain_micro_tune(
            model.network,
            model.tokenizer,
            chunks_of(model, TEXTS[kind]),
            layer_choice(model, choice),
            epochs=EPOCHS,
            predict_unmasked=predict_unmasked,
        )

    return run


def tuned(model: LanguageModel, texts: list[str], layers: tuple[str, ...], **options):
    *_, last = micro_tune(model, texts, layers=layers, epochs=EPOCHS, **options)
    return last.result


def assert_alike(result, index: int, expected: tuple) -> None:
    """A text's embedding points where the plain loop's does; deltas and losses have its size."""
    deltas, losses = expected
    assert result.embeddings[index] @ plain_embedding(deltas) >= ALIKE
    for ours, theirs in zip(result.deltas, deltas, strict=True):
        # AdamW makes steps of one size: a neuron whose gradient is all rounding moves at random
        assert np.linalg.norm(ours[index]) == pytest.approx(np.linalg.norm(theirs), rel=1e-2)
    np.testing.assert_allclose(result.loss[:, index], losses, rtol=1e-4)


@pytest.mark.parametrize("family", [*FAMILIES, "deberta-v2"])
class TestFamily:
    def test_is_read_from_a_folder(self, family: str, small_model) -> None:
        model = small_model(family)
        assert model.family == family
        assert not model.network.training
        assert not any(p.requires_grad for p in model.network.parameters())
        ids = [*model.prefix_ids, *model.suffix_ids]
        assert model.tokenizer.convert_ids_to_tokens(ids) == [
            model.tokenizer.cls_token,
            model.tokenizer.sep_token,
        ]
        assert model.room == WINDOW - 2
        assert model.tokenizer.convert_tokens_to_ids(model.tokenizer.mask_token) == model.mask_id

    def test_default_layers(self, family: str, small_model) -> None:
        model = small_model(family)
        assert model.head_layers == HEADS[family]
        assert model.last_block_layers == LAST_BLOCKS[family]
        names = {name for name, p in model.network.named_parameters() if p.ndim == 1}
        assert {layer.name for layer in model.layers} == names

    @pytest.mark.parametrize(
        "choice",
        [*CHOICES[:2], *(pytest.param(each, marks=pytest.mark.slow) for each in CHOICES[2:])],
    )
    def test_agrees_with_a_plain_loop(self, family: str, choice: str, small_model, plain) -> None:
        model = small_model(family)
        layers = layer_choice(model, choice)
        if not layers:
            assert (family, choice) in {
                ("eurobert", choice_) for choice_ in ("head", "output bias", CHOICES[-1])
            }
            return
        if (family, choice) == ("deberta-v2", "all blocks"):  # some of which mix the texts
            with pytest.raises(ModelError, match="cannot be tuned separately"):
                tuned(model, list(TEXTS.values()), layers)
            return
        for reuse in (True, False):
            together = tuned(model, list(TEXTS.values()), layers, reuse=reuse)
            for index, kind in enumerate(TEXTS):
                assert_alike(together, index, plain(family, choice, kind))
        if choice == "middle block and head":
            for kind, text in TEXTS.items():
                assert_alike(tuned(model, [text], layers), 0, plain(family, choice, kind))


BUNDLED_CHOICES = {
    "head": "head",
    "last block": "last_block",
    "every block's output bias": tuple(
        f"bert.encoder.layer.{block}.output.dense.bias" for block in range(6)
    ),
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("choice", BUNDLED_CHOICES)
def test_the_bundled_model_agrees_with_a_plain_loop(choice: str, bundled: LanguageModel) -> None:
    texts = ["A storm sank four boats.", "Bread is old."]
    layers = bundled.check_layers(BUNDLED_CHOICES[choice])
    expected = [
        plain_micro_tune(
            bundled.network, bundled.tokenizer, chunks_of(bundled, text), layers, epochs=EPOCHS
        )
        for text in texts
    ]
    for reuse in (True, False):
        result = tuned(bundled, texts, layers, reuse=reuse)
        for index in range(len(texts)):
            assert_alike(result, index, expected[index])


@pytest.mark.parametrize("family", REFUSED)
@pytest.mark.parametrize("layers", ["head", "last_block"])
@pytest.mark.parametrize("reuse", [True, False])
def test_architectures_that_are_refused(family: str, layers: str, reuse: bool, small_model) -> None:
    """Rather than wrong numbers, or an error from within."""
    model = small_model(family)
    for _ in range(2):
        with pytest.raises(ModelError, match=f"{family}.* cannot be tuned separately"):
            tuned(model, list(TEXTS.values()), layers, reuse=reuse)
