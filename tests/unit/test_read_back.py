"""Words told from embeddings alone, held against plain transformers and numpy."""

import copy
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from typer.testing import CliRunner

from neuralviz.cli import app
from neuralviz.embedders.neural import GradientEmbedder, NeuralEmbedder, neural_1
from neuralviz.embedders.pooled import LayerwiseEmbedder, PooledEmbedder
from neuralviz.embedders.specs import concatenate_specs, embedder_specs, make_embedder
from neuralviz.errors import NeuralvizError
from neuralviz.evaluation import measures
from neuralviz.evaluation.data import LabelledData
from neuralviz.evaluation.measures import evaluate, measure
from neuralviz.evaluation.read_back import _find_words, count_read, list_words, read_words
from neuralviz.evaluation.results import COLUMNS, EvaluationPlan, MeasureSettings
from neuralviz.evaluation.rows import method_rows
from neuralviz.micro_tuning.events import collect_result, neural_embeddings, take_apart
from neuralviz.micro_tuning.loop import tune
from neuralviz.models import tokenize
from neuralviz.store.database import Database
from neuralviz.store.vectors import KeptVectors

TEXTS = [
    "The central bank raised interest rates again.",
    "A lighthouse keeper counts the ships at night.",
    "Bakers fold butter into the dough.",
]


LIST = ("river", "bank", "dog", "choir", "snow", "bread")


def nearest(tokenizer, rows, vectors, top=10):
    """Whole words of a WordPiece vocabulary by the cosine of their rows."""
    tokens = tokenizer.convert_ids_to_tokens(range(len(rows)))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    order = np.argsort(-(vectors @ rows.T), axis=1, kind="stable")
    words = [[tokens[i] for i in row if tokens[i].isalpha()] for row in order]
    return [entry[:top] for entry in words]


def test_pooled_vectors_are_read_by_the_output_layer_and_by_the_table(bundled):
    for embedder in (PooledEmbedder(bundled), make_embedder("mean")):
        network = embedder.model.network
        table = network.get_output_embeddings() or network.get_input_embeddings()
        vectors = embedder.encode(TEXTS)
        expected = nearest(embedder.model.tokenizer, table.weight.detach().numpy(), vectors)
        assert read_words(embedder, vectors) == expected


@pytest.mark.parametrize("make", [NeuralEmbedder, GradientEmbedder, neural_1])
def test_a_delta_is_read_from_a_changed_copy_of_the_model(bundled, make):
    options = {} if make is GradientEmbedder else {"epochs": 2}
    embedder = make(bundled, **options)
    vectors = embedder.encode(TEXTS)
    ids = torch.tensor([[*bundled.prefix_ids, bundled.mask_id, *bundled.suffix_ids]])
    place = len(bundled.prefix_ids)
    tokens = bundled.tokenizer.convert_ids_to_tokens(range(bundled.vocab_size))
    layers = embedder.settings.layers
    for words, vector in zip(read_words(embedder, vectors), vectors, strict=True):
        network = copy.deepcopy(bundled.network)
        with torch.no_grad():
            before = network(ids).logits[0, place].log_softmax(0)
            parameters, start = dict(network.named_parameters()), 0
            for name in layers:
                size = len(parameters[name])
                part = torch.tensor(vector[start : start + size])
                length = 0.01 * embedder.settings.epochs * size**0.5
                parameters[name] += part / part.norm() * length
                start += size
            rise = network(ids).logits[0, place].log_softmax(0) - before
        order = [i for i in rise.argsort(descending=True).tolist() if tokens[i].isalpha()]
        assert words == [tokens[i] for i in order[:10]]


def test_an_embedding_taken_apart_is_the_deltas_it_came_from(bundled):
    settings = NeuralEmbedder(bundled, epochs=5).settings
    result = collect_result(tune(bundled, tokenize(bundled, TEXTS), settings))
    for number, embedding in enumerate(result.embeddings):
        apart = take_apart(bundled, settings, embedding)
        for delta, part in zip(result.deltas, apart.values, strict=True):
            norm = np.linalg.norm(delta[number])
            np.testing.assert_allclose(part / np.linalg.norm(part), delta[number] / norm, atol=1e-6)
            assert 0.9 < norm / np.linalg.norm(part) < 1
        again = neural_embeddings(tuple(part[None] for part in apart.values))[0]
        np.testing.assert_allclose(again, embedding, atol=1e-6)
    half = take_apart(bundled, settings, result.embeddings[0] / 2)
    whole = take_apart(bundled, settings, result.embeddings[0])
    np.testing.assert_allclose(half.values[0] * 2, whole.values[0], rtol=1e-6)


@pytest.mark.parametrize("family", ["roberta", "mpnet", "deberta-v2", "modernbert", "albert"])
def test_other_vocabularies_give_different_words(small_model, family):
    model = small_model(family)
    words = read_words(
        NeuralEmbedder(model, epochs=1), NeuralEmbedder(model, epochs=1).encode(TEXTS)
    )
    assert all(word.isalpha() and word == word.casefold() for entry in words for word in entry)
    assert all(len(entry) == len(set(entry)) for entry in words)


class Vocabulary:
    """A model as far as its vocabulary goes."""

    def __init__(self, model: Any, pre_tokenizer: Any, decoder: Any) -> None:
        self.encoder = Tokenizer(model)
        self.encoder.pre_tokenizer, self.encoder.decoder = pre_tokenizer, decoder
        table = torch.nn.Embedding(self.encoder.get_vocab_size(), 2)
        self.network = SimpleNamespace(get_input_embeddings=lambda: table)


WORD_PIECE = {"[UNK]": 0, "a": 1, "dog": 2, "##ing": 3, "Ġ": 4, "do": 5, "12": 6}
UNIGRAM = [("<unk>", 0), ("▁a", -1), ("▁dog", -2), ("ing", -2), ("▁", -3), ("d", -4), ("▁do", -4)]
BPE = {"a</w>": 0, "d": 1, "o": 2, "g</w>": 3, "do": 4, "dog</w>": 5, "o</w>": 6, "a": 7}
MERGES = [("d", "o"), ("do", "g</w>")]


@pytest.mark.parametrize(
    ("vocabulary", "words"),
    [
        (
            (models.WordPiece(WORD_PIECE, unk_token="[UNK]"), "Whitespace", "WordPiece"),
            {1: "a", 2: "dog", 4: "ġ", 5: "do"},
        ),
        ((models.Unigram(UNIGRAM, 0), "Metaspace", "Metaspace"), {1: "a", 2: "dog", 6: "do"}),
        (
            (models.BPE(BPE, MERGES, end_of_word_suffix="</w>"), "Whitespace", "BPEDecoder"),
            {0: "a", 3: "g", 5: "dog", 6: "o"},
        ),
    ],
    ids=["word pieces", "marked beginnings", "marked ends"],
)
def test_only_whole_words_are_guessed(vocabulary, words):
    model, pre_tokenizer, decoder = vocabulary
    parts = getattr(pre_tokenizers, pre_tokenizer)(), getattr(decoders, decoder)()
    columns, spelt = _find_words(Vocabulary(model, *parts))
    assert {place: spelt[columns[place]] for place in np.flatnonzero(columns >= 0)} == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't. The bank’s", {"i", "don't", "the", "bank’s"}),
        ("हिन्दी 12 a1", {"हिन्दी", "a1"}),
        ("cafe\u0301 CAFÉ", {"café"}),
        ("犬が走る。", {"犬", "が", "走", "る"}),
        ("…, 3!", set()),
    ],
)
def test_words(text, words):
    assert list_words(text) == words


def test_zeros_tell_no_words(bundled):
    for embedder in (PooledEmbedder(bundled), NeuralEmbedder(bundled, epochs=1)):
        zeros, one = np.zeros(embedder.dim), np.eye(1, embedder.dim)[0]
        nothing, some = read_words(embedder, np.stack([zeros, one]))
        assert (len(nothing), len(some)) == (0, 10)


def test_counts():
    texts = ["The cat, the CAT and 3 dogs!", "a b", "…"]
    assert list_words(texts[0]) == {"the", "cat", "and", "dogs"}
    words = [["dogs", "x", "the", "y", "z", "cat"], ["b"], ["a"]]
    counted, hits, n = count_read(texts, words)
    assert (hits.tolist(), n.tolist()) == ([3, 1, 0], [4, 2, 0])
    assert counted.recall_at_10 == 4 / 6
    assert counted.recall_at_5 == 3 / 6
    assert counted.baseline == counted.ceiling == 1  # all words are among the ten most frequent
    many = [" ".join(f"{letter}{other}" for letter in "abcd" for other in "abcd")] * 2
    counted, *_ = count_read([*many, "a lone word"], [[], [], []])
    assert (counted.n, counted.recall_at_10) == (35, 0)
    assert counted.ceiling == 23 / 35
    assert counted.baseline == 20 / 35
    with pytest.raises(NeuralvizError, match="no words"):
        count_read(["1 2", "?"], [[], []])


def test_nothing_is_embedded_that_cannot_be_read_back(monkeypatch, tmp_path):
    monkeypatch.setattr(measures, "embed", None)  # would be called
    data = LabelledData("d", tuple(TEXTS), np.arange(3), ("a", "b", "a"))
    rows = method_rows(["neural+mean"])
    plan = EvaluationPlan((data,), rows, MeasureSettings(("read-back",)))
    (cell,) = evaluate(plan, KeptVectors(Database(tmp_path)))
    assert "cannot be read back: only vectors that one method takes" in cell.error


def test_the_interval_is_of_drawn_texts(bundled):
    texts = tuple(f"The {word} {other}." for word in LIST for other in LIST)
    data = LabelledData("d", texts, np.arange(len(texts)), ("a", "b") * (len(texts) // 2))
    embedder = PooledEmbedder(bundled)
    vectors = embedder.encode(list(texts))
    settings = MeasureSettings(("read-back",), resamples=200)
    measured = measure(data, vectors, settings, embedder=embedder)
    low, high = measured.interval("read-back")
    assert low < measured.read_back.recall_at_10 < high
    (column,) = [c for c in COLUMNS if (c.measure, c.field) == ("read-back", "interval")]
    assert column.write_cell(measured) == f"{low:.1%} to {high:.1%}"


def test_vectors_that_cannot_be_read_back_say_so(bundled):
    data = LabelledData("d", tuple(TEXTS), np.arange(3), ("a", "b", "a"))
    settings = MeasureSettings(("read-back",))
    joined = make_embedder(concatenate_specs(embedder_specs(["mean", "cls"])))
    cases = {
        "no model": (None, np.eye(3, 4)),
        "cannot be read back": (joined, np.eye(3, joined.dim)),
        "384 values for a word": (LayerwiseEmbedder(bundled), np.eye(3, 384 * 7)),
    }
    for sentence, (embedder, vectors) in cases.items():
        measured = measure(data, vectors, settings, embedder=embedder)
        assert sentence in measured.failed["read-back"]


def test_the_command_line_prints_recall_with_interval_and_baseline(tmp_path):
    table = tmp_path / "t.csv"
    lines = [f"{text},{number % 2}" for number, text in enumerate(TEXTS)]
    table.write_text("\n".join(["text,label", *lines]))
    command = ["evaluate", "--data", str(table), "--method", "mean", "--measure", "read-back"]
    result = CliRunner().invoke(app, [*command, "--json"])
    numbers = json.loads(result.stdout)["mean"]["read-back"]
    embedder = make_embedder("mean")
    counted, *_ = count_read(TEXTS, read_words(embedder, embedder.encode(TEXTS)))
    assert numbers["recall_at_10"] == counted.recall_at_10
    assert (numbers["n"], numbers["baseline"]) == (21, 12 / 21)
    assert numbers["interval"] is None  # of three texts
