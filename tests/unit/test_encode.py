"""The neural embedder in the shape of ``SentenceTransformer.encode``."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import neuralviz
from neuralviz.errors import LongTextWarning, LossWarning, SettingsError, TextError
from neuralviz.micro_tuning import micro_tune
from neuralviz.models import LanguageModel
from tests.support.embedders import HashEmbedder
from tests.support.models import SENTENCES, TEXTS

ALIKE = 0.99999


@pytest.fixture
def embedder(tiny: LanguageModel) -> neuralviz.NeuralEmbedder:
    return neuralviz.NeuralEmbedder(tiny, epochs=3)


def mixed() -> list[str]:
    return [*TEXTS.values(), *SENTENCES[4:], "b", "The boats."]


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


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_order_is_kept_and_batches_do_not_matter(batch_size: int, embedder, tiny) -> None:
    vectors = embedder.encode(mixed(), batch_size=batch_size)
    for text, vector in zip(mixed(), vectors, strict=True):
        *_, last = micro_tune(tiny, [text], epochs=3)
        assert last.result.embeddings[0] @ vector >= ALIKE


def test_the_settings_are_used(tiny: LanguageModel) -> None:
    settings = {
        "layers": tiny.last_block_layers[:2],
        "blueprints": [(3, 1)],
        "epochs": 2,
        "learning_rate": 0.1,
        "weight_decay": 0.5,
        "predict_unmasked": False,
    }
    *_, last = micro_tune(tiny, [TEXTS["one chunk"]], **settings)
    vector = neuralviz.NeuralEmbedder(tiny, **settings).encode(TEXTS["one chunk"])
    np.testing.assert_allclose(vector, last.result.embeddings[0], atol=1e-6)
    for name, other in {
        "layers": tiny.last_block_layers[1:], "blueprints": [(1, 3)], "epochs": 3,
        "learning_rate": 0.01, "weight_decay": 0.0, "predict_unmasked": True,
    }.items():  # fmt: skip
        changed = neuralviz.NeuralEmbedder(tiny, **settings | {name: other})
        assert not np.allclose(changed.encode(TEXTS["one chunk"]), vector, atol=1e-6), name


def test_callers_of_sentence_transformers(embedder) -> None:
    """As BERTopic and MTEB call it, and with everything by name."""
    vectors = embedder.encode(["a", "b"])
    np.testing.assert_array_equal(embedder.encode(("a", "b"), show_progress_bar=False), vectors)
    np.testing.assert_array_equal(embedder.encode(np.array(["a", "b"])), vectors)
    column = pd.Series(["a", "b"], index=[5, 1])
    np.testing.assert_array_equal(embedder.encode(column), vectors)
    np.testing.assert_allclose(embedder.encode(np.str_("a")), vectors[0], atol=1e-6)
    np.testing.assert_array_equal(embedder.encode(inputs=["a", "b"]), vectors)
    np.testing.assert_array_equal(embedder.encode_query(inputs=["a", "b"]), vectors)
    np.testing.assert_array_equal(embedder.encode_document(sentences=["a", "b"]), vectors)
    with pytest.raises(TypeError, match="inputs"):
        embedder.encode(["a"], sentences=["b"])
    with pytest.raises(TypeError, match="sentences"):
        embedder.encode(inputs=["a"], sentences=["b"])
    named = embedder.encode(
        sentences=["a", "b"], batch_size=32, show_progress_bar=False, convert_to_numpy=True,
        convert_to_tensor=False, normalize_embeddings=True,
    )  # fmt: skip
    np.testing.assert_array_equal(named, vectors)


def test_arguments_go_by_the_names_of_sentence_transformers() -> None:
    theirs = pytest.importorskip("sentence_transformers").SentenceTransformer.encode
    ours = list(inspect.signature(neuralviz.NeuralEmbedder.encode).parameters)
    expected = list(inspect.signature(inspect.unwrap(theirs)).parameters)
    assert expected[-1] == "kwargs"  # of which one is known, before what MTEB gives
    by_mteb = ["task_metadata", "task_name", "hf_split", "hf_subset", "prompt_type"]
    assert ours == [*expected[:-1], "task", *by_mteb]


@pytest.mark.parametrize("task", ["clustering", "", ["query"], 5])
def test_a_task_that_no_embedder_knows(task: object, embedder) -> None:
    with pytest.raises(SettingsError, match=r"Unknown task .* Choose from: query, document"):
        embedder.encode(["a"], task=task)


def test_a_progress_bar_when_asked_for(embedder, capsys) -> None:
    embedder.encode(["a", "b"])
    assert capsys.readouterr().err == ""
    embedder.encode(["a", "b"], show_progress_bar=True)
    assert "2/2" in capsys.readouterr().err


@pytest.mark.parametrize("batch_size", [0, -1, 1.5])
def test_batches_of_nothing(batch_size: float, embedder) -> None:
    with pytest.raises(SettingsError, match="batch size must be a whole number"):
        embedder.encode(["a"], batch_size=batch_size)


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


def test_nearby_texts_are_nearer_with_the_bundled_model(bundled: LanguageModel) -> None:
    vectors = neuralviz.NeuralEmbedder(bundled, epochs=3).encode(
        ["A dog barks at a cat.", "The dog is barking at the cat.", "Interest rates rose."]
    )
    assert vectors.shape == (3, 1152)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_a_loss_that_rises_is_said(tiny: LanguageModel) -> None:
    wild = neuralviz.NeuralEmbedder(tiny, epochs=3, learning_rate=1e6)
    with pytest.warns(LossWarning, match="The run diverged on 2 of 2 texts"):
        wild.encode(SENTENCES[:2])
