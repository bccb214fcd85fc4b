"""Embedders in other people's programs: sentence-transformers' arguments, pickles, scikit-learn."""

from __future__ import annotations

import copy
import inspect
import json
import shutil
import warnings
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import neuralviz
from neuralviz.embedders import (
    ConcatenatedEmbedder,
    Embedder,
    GradientEmbedder,
    NeuralEmbedder,
    PooledEmbedder,
    SbertWkEmbedder,
    SentenceTransformerEmbedder,
    TunedOutputEmbedder,
    embedder_spec,
    make_embedder,
)
from neuralviz.errors import LongTextWarning, LossWarning, ModelError, SettingsError, TextError
from neuralviz.models import LanguageModel, load_model, load_sentence_transformer, load_text_model
from tests.support.embedders import HashEmbedder
from tests.support.models import SENTENCES, save_family, save_sentence_transformer

TEXTS = [sentence[:45] for sentence in SENTENCES]
LABELS = [0, 1] * 4
ESTIMATOR_CHECKS = [
    "check_estimator_cloneable", "check_estimator_repr", "check_valid_tag_types",
    "check_get_params_invariance", "check_set_params", "check_no_attributes_set_in_init",
]  # fmt: skip
PROMPTS = {"query": "find: ", "passage": "text: ", "plain": ""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of sentence-transformers that has prompts, one of them the default."""
    folder = save_sentence_transformer(tmp_path_factory.mktemp("prompts") / "model")
    path = folder / "config_sentence_transformers.json"
    about = json.loads(path.read_text()) | {"prompts": PROMPTS, "default_prompt_name": "passage"}
    path.write_text(json.dumps(about))
    return folder


@pytest.fixture(scope="module")
def theirs(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu")


@pytest.fixture(scope="module")
def ours(folder: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(*load_sentence_transformer(folder, device="cpu"))


@pytest.fixture(scope="module")
def mean(folder: Path) -> PooledEmbedder:
    return PooledEmbedder(load_text_model(folder, device="cpu"))


@pytest.fixture(scope="module")
def every(folder: Path, bert_folder: Path) -> dict[str, Embedder]:
    """One of each kind."""
    masked, text = load_model(bert_folder, device="cpu"), load_text_model(folder, device="cpu")
    spec = embedder_spec("sentence-transformer", model_id=str(folder))
    embedders = [
        NeuralEmbedder(masked, epochs=2),
        TunedOutputEmbedder(masked, "mean", difference=True, epochs=2),
        GradientEmbedder(masked, layers="last_block"),
        PooledEmbedder(text, "cls", layer=(1, 2)),
        SbertWkEmbedder(text, window=1),
        make_embedder(spec),
        ConcatenatedEmbedder([PooledEmbedder(text), NeuralEmbedder(masked, epochs=1)]),
    ]
    return {type(embedder).__name__: embedder for embedder in embedders}


KINDS = ["NeuralEmbedder", "TunedOutputEmbedder", "GradientEmbedder", "PooledEmbedder",
         "SbertWkEmbedder", "SentenceTransformerEmbedder", "ConcatenatedEmbedder"]  # fmt: skip


@pytest.mark.parametrize("method", ["encode", "encode_query", "encode_document"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prompt_name": "query"},
        {"prompt": ""},
        {"prompt": "note: ", "prompt_name": "plain"},
        {"truncate_dim": 500},
        {"precision": "binary"},
        {"precision": "ubinary", "truncate_dim": 16},
        {"precision": "uint8", "prompt_name": "query"},
        {"output_value": "sentence_embedding", "batch_size": 3},
        {"normalize_embeddings": False, "truncate_dim": 7},
    ],
    ids=str,
)
def test_arguments_mean_what_they_mean_there(method, options, ours, theirs) -> None:
    asked = {"normalize_embeddings": True} | options
    expected = getattr(theirs, method)(TEXTS, **asked)
    given = getattr(ours, method)(TEXTS, **asked)
    assert (given.dtype, given.shape) == (expected.dtype, expected.shape)
    if expected.dtype == np.float32:
        np.testing.assert_allclose(given, expected, atol=1e-5)
    else:  # a value at the border of a step may fall to either side
        assert (given != expected).mean() < 0.02
    if "int8" not in options.get("precision", ""):
        np.testing.assert_allclose(getattr(ours, method)(TEXTS[0], **asked), given[0], atol=1e-5)


def test_more_values_than_a_model_was_saved_to_give(folder: Path, tmp_path: Path) -> None:
    cut = shutil.copytree(folder, tmp_path / "cut")
    path = cut / "config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"truncate_dim": 8}))
    ours = SentenceTransformerEmbedder(*load_sentence_transformer(cut, device="cpu"))
    theirs = SentenceTransformer(str(cut), device="cpu")
    for options in ({}, {"truncate_dim": 4}, {"truncate_dim": 16}):
        for normalize in (True, False):
            expected = theirs.encode(TEXTS, normalize_embeddings=normalize, **options)
            given = ours.encode(TEXTS, normalize_embeddings=normalize, **options)
            np.testing.assert_allclose(given, expected, atol=1e-5)
    assert ours.dim == 8  # as before


def test_bits_are_given_as_a_tensor_and_of_no_text(ours) -> None:
    assert ours.encode(TEXTS, precision="binary", convert_to_tensor=True).dtype == torch.int8
    assert ours.encode([], precision="binary").shape == (0, 4)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_prompt_is_read_before_the_text(kind: str, every: dict[str, Embedder]) -> None:
    embedder = every[kind]
    prompted = embedder.encode(TEXTS[:2], prompt="query: ")
    plain = embedder.encode([f"query: {text}" for text in TEXTS[:2]], prompt="")
    np.testing.assert_allclose(prompted, plain, atol=1e-5)
    assert not np.allclose(prompted, embedder.encode(TEXTS[:2]), atol=1e-3)
    query = embedder.encode_query(TEXTS[:2], prompt="query: ")
    np.testing.assert_allclose(query, plain, atol=1e-5)
    with pytest.raises(TextError, match="Text 2 is empty"):
        embedder.encode(["a", " "], prompt="query: ")


@pytest.mark.parametrize("method", ["encode", "encode_query", "encode_document"])
@pytest.mark.parametrize("options", [{}, {"prompt_name": "query"}, {"prompt": "a "}], ids=str)
def test_pooling_takes_the_models_own_prompts(method, options, mean, theirs) -> None:
    prompt = {"prompt": ""} if method == "encode" and not options else options  # no default one
    expected = getattr(theirs, method)(TEXTS, normalize_embeddings=True, **prompt)
    np.testing.assert_allclose(getattr(mean, method)(TEXTS, **options), expected, atol=1e-5)


def test_pooling_reads_texts_in_lower_case_where_the_encoder_does(tmp_path: Path) -> None:
    cased = save_sentence_transformer(tmp_path / "cased", family="roberta")
    as_written = PooledEmbedder(load_text_model(cased, device="cpu"))
    path = cased / "sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": True}))
    texts = ["The DOG barks.", "the dog barks.", "The İstanbul Boats"]
    library = SentenceTransformer(str(cased), device="cpu")
    expected = library.encode(texts, normalize_embeddings=True)
    model = load_text_model(cased, device="cpu")
    np.testing.assert_allclose(PooledEmbedder(model).encode(texts), expected, atol=1e-5)
    assert PooledEmbedder(model).cache_key() != as_written.cache_key()
    exported = model.tokenizer(texts[0])["input_ids"]
    assert exported == library.tokenizer(texts[0])["input_ids"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"prompt_name": "quest"}, "has no prompt named 'quest'"),
        ({"prompt": 3}, "prompt must be a string, not 3"),
        ({"prompt_name": 64}, "prompt_name must be a string, not 64. .* batch_size=64"),
        ({"precision": "fast"}, "must be one of: float32, int8, uint8, binary, ubinary"),
        (
            {"output_value": "token_embeddings"},
            "output_value must be one of: sentence_embedding, not 'token_embeddings'",
        ),
        ({"device": "cuda"}, "computes on cpu, not on “cuda”"),
        ({"pool": {}}, "uses no other processes"),
        ({"chunk_size": 10}, "uses no other processes"),
        ({"truncate_dim": 0}, "truncate_dim must be a whole number"),
    ],
)
def test_what_no_embedder_does(options: dict[str, Any], sentence: str, mean) -> None:
    for encode in (mean.encode, mean.encode_query, mean.encode_document):
        with pytest.raises(SettingsError, match=sentence):
            encode(TEXTS, **options)


def test_a_prompt_that_there_is_not(ours) -> None:
    with pytest.raises(SettingsError, match=r"no prompt named 'quest'.* 'passage', 'plain'"):
        ours.encode(TEXTS, prompt_name="quest")
    with pytest.raises(SettingsError, match=r"int8 .* needs several"):
        ours.encode(TEXTS[:1], precision="int8")


def test_what_has_no_order_or_several_columns(mean: PooledEmbedder) -> None:
    with pytest.raises(TextError, match="several columns"):
        mean.encode(pd.DataFrame({"text": TEXTS, "label": LABELS}))
    with pytest.raises(TextError, match="A set has no order"):
        mean.encode(set(TEXTS))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "not NoneType"),
        (5, "not int"),
        (b"a", "not bytes"),
        ({"a": 1}, "texts under the key 'text'"),
        (np.array("a"), "an array of one axis, not of 0"),
        (np.array([TEXTS, TEXTS]), "an array of one axis, not of 2"),
        ([None], "The text is not a string but NoneType"),
        (["a", 2.5], "Text 2 is not a string but float"),
    ],
    ids=str,
)
def test_what_is_no_text(given: Any, sentence: str, mean: PooledEmbedder) -> None:
    for encode in (mean.encode, mean.encode_query, mean.encode_document):
        with pytest.raises(TextError, match=sentence):
            encode(given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_gives_equal_vectors_and_holds_no_weights(kind, every) -> None:
    embedder = every[kind]
    content = ForkingPickler.dumps(embedder)
    assert len(content) < 5000
    again = ForkingPickler.loads(content)
    np.testing.assert_array_equal(again.encode(TEXTS[:3]), embedder.encode(TEXTS[:3]))
    assert again.cache_key() == embedder.cache_key()
    assert again.spec == embedder.spec
    assert copy.deepcopy(embedder).cache_key() == embedder.cache_key()


def test_a_pickle_of_the_users_own_encoder_has_its_weights(theirs: SentenceTransformer) -> None:
    embedder = SentenceTransformerEmbedder(theirs)
    again = ForkingPickler.loads(ForkingPickler.dumps(embedder))
    np.testing.assert_array_equal(again.encode(TEXTS[:3]), embedder.encode(TEXTS[:3]))
    assert again.cache_key() == embedder.cache_key()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("method", ["mean", "neural", "sentence-transformer"])
def test_a_pickle_of_a_model_that_has_changed(method: str, tmp_path: Path) -> None:
    if method == "sentence-transformer":
        folder = save_sentence_transformer(tmp_path / "model")
    else:
        folder = save_family("bert", tmp_path / "model")
    content = ForkingPickler.dumps(make_embedder(embedder_spec(method, model_id=str(folder))))
    save_family("bert", folder, seed=1)
    with pytest.raises(ModelError, match="have changed since"):
        ForkingPickler.loads(content)


@pytest.mark.parametrize("kind", KINDS)
def test_reprs_name_method_model_and_options(kind: str, every: dict[str, Embedder]) -> None:
    embedder = every[kind]
    shown = repr(embedder)
    assert shown.startswith(f"{kind}(method={embedder.name!r}, ")
    assert "\n" not in shown
    assert len(shown) < 600
    if kind != "ConcatenatedEmbedder":
        model_id = embedder.model.id if hasattr(embedder, "model") else embedder.spec.model_id
        assert f"model={model_id!r}" in shown
    option = {"NeuralEmbedder": "epochs=2", "PooledEmbedder": "layer=(1, 2)",
              "GradientEmbedder": "layers='last_block'", "SbertWkEmbedder": "window=1",
              "ConcatenatedEmbedder": "NeuralEmbedder(method='neural'"}  # fmt: skip
    assert option.get(kind, "") in shown


def test_in_a_pipeline(mean: PooledEmbedder) -> None:
    pipeline = Pipeline([("embed", mean), ("classify", LogisticRegression())])
    texts = pd.Series(TEXTS, index=range(8, 16))
    predicted = pipeline.fit(texts, LABELS).predict(texts)
    alone = LogisticRegression().fit(mean.encode(TEXTS), LABELS)
    np.testing.assert_array_equal(predicted, alone.predict(mean.encode(TEXTS)))
    assert len(cross_val_score(pipeline, TEXTS, LABELS, cv=2)) == 2
    layers = {"embed__layer": [0, "last"], "embed__pooling": ["mean", "cls"]}
    search = GridSearchCV(pipeline, layers, cv=2).fit(TEXTS, LABELS)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert mean.get_params()["layer"] == "last"  # the search works on clones
    assert "PooledEmbedder(method='mean'" in repr(pipeline)


@pytest.mark.filterwarnings("ignore")  # of the values that it tries and we refuse
@pytest.mark.parametrize("check", ESTIMATOR_CHECKS)
def test_checks_of_scikit_learn(check: str, mean: PooledEmbedder) -> None:
    getattr(estimator_checks, check)("PooledEmbedder", clone(mean))


def test_tables_as_output(mean: PooledEmbedder) -> None:
    table = pd.DataFrame({"text": TEXTS[:2], "size": [1.0, 3.0]}, index=[7, 9])
    columns = [("embed", clone(mean), "text"), ("scale", StandardScaler(), ["size"])]
    given = ColumnTransformer(columns).set_output(transform="pandas").fit_transform(table)
    assert list(given.columns[[0, 31, 32]]) == [
        "embed__pooledembedder0", "embed__pooledembedder31", "scale__size"
    ]  # fmt: skip
    assert list(given.index) == [7, 9]
    np.testing.assert_array_equal(given.iloc[:, :32], mean.encode(TEXTS[:2]))
    frames = clone(mean).set_output(transform="polars")
    assert isinstance(clone(frames).set_params(layer=1).transform(TEXTS), pl.DataFrame)
    with config_context(transform_output="pandas"):
        assert list(mean.transform(TEXTS).index) == list(range(8))
    assert isinstance(mean.transform(TEXTS), np.ndarray)
    with pytest.raises(SettingsError, match="'default', 'pandas' or 'polars'"):
        mean.set_output(transform="arrow")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda mean: clone(mean).set_params(model="bundled"), "load_text_model .* not 'bundled'"),
        (lambda mean: NeuralEmbedder("bundled"), "load_model gives it, not 'bundled'"),
        (lambda mean: GradientEmbedder(mean.model), "which predicts no masked tokens"),
        (lambda mean: SentenceTransformerEmbedder("bundled"), "must be a SentenceTransformer"),
        (lambda mean: ConcatenatedEmbedder([mean, "neural"]), "an embedder, not 'neural'"),
        (lambda mean: ConcatenatedEmbedder(mean), "at least two"),
        (lambda mean: make_embedder(None), "Name a method"),
    ],
)
def test_arguments_of_another_type(make: Any, sentence: str, mean: PooledEmbedder) -> None:
    with pytest.raises(SettingsError, match=sentence):
        make(mean)


def test_parameters_are_set(tiny: LanguageModel) -> None:
    embedder = NeuralEmbedder(tiny, epochs=2)
    assert embedder.set_params() is embedder
    assert embedder.set_params(epochs=3, learning_rate=0.02) is embedder
    assert embedder.cache_key() == NeuralEmbedder(tiny, epochs=3, learning_rate=0.02).cache_key()
    assert embedder.get_params()["epochs"] == 3
    key = embedder.cache_key()
    for wrong, sentence in (({"epochs": 0}, "epochs"), ({"layer": 2}, "no parameter “layer”")):
        with pytest.raises(SettingsError, match=sentence):
            embedder.set_params(**wrong)
        assert embedder.cache_key() == key
    hashed = HashEmbedder(dim=4).set_params(dim=6)
    assert hashed.encode(["a"]).shape == (1, 6)


def test_a_text_that_takes_minutes_is_warned_of_before_it_is_read() -> None:
    class Slow(HashEmbedder):
        def _read(self, texts: list[str]) -> list[str]:
            raise TextError("it is read")

    texts = ["One.", "word " * 900_000, "word " * 30_000]
    says = r"Very long texts: 2 of 3\. The longest has 4,500,000 characters\. Embedding may take"
    with pytest.warns(LongTextWarning, match=says), pytest.raises(TextError, match="it is read"):
        Slow().encode(texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert HashEmbedder().encode(["a" * 100_000]).shape == (1, 8)


def test_texts_are_given_by_either_name(tiny: LanguageModel) -> None:
    """As BERTopic and MTEB give them."""
    embedder, texts = PooledEmbedder(tiny), ["a", "b"]
    for encode in (embedder.encode, embedder.encode_query, embedder.encode_document):
        np.testing.assert_array_equal(encode(inputs=texts), embedder.encode(texts))
        np.testing.assert_array_equal(encode(sentences=texts), embedder.encode(texts))
    with pytest.raises(TypeError, match="inputs"):
        embedder.encode(["a"], sentences=["b"])


def test_arguments_go_by_the_names_of_sentence_transformers() -> None:
    theirs = pytest.importorskip("sentence_transformers").SentenceTransformer.encode
    ours = list(inspect.signature(neuralviz.NeuralEmbedder.encode).parameters)
    expected = list(inspect.signature(inspect.unwrap(theirs)).parameters)
    assert expected[-1] == "kwargs"  # of which one is known, before what MTEB gives
    by_mteb = ["task_metadata", "task_name", "hf_split", "hf_subset", "prompt_type"]
    assert ours == [*expected[:-1], "task", *by_mteb]


def test_a_task_that_no_embedder_knows(mean: PooledEmbedder) -> None:
    for task in ("clustering", "", ["query"], 5):
        with pytest.raises(SettingsError, match="task must be one of: query, document, not"):
            mean.encode(["a"], task=task)


def test_settings_may_be_numbers_of_numpy(tiny: LanguageModel) -> None:
    settings = neuralviz.NeuralEmbedder(
        tiny, epochs=np.int64(3), learning_rate=np.float32(0.5), weight_decay=np.float64(0)
    ).settings
    numbers = (settings.epochs, settings.learning_rate, settings.weight_decay)
    assert [(type(number), number) for number in numbers] == [(int, 3), (float, 0.5), (float, 0)]
    for name in ("epochs", "learning_rate", "weight_decay"):
        for value in (True, np.True_, "1", None, np.nan):
            with pytest.raises(SettingsError, match=r"must be a .*number"):
                neuralviz.NeuralEmbedder(tiny, **{name: value})


def test_a_loss_that_rises_is_said(tiny: LanguageModel) -> None:
    wild = neuralviz.NeuralEmbedder(tiny, epochs=3, learning_rate=1e6)
    with pytest.warns(LossWarning, match="The run diverged on 2 of 2 texts"):
        wild.encode(SENTENCES[:2])
