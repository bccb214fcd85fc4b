"""Every embedder behind the one interface: shapes, order, settings, and what is refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from neuralviz.embedders import (
    FOR_CORPORA,
    METHODS,
    ConcatenatedEmbedder,
    Embedder,
    EmbedderSpec,
    NeuralEmbedder,
    PooledEmbedder,
    SbertWkEmbedder,
    SentenceTransformerEmbedder,
    TunedOutputEmbedder,
    embedder_spec,
    embedder_specs,
    make_embedder,
)
from neuralviz.embedders.specs import method_label
from neuralviz.errors import ModelError, PrecisionWarning, SettingsError
from neuralviz.evaluation.rows import experiment_rows
from neuralviz.micro_tuning import TuningSettings, micro_tune, products
from neuralviz.micro_tuning.settings import Blueprint
from neuralviz.models import (
    BUNDLED,
    MINILM,
    LanguageModel,
    TextModel,
    load_sentence_transformer,
    load_text_model,
    tokenize,
)
from neuralviz.store.vectors import embedder_id
from tests.support.models import SENTENCES, TEXTS, save_causal, save_sentence_transformer
from tests.support.plain_loop import plain_embedding, plain_gradients, plain_micro_tune

MANY = [*TEXTS.values(), *SENTENCES[4:7], "b"]
EVERY = [*METHODS, "neural+mean", "cls-diff+sbert-wk"]
LEARNING = ("neural", "neural-1", "cls-tuned", "avg-tuned", "cls-diff", "avg-diff")
POOLED = {"mean", "cls", "sep", "last", "avg", "sbert-wk", "cls-tuned", "avg-tuned", "cls-diff",
          "avg-diff", "neural-1", "sentence-transformer"}  # fmt: skip


@pytest.fixture(scope="module")
def encoder() -> TextModel:
    return load_text_model(MINILM, device="cpu")


@pytest.fixture(scope="module")
def st_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sentence_transformer(tmp_path_factory.mktemp("sentence-transformer"))


@pytest.fixture(scope="module")
def make(tiny: LanguageModel, st_folder: Path) -> Callable[..., Embedder]:
    """An embedder on the small models, two epochs where it is tuned."""
    sentence_transformer = load_sentence_transformer(st_folder, device="cpu")
    loaders: dict[str, Any] = {
        "masked": lambda _: tiny,
        "text": lambda _: tiny,
        "sentence-transformer": lambda _: sentence_transformer,
    }

    def build(method: str, **typed: str) -> Embedder:
        names = method.split("+")
        if any(option.name == "epochs" for name in names for option in METHODS[name].options):
            typed = {"epochs": "2"} | typed
        return make_embedder(embedder_spec(method, typed), loaders)

    return build


def hidden(model: TextModel, text: str) -> torch.Tensor:
    """[layer, token, d_model] by `transformers` alone, for a text of one chunk."""
    inputs = model.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        out = model.network.base_model(**inputs, output_hidden_states=True)
    return torch.stack(out.hidden_states)[:, 0]


def unit(vector: Any) -> np.ndarray:
    vector = np.asarray(vector, dtype=np.float64)
    return vector / np.linalg.norm(vector)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("method", EVERY)
def test_shape_length_order_and_a_model_that_stays(method: str, make, tiny) -> None:
    before = {name: value.clone() for name, value in tiny.network.state_dict().items()}
    embedder = make(method)
    vectors = embedder.encode(MANY)
    dims = [32 if name in POOLED else 96 for name in method.split("+")]
    assert embedder.dim == embedder.get_sentence_embedding_dimension() == sum(dims)
    assert vectors.shape == (len(MANY), embedder.dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for batch_size in (1, 3):
        again = embedder.encode(MANY, batch_size=batch_size)
        np.testing.assert_allclose(again, vectors, atol=1e-5)
    for text, vector in zip(MANY, vectors, strict=True):  # alone, and not beside longer texts
        np.testing.assert_allclose(embedder.encode(text), vector, atol=1e-5)
    np.testing.assert_allclose(embedder.encode(MANY[::-1])[::-1], vectors, atol=1e-5)
    for name, value in tiny.network.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert not tiny.network.training


@pytest.mark.parametrize("method", ["mean", "sentence-transformer", "neural+mean"])
def test_what_can_be_handed_over(method: str, make) -> None:
    embedder = make(method)
    texts = ["The dog barks.", "a"]
    vectors = embedder.encode(texts)
    assert embedder.encode([]).shape == (0, embedder.dim)
    assert embedder.encode(texts[0]).shape == (embedder.dim,)
    for given in (tuple(texts), np.array(texts), pd.Series(texts, index=[7, 3]),
                  (text for text in texts), [{"text": texts}], {"text": texts},
                  pd.DataFrame({"text": texts}), np.array(texts)[:, None]):  # fmt: skip
        np.testing.assert_array_equal(embedder.encode(given), vectors)
    for tensors in (
        embedder.encode(texts, convert_to_tensor=True),
        embedder.encode(texts, convert_to_numpy=False),
    ):
        assert isinstance(tensors, torch.Tensor)
        np.testing.assert_array_equal(tensors.numpy(), vectors)
    cosines = embedder.similarity(vectors, vectors)
    np.testing.assert_allclose(cosines, vectors @ vectors.T, atol=1e-5)
    np.testing.assert_allclose(embedder.similarity_pairwise(vectors, vectors), [1, 1], atol=1e-5)


def test_mean_is_what_sentence_transformers_gives(encoder: TextModel) -> None:
    theirs, _ = load_sentence_transformer(MINILM, device="cpu")
    texts = [*SENTENCES, "a"]
    expected = theirs.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(PooledEmbedder(encoder).encode(texts), expected, atol=1e-5)
    ours = SentenceTransformerEmbedder(theirs)
    np.testing.assert_allclose(ours.encode(texts), expected, atol=1e-5)


def test_mean_at_other_layers(encoder: TextModel) -> None:
    states = hidden(encoder, SENTENCES[0])
    for layer, chosen in ((2, [2]), (-3, [4]), ((0, 3, -1), [0, 3, 6]), ("all", range(7))):
        expected = unit(states[list(chosen)].mean(dim=(0, 1)))
        ours = PooledEmbedder(encoder, layer=layer).encode(SENTENCES[0])
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_the_token_that_is_picked(tiny: LanguageModel) -> None:
    text = TEXTS["one chunk"]
    states = hidden(tiny, text)
    for pooling, token in (("cls", 0), ("sep", -1), ("last", -2)):
        for layer in (0, 2, -1):
            ours = PooledEmbedder(tiny, pooling, layer).encode([text, "a"])[0]
            np.testing.assert_allclose(ours, unit(states[layer, token]), atol=1e-5)
    own = PooledEmbedder(tiny, "mean", special_tokens=False).encode(text)
    np.testing.assert_allclose(own, unit(states[-1, 1:-1].mean(dim=0)), atol=1e-5)
    raw = PooledEmbedder(tiny).encode(text, normalize_embeddings=False)
    np.testing.assert_allclose(raw, states[-1].mean(dim=0), atol=1e-5)


def test_a_model_that_predicts_the_next_token(tmp_path: Path) -> None:
    causal = load_text_model(save_causal(tmp_path, has_specials=False), device="cpu")
    assert (causal.prefix_ids, causal.suffix_ids) == ((), ())
    states = hidden(causal, SENTENCES[0])
    for pooling, place in (("cls", "before"), ("sep", "after")):
        with pytest.raises(SettingsError, match=f"no special token {place} a text"):
            PooledEmbedder(causal, pooling)
    texts = [SENTENCES[0], "a"]
    last = PooledEmbedder(causal, "last").encode(texts)[0]
    np.testing.assert_allclose(last, unit(states[-1, -1]), atol=1e-5)
    mean = PooledEmbedder(causal).encode(texts)[0]
    np.testing.assert_allclose(mean, unit(states[-1].mean(dim=0)), atol=1e-5)
    assert np.isfinite(SbertWkEmbedder(causal).encode(texts)).all()


def test_layers_that_are_not_there(tiny: LanguageModel) -> None:
    for layer in (4, -5, (0, 9), "first", ()):
        with pytest.raises(SettingsError, match="layer"):
            PooledEmbedder(tiny, layer=layer)
    with pytest.raises(SettingsError, match="pooling must be one of"):
        PooledEmbedder(tiny, "max")


@pytest.mark.parametrize(("kind", "pooling"), [("cls", "cls"), ("avg", "mean")])
def test_the_difference_is_tuned_minus_plain(kind: str, pooling: str, tiny, make) -> None:
    texts = MANY[:4]
    raw = {"normalize_embeddings": False}
    plain = PooledEmbedder(tiny, pooling, special_tokens=False).encode(texts, **raw)
    tuned = make(f"{kind}-tuned").encode(texts, **raw)
    difference = make(f"{kind}-diff").encode(texts, **raw)
    np.testing.assert_allclose(difference, tuned - plain, atol=1e-5)
    assert np.abs(difference).max() > 0.01


def test_tuned_output_is_that_of_a_model_with_the_tuned_weights(tiny: LanguageModel) -> None:
    text = TEXTS["one chunk"]
    *_, last = micro_tune(tiny, [text], layers="last_block", epochs=3)
    network = copy.deepcopy(tiny.network)
    parameters = dict(network.named_parameters())
    with torch.no_grad():
        for name, delta in zip(last.result.settings.layers, last.result.deltas, strict=True):
            parameters[name] += torch.as_tensor(delta[0])
    states = hidden(replace(tiny, network=network), text)
    ours = TunedOutputEmbedder(tiny, "cls", False, epochs=3).encode(text)
    np.testing.assert_allclose(ours, unit(states[-1, 0]), atol=1e-5)
    five = TunedOutputEmbedder(tiny, "cls", False)
    assert five.settings.epochs == 5
    assert not np.allclose(five.encode(text), ours, atol=1e-5)


@pytest.mark.parametrize(("key", "n_layers"), [("neural", 3), ("neural-1", 1)])
def test_appendix_g_tunes_the_last_block_for_five_epochs(key: str, n_layers: int, tiny) -> None:
    """What stands beside the values of Tables 13, 15 and 16 is what they were measured on."""
    rows = experiment_rows("outputs", {}, None)
    (row,) = (row for row in rows if row.key == key)
    assert row.published == {"neural": "neural, Appendix G"}.get(key, key)
    vector = make_embedder(row.spec, {"masked": lambda _: tiny}).encode(TEXTS["one chunk"])
    names = [f"bert.encoder.layer.{tiny.n_blocks - 1}.output.{name}"
             for name in ("LayerNorm.weight", "LayerNorm.bias", "dense.bias")]  # fmt: skip
    ids = tiny.tokenizer(TEXTS["one chunk"], add_special_tokens=False)["input_ids"]
    deltas, _ = plain_micro_tune(
        tiny.network, tiny.tokenizer, [ids], names[-n_layers:], epochs=5, weight_decay=0.01
    )
    assert plain_embedding(deltas) @ vector >= 0.99999


@pytest.mark.parametrize("layers", ["head", "last_block", "chosen"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_gradient_is_what_a_plain_loop_finds(text: str, layers: str, tiny, make) -> None:
    chosen = "bert.embeddings.LayerNorm.weight,cls.predictions.bias"
    embedder = make("gradient", layers=chosen if layers == "chosen" else layers)
    names = embedder.settings.layers
    vector = embedder.encode(text)
    assert not any(parameter.requires_grad for parameter in tiny.network.parameters())
    (read,) = tokenize(tiny, [text])
    chunks = [read.ids[chunk].tolist() for chunk in read.chunks]
    gradients = plain_gradients(tiny.network, tiny.tokenizer, chunks, names)
    expected = plain_embedding([-gradient for gradient in gradients])
    np.testing.assert_allclose(vector, expected, atol=2e-5)


def test_the_product_of_joined_vectors_is_the_mean_of_the_parts(make) -> None:
    parts = [make(name) for name in ("neural", "mean", "cls-diff")]
    joined = ConcatenatedEmbedder(parts)
    assert joined.name == "neural+mean+cls-diff"
    vectors = joined.encode(MANY)
    of_parts = [part.encode(MANY) for part in parts]
    expected = np.mean([v @ v.T for v in of_parts], axis=0)
    np.testing.assert_allclose(vectors @ vectors.T, expected, atol=1e-5)
    np.testing.assert_allclose(vectors, np.hstack(of_parts) / np.sqrt(3), atol=1e-5)


def test_any_other_setting_is_another_key(make, tiny, small_model) -> None:
    settings = ({}, {"epochs": "3"}, {"blueprints": "(1, 1), (2, 1)"},
                {"blueprints": "(2, 1), (1, 1)"})  # fmt: skip
    tuned = [(m, o) for m in LEARNING for o in settings]
    pooled = [(m, o) for m in ("mean", "cls", "sep", "last")
              for o in ({}, {"layer": "0"}, {"layer": "0,1"})]  # fmt: skip
    rest = [("sbert-wk", {}), ("sbert-wk", {"part": "novelty"}),
            ("mean", {"special_tokens": "no"}), ("neural", {"layers": "last_block"}),
            ("neural", {"predict_unmasked": "yes"}), ("neural+mean", {}), ("mean+neural", {}),
            ("neural+mean", {"mean.layer": "0"}), ("sentence-transformer", {}),
            ("gradient", {}), ("gradient", {"layers": "last_block"}),
            ("gradient", {"blueprints": "(1, 1)"}),
            ("gradient", {"predict_unmasked": "yes"})]  # fmt: skip
    everything = [*tuned, *pooled, *rest]
    embedders = [make(method, **typed) for method, typed in everything]
    assert len({embedder.cache_key() for embedder in embedders}) == len(everything)
    assert len(set(map(embedder_id, embedders))) == len(everything), "two share a table"
    key = PooledEmbedder(tiny).cache_key()
    for other in (small_model("roberta"), replace(tiny, fingerprint="x"), replace(tiny, id="x")):
        assert PooledEmbedder(other).cache_key() != key


def test_every_field_of_the_settings_is_in_the_key(tiny: LanguageModel) -> None:
    values = {
        "layers": tiny.head_layers[:1], "blueprints": (Blueprint(1, 1),), "epochs": 3,
        "learning_rate": 0.02, "weight_decay": 0.0, "betas": (0.8, 0.999), "eps": 1e-7,
        "predict_unmasked": True, "precision": "bf16", "tolerance": 0.01,
    }  # fmt: skip
    assert list(values) == [field.name for field in fields(TuningSettings)]
    for make_one in (NeuralEmbedder, partial(TunedOutputEmbedder, pooling="cls", difference=False)):
        for name, value in values.items():
            keys = set()
            for changes in ({}, {name: value}):
                embedder = make_one(tiny)
                fast = {"precision": "fast"} if name == "tolerance" else {}
                embedder.settings = replace(embedder.settings, **(fast | changes))
                keys.add(embedder.cache_key())
            assert len(keys) == 2, name
    wk = SbertWkEmbedder(tiny)
    keys = {wk.cache_key()}
    changes = {"variant": "paper", "layer_start": 2, "window": 1, "omega": 0.1}
    assert set(changes) == {field.name for field in fields(wk.settings)}
    for name, value in changes.items():
        wk.settings = replace(SbertWkEmbedder(tiny).settings, **{name: value})
        keys.add(wk.cache_key())
    assert len(keys) == 5


def test_a_key_is_canonical_and_written_down(tiny: LanguageModel) -> None:
    name = tiny.last_block_layers[-1]
    exact = NeuralEmbedder(tiny, layers=[name], blueprints=[(1, 1)], epochs=3)
    assert exact.cache_key() == (
        f'neuralviz-vectors/2:{{"fingerprint":"{tiny.fingerprint}","method":"neural",'
        f'"model":"{tiny.id}","tuning":{{"betas":[0.9,0.999],"blueprints":[[1,1]],"epochs":3,'
        f'"eps":1e-08,"layers":["{name}"],"learning_rate":0.01,"precision":"exact",'
        '"predict_unmasked":false,"revision":3,"weight_decay":0.01}}'
    )


@pytest.mark.parametrize("method", ["neural", "avg-diff"])
def test_imitated_bf16_is_warned_of_and_works(method: str, make, monkeypatch) -> None:
    monkeypatch.setattr(products, "has_native_bf16", lambda _: False)
    with pytest.warns(PrecisionWarning, match="has no hardware support for bf16") as caught:
        embedder = make(method, precision="bf16")
    assert len(caught) == 1
    vectors = embedder.encode(MANY[:2])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    monkeypatch.setattr(products, "has_native_bf16", lambda _: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(method, precision="bf16")


def broken(model: LanguageModel, text: str) -> LanguageModel:
    """The model with NaN for the first token of ``text``, and for no other token."""
    network = copy.deepcopy(model.network)
    (tokens,) = tokenize(model, [text])
    with torch.no_grad():
        network.get_input_embeddings().weight[int(tokens.ids[0])] = torch.nan
    return replace(model, network=network)


def test_nan_from_a_model_names_the_text(tiny: LanguageModel) -> None:
    spoilt = broken(tiny, "harbour")
    texts = ["Two children count.", "The harbour.", "a"]
    for embedder in (
        PooledEmbedder(spoilt),
        SbertWkEmbedder(spoilt),
        ConcatenatedEmbedder([PooledEmbedder(tiny), PooledEmbedder(spoilt, "cls")]),
    ):
        with pytest.raises(ModelError, match=r"embedding of text 2 .* infinite or NaN"):
            embedder.encode(texts)


def test_vectors_of_zeros_stay_so(tiny: LanguageModel) -> None:
    still = NeuralEmbedder(tiny, epochs=1, learning_rate=1e-30, weight_decay=0)
    vector = still.encode("The dog barks.")
    assert not vector.any()
    assert not still.similarity(vector, vector).any()
    unmoved = TunedOutputEmbedder(tiny, "cls", True, epochs=1, learning_rate=1e-30, weight_decay=0)
    assert not unmoved.encode(["The dog barks.", "a"]).any()


def test_options_are_read_as_their_types() -> None:
    typed = {"epochs": "5", "learning_rate": "1e-3", "predict_unmasked": "yes", "layers": "a.b, c"}
    spec = embedder_spec("neural", typed)
    assert dict(spec.options) == {
        "epochs": 5,
        "learning_rate": 1e-3,
        "predict_unmasked": True,
        "layers": ("a.b", "c"),
    }
    assert spec.model_id == BUNDLED
    assert hash(spec) == hash(embedder_spec("neural", dict(reversed(typed.items()))))
    assert dict(embedder_spec("mean", {"layer": "0, -1"}).options) == {"layer": (0, -1)}
    assert embedder_spec("mean").model_id == embedder_spec("sbert-wk").model_id == MINILM
    assert embedder_spec("cls", model_id=BUNDLED).model_id == BUNDLED


@pytest.mark.parametrize(
    ("method", "typed", "defaults", "label"),
    [
        ("neural", {"epochs": "1"}, {}, "neural, exact, 1 epoch"),
        ("neural", {"precision": "fast", "tolerance": "0.01"}, {}, "neural, fast (tolerance 0.01)"),
        ("neural+mean", {}, FOR_CORPORA, "neural+mean, fast, 5 epochs"),
        ("neural", {"epochs": "10", "precision": "exact"}, FOR_CORPORA, "neural, exact"),
        (
            "neural+cls-diff+cls-tuned",
            {"neural.epochs": "3", "cls-diff.epochs": "3", "cls-tuned.epochs": "4"},
            {},
            "neural+cls-diff+cls-tuned, exact, 3, 3 and 4 epochs",
        ),
    ],
)
def test_labels_say_how_exactly_a_method_learns(method, typed, defaults, label) -> None:
    spec = embedder_spec(method, typed, defaults=defaults)
    assert method_label(spec) == label
    assert EmbedderSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("methods", "typed", "sentence"),
    [
        (["magic"], {}, "Unknown method “magic”. Choose from: mean, cls"),
        (["neural+"], {}, "Unknown method “”"),
        (["mean+mean"], {}, "named twice"),
        (
            ["mean"],
            {"epochs": "1"},
            "The method “mean” has no option “epochs”. Its options are: layer",
        ),
        (["mean", "cls"], {"epochs": "1"}, "The method “mean” or “cls” has no option"),
        (["mean"], {"cls.layer": "1"}, "to the method “cls”, which is not selected"),
        (["sbert-wk"], {"window": "0"}, "whole number from 1 to 1000, not “0”"),
        (["sbert-wk"], {"omega": "nan"}, "a number from 0 to 1, not “nan”"),
        (["sbert-wk"], {"variant": "mine"}, "authors or paper, not “mine”"),
        (["mean"], {"layer": "top"}, "not “top”"),
        (["cls-diff"], {"epochs": "0"}, "from 1 to 1000"),
        (["neural"], {"precision": "rough"}, "Choose from: exact, fast, bf16, fast+bf16"),
        (["neural"], {"tolerance": "little"}, "above 0 and below 1, not “little”"),
    ],
)
def test_what_cannot_be_meant_is_said(methods: list[str], typed: dict, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        embedder_specs(methods, typed)
    assert sentence in str(caught.value)
