"""Every kind of sentence above a view, as it is read: `sentences.txt` is reviewed by people.

After a sentence was changed on purpose, ``UPDATE_SENTENCES=1 pytest tests/unit/test_sentences.py``
writes the file anew; read its difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from neuralviz.evaluation import EvaluationPlan, Results, method_rows
from neuralviz.evaluation.best_layer import MeasuredPooling
from neuralviz.evaluation.broken import BrokenCount, Overlap
from neuralviz.evaluation.correlation import Correlation, correlate
from neuralviz.evaluation.data import DataSet, grouped_data, labelled_data, scored_data
from neuralviz.evaluation.ladder_results import Baseline, ladder_lines
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.probing import Accuracy, Confusion
from neuralviz.evaluation.results import Cell, Compared, Measured, MeasureSettings, QualityMap
from neuralviz.evaluation.similarity import Similarity, similarity
from neuralviz.evaluation.yardsticks import yardsticks_of
from neuralviz.headlines import (
    Entry,
    Headline,
    corpus,
    evaluation,
    explanation,
    layers,
    micro_tuning,
    rank_hits,
    similar_texts,
    training,
)
from neuralviz.headlines import Measured as What
from neuralviz.headlines.micro_tuning import describe_steps, describe_story
from neuralviz.jobs.evaluating import recorded_results
from neuralviz.jobs.ladder import recorded_ladder
from neuralviz.jobs.training import recorded_lessons
from neuralviz.layers.geometry import FollowedWord
from neuralviz.maps.neighbours import common_neighbours, find_neighbours
from neuralviz.micro_tuning.events import (
    RUN_FORMAT,
    Candidate,
    FilledBlank,
    MaskedPredictions,
    Part,
    RunRecord,
)
from neuralviz.micro_tuning.lens import Lens
from neuralviz.micro_tuning.settings import DEFAULT_BLUEPRINTS, mask_inputs
from neuralviz.paths import sample_data
from neuralviz.training.record import Snapshot
from neuralviz.training.settings import TrainingSettings

SNAPSHOT = Path(__file__).with_name("sentences.txt")
BREAK = "\n\n"  # between what is large and what is small
SPREAD = np.linspace(-1, 1, 1001)  # of which 95% lie within ±0.95
METHODS = ("mean", "sbert-wk", "cls", "last", "sep")


def named(label: str) -> str:
    return f"**{label}**"


# --- an evaluation -----------------------------------------------------------------------------


def pairs(n: int = 40) -> DataSet:
    sides = ([f"{side} {i}" for i in range(n)] for side in ("one", "other"))
    return scored_data("pairs.csv", *sides, np.linspace(0, 5, n))


def groups(n: int = 12) -> DataSet:
    texts = [f"text {i}" for i in range(2 * n)]
    return grouped_data("groups.csv", texts, [str(i // 2) for i in range(2 * n)])


def labels(column: str = "form") -> DataSet:
    data = labelled_data("labels.csv", [f"text {i}" for i in range(60)], ["a", "b", "c"] * 20)
    return replace(data, columns={"text": "text", "label": column})


def spearman(value: float, around: float = 0.0) -> Measured:
    correlations = Correlation(value, value, value, value, 40)
    return Measured(correlations=correlations, resampled={"spearman": value + around * SPREAD})


def error(name: str, share: float, around: float = 0.0, **more: Any) -> Measured:
    count = BrokenCount(round(1000 * share), round(1000 * share), 1000, 0.8, 0.2)
    return Measured(**{name: count}, resampled={name: share + around * SPREAD}, **more)


def accuracy(value: float, around: float = 0.0, k: int = 10) -> Measured:
    bounds = (value - around, value + around)
    hits = np.arange(60) < round(60 * value)
    return Measured(neighbours=Accuracy(value, 60, 1 / 3, bounds, hits, k=k))


def probe(value: float, tfidf: float | None = None) -> Measured:
    told = np.arange(60) < round(60 * value)
    bounds = (value - 0.1, value + 0.1)
    return Measured(probe=Accuracy(value, 60, 1 / 3, bounds, told, tfidf=tfidf))


def results(data: DataSet, *methods: Measured | None, resamples: int = 1000) -> Results:
    rows = method_rows(METHODS[: len(methods)], {})
    filled = Results(EvaluationPlan((data,), rows, MeasureSettings(resamples=resamples)))
    for row, measured in enumerate(methods):
        cell = Cell(0, row, measured, error="" if measured else "It broke.")
        filled = filled.having(cell)
    return filled


def verdict(data: DataSet, *methods: Measured | None, **more: Any) -> str:
    return evaluation.describe_verdict(results(data, *methods, **more), 0, name=named)


def followed_quality(taus: dict[str, np.ndarray], n: int = 100) -> str:
    maps = [QualityMap(quality, np.zeros(len(tau)), np.zeros(len(tau)), tau, np.full(tau.shape, n))
            for quality, tau in taus.items()]  # fmt: skip
    found = results(pairs(), Measured(paraphrases=tuple(maps)))
    (tau_c,) = yardsticks_of(found, 0)
    return evaluation.describe_followed_quality(found, 0, tau_c, named, str)


def evaluations() -> Iterator[tuple[str, str]]:
    low, unsure, unknown = spearman(0.2), spearman(0.58, 0.1), replace(spearman(0.5), resampled={})
    yield "one method", verdict(pairs(), spearman(0.6, 0.1))
    yield "one method at chance", verdict(pairs(), spearman(0.05, 0.1))
    yield "one method, scores reversed", verdict(pairs(), spearman(-0.42, 0.17))
    yield "one method, no interval", verdict(pairs(), unknown)
    yield "ahead of one", verdict(pairs(), spearman(0.75, 0.03), spearman(0.82))
    yield "ahead of several", verdict(pairs(), spearman(0.82), low, spearman(0.75, 0.03))
    yield "not decided", verdict(pairs(), spearman(0.61), unsure)
    yield "not decided among the best", verdict(pairs(), spearman(0.61), unsure, low)
    yield "level", verdict(pairs(), spearman(0.6), spearman(0.6), low)
    yield "level, and a third not decided", verdict(pairs(), spearman(0.6), spearman(0.6), unsure)
    yield "no interval", verdict(pairs(), spearman(0.6), unknown)
    yield "all worse than chance", verdict(pairs(), spearman(-0.4, 0.1), spearman(-0.6, 0.1))
    yield "best worse than chance", verdict(pairs(), spearman(-0.05, 0.02), spearman(-0.1, 0.2))
    yield "left out", verdict(pairs(), spearman(0.8), spearman(0.7), None, spearman(np.nan))
    yield "all failed", verdict(pairs(), None, None)
    yield "nothing measured", evaluation.describe_verdict(Results(results(pairs()).plan), 0)
    yield "labels", verdict(labels(), accuracy(0.8, 0.1))
    yield "labels, one neighbour", verdict(labels(), accuracy(0.8, 0.1, k=1), accuracy(0.5, 0.1))
    yield "labels at chance", verdict(labels(), accuracy(0.4, 0.1), accuracy(0.35, 0.1))
    yield "labels, worse than guessing", verdict(labels(), accuracy(0.1, 0.1))
    yield "labels, few texts", verdict(labels(), accuracy(0.1, 0.1, k=20))
    yield "a probe", verdict(labels(), probe(0.8))
    yield "probes", verdict(labels(), probe(0.8, 0.7), probe(0.5, 0.7))
    yield "words alone", verdict(labels(), probe(0.6, 0.7))
    yield "triplets", verdict(groups(), error("triplets", 0.06, 0.01), error("triplets", 0.02))
    unsampled = [replace(error("triplets", e), resampled={}) for e in (0.1, 0.2)]
    yield "triplets, few groups", verdict(groups(3), *unsampled)
    yield "comparisons, reversed", verdict(pairs(), error("pairs", 0.8, 0.1))
    many_labels = results(labels("<b>" + "x" * 90), accuracy(0.8), accuracy(0.5))
    yield "a long name", evaluation.describe_verdict(many_labels, 0, quote=lambda text: f"[{text}]")
    of_two_words = results(labels("topic/form"), accuracy(0.8), accuracy(0.5))
    yield "a name with a sign", evaluation.describe_verdict(of_two_words, 0)
    apart = {"same": np.full(3, 0.7), "diff": np.full(2, -0.001)}
    found = results(groups(), error("triplets", 0.3), error("triplets", 0.03, **apart))
    (by,) = yardsticks_of(found, 0)
    yield "separation", evaluation.describe_separation(found, 0, by, named)
    yield "terms of triplets", evaluation.explain_terms(found, 0, by, str, "significant")
    (by,) = yardsticks_of(many_labels, 0)
    yield "terms of labels", evaluation.explain_terms(many_labels, 0, by, str, "")
    yield "what methods are", evaluation.explain_rows(many_labels, named)
    yield "what a method is", evaluation.explain_rows(many_labels, named, "mean")
    three = np.array([[30, 9, 6], [9, 10, 8], [6, 8, 20]])
    two, single = np.array([[2, 1], [1, 4]]), np.array([[1, 1], [1, 4]])
    found = results(groups(), *(error("triplets", n / 1000) for n in (30, 10, 20)))
    for title, rows, shared in (
        ("three", (0, 1, 2), three),
        ("two", (0, 1), two),
        ("two, of which one has one", (0, 1), single),
    ):
        compared = found.having(Compared(0, rows, {"triplets": Overlap(shared, 528)}))
        yield f"shared errors of {title}", evaluation.describe_shared_errors(compared, 0, named)
    yield "what shared errors show", evaluation.explain_shared_errors(compared, 0)
    confused = {
        "confused labels": [[60, 40, 0], [10, 90, 0], [1, 0, 30]],
        "evenly confused labels": [[8, 1, 1], [1, 8, 1], [1, 1, 8]],
        "two confused labels": [[60, 40], [1, 90]],
        "labels that are all right": [[2, 0], [0, 3]],
    }
    for title, counts in confused.items():
        confusion = Confusion(("news", "diary", "note")[: len(counts)], np.array(counts))
        yield title, evaluation.describe_confusion(confusion, "**mean**", str)
    counts = 9 * np.eye(14, dtype=int)
    counts[0, 13] = 9
    confusion = Confusion(tuple("abcdefghijklmn"), counts)
    yield "rare labels", evaluation.describe_confusion(confusion, "**mean**", "“{}”".format)
    taus = {"form": 0.4, "topic": 0.1}
    yield "qualities", followed_quality({q: np.array([[tau]]) for q, tau in taus.items()})
    yield "one quality at chance", followed_quality({"form": np.array([[0.01]])})
    reversed_taus = {"form": np.array([[-0.1]]), "topic": np.array([[-0.5]])}
    yield "reversed qualities", followed_quality(reversed_taus)
    yield "even qualities", followed_quality({q: np.array([[0.4]]) for q in taus})
    examples = dict(zip(("forms", "topics", "scored", "groups"), recorded_results(), strict=True))
    for name, recorded in examples.items():
        yield f"example {name}", evaluation.describe_verdict(recorded, 0, name=named)
    scored = examples["scored"]
    measured = scored.measured(0, 0)
    assert measured is not None
    yield "pair by pair", evaluation.describe_pairs(scored.data[0], measured, "**mean**")
    yield "pairs at chance", evaluation.describe_pairs(pairs(), spearman(0.05, 0.1), "**mean**")


# --- texts, a corpus ---------------------------------------------------------------------------


def right(*shares: float, n: int = 100) -> list[np.ndarray]:
    return [np.arange(n) < share * n for share in shares]


def corpora() -> Iterator[tuple[str, str]]:
    def labelled(methods: Sequence[str], *shares: float) -> str:
        return corpus.describe_label(methods, "topic", right(*shares), 0.25, 10)

    yield "one map", labelled(["mean"], 0.8)
    yield "one map at chance", labelled(["mean"], 0.3)
    yield "two maps", labelled(["mean", "cls"], 0.9, 0.6)
    yield "two maps not decided", labelled(["mean", "cls"], 0.52, 0.5)
    yield "three methods", labelled(["mean", "cls", "sep"], 0.9, 0.6, 0.3)
    yield "no better than guessing", labelled(["mean", "cls"], 0.25, 0.1)
    yield "agree", corpus.describe_agreement(["mean", "cls"], 0.62, 10, "480 texts", 479)
    yield "differ", corpus.describe_agreement(["mean", "cls"], 0.31, 1, "480 texts", 479)
    yield "agree as by chance", corpus.describe_agreement(["mean", "cls"], 0.66, 5, "12 texts", 11)
    yield "too few to agree", corpus.describe_agreement(["mean", "cls"], 1, 2, "3 texts", 2)
    yield "two maps", corpus.describe_disagreement(["mean", "cls"], 0.31, 10, "480 texts")
    yield "no map", corpus.describe_unmade("tickets", 300, "**mean** and **neural**")
    sizes = [30, 20, 9, 8, 5]
    yield "clusters", corpus.describe_clusters("mean", ["train delay", "money"], sizes[:2], 80)
    names = ["train delay", "", "rain", "bread", "choir"]
    yield "many clusters", corpus.describe_clusters("mean", names, sizes, 80)
    yield "clusters without words", corpus.describe_clusters("mean", ["", ""], sizes[:2], 80)
    equal = [*names, "tea"], [12, 12, 12, 9, 9, 9]
    yield "a tie at the last named cluster", corpus.describe_clusters("mean", *equal, 80)
    equal = [*names, "tea"], [12, 12, 12, 12, 12, 11]
    yield "a tie of the largest clusters", corpus.describe_clusters("mean", *equal, 80)
    yield "equal clusters", corpus.describe_clusters("mean", names, [10] * 5, 80)
    yield "no clusters", corpus.describe_clusters("mean", [], [], 80)
    themes = [corpus.describe_clusters(method, ["ice"], [9], 80) for method in ("mean", "cls")]
    yield "clusters by two methods", corpus.join_methods(themes)
    drawn = corpus.explain_maps("**mean**: ….", "(95% interval: …)")
    yield "what is drawn", drawn
    held = corpus.describe_held_group(["neural", "mean"], 9, (2.3, 0.6), "do not reply")
    yield "terms of a held group", corpus.explain_maps("**cls**: ….", held)
    found = corpus.describe_matches("“cosine”, “95% interval” and “rank correlation”", 2, 9, [])
    yield "words that are terms", corpus.explain_maps("**cls**: ….", found)
    near = [["a"] * 4 + ["b"], ["a", "b", "c", "d", "e"], [""] * 5]
    methods, texts = ["mean", "cls", "sep"], ["A cat.", "A wolf.", "A fox."]
    sizes = dict.fromkeys("abcde", 60)

    def land(near: list[list[str]], texts: list[str] = texts, **sizes_: int) -> str:
        sized = sizes_ or sizes
        return corpus.describe_landing("A dog.", methods[: len(near)], near, "topic", texts, sized)

    yield "a sentence lands", land(near)
    few = [["a", "a", "", "", ""], ["a", "b", "", "", ""]]
    yield "hardly a label", land(few, texts[:2])
    yield "a tie of labels", land([list("abab"), [*"baab", ""], [*"baa", ""]])
    yield "the same text", land(few, ["A cat.", "A cat."])
    yield "all near texts have a label", land([list("aaaa")], texts[:1])
    yield "among texts of one label", land(near[:1], texts[:1], a=240, b=60)
    ends = [("crash window", "4.8"), ("thanks", "1.2")]
    yield "numbers", corpus.describe_trend("rating", [("mean", 0.62)], ends, 300)
    both = [("mean", 0.62), ("cls", 0.4)]
    days = [("price", "2025-08-01"), ("thanks", "2025-02-11")]
    yield "dates", corpus.describe_trend("opened", both, days, 300, ("latest", "earliest"))
    yield "numbers without clusters", corpus.describe_trend("rating", both[:1], [], 300)
    yield "numbers not decided", corpus.describe_trend("rating", [], ends, 300)
    yield "too few numbers", corpus.describe_trend("rating", [], [], 0)
    of = [("rain", 11, 14), ("bread", 2, 150)]
    yield "words found", corpus.describe_matches("“ice” and “snow”", 14, 300, of)
    yield "words of one cluster", corpus.describe_matches("“ice”", 5, 300, [("rain", 5, 14)])
    yield "words of a large cluster", corpus.describe_matches("“ice”", 5, 300, [("rain", 5, 290)])
    yield (
        "words of half of the texts",
        corpus.describe_matches("“ice”", 10_000, 10**6, [("rain", 5200, 500_000)]),
    )
    of_first = corpus.describe_matches("“ice”", 5, 300, [("rain", 5, 14)], "mean")
    yield "words of a cluster of the first of two maps", of_first
    yield "one text found", corpus.describe_matches("“ice”", 1, 300, [("rain", 1, 14)])
    yield "no text found", corpus.describe_matches("“ice”", 0, 300, of)
    yield "near-duplicates", corpus.describe_duplicates(32, 300)
    yield "one of two methods", corpus.describe_duplicates(1, 300, "mean")
    yield "no near-duplicates", corpus.describe_duplicates(0, 300)
    kept = ("mean", 0.93, 7, [3, 2, 2], 300, "longest")
    yield "groups of near-duplicates", corpus.describe_groups(*kept)
    yield "one group", corpus.describe_groups("mean", 0.93, 2, [2], 300, "first")
    yield "a text alone", corpus.describe_groups("mean", 0.8, 41, [30, 10], 41, "longest")
    yield "one text left", corpus.describe_groups("mean", 0.8, 41, [41], 41, "longest")
    yield "nearly 1", corpus.describe_groups("mean", 0.9996, 2, [2], 300, "longest")
    yield "no groups", corpus.describe_groups("mean", 1.0, 0, [], 300, "longest")
    held = (["neural", "mean"], 20, (2.31, 0.64))
    yield (
        "held together, a phrase",
        corpus.describe_held_group(*held, "please do not reply", ["do"]),
    )
    yield "held together, words", corpus.describe_held_group(*held, "", ["a", "b"], (97, 14))
    yield "held together, short texts", corpus.describe_held_group(*held, lengths=(4, 14))


def ranked(method: str, *products: float) -> Similarity:
    """Of four texts, the products of the pairs 1-2, 1-3, 1-4, 2-3, 2-4, 3-4."""
    matrix = np.eye(4, dtype=np.float32)
    matrix[np.triu_indices(4, k=1)] = products
    return Similarity(method, tuple("abcd"), np.maximum(matrix, matrix.T), np.zeros(4))


def with_nearest(method: str, hits: np.ndarray) -> Similarity:
    """A method by which the nearest text of each of two texts a label has its label, or has not."""
    products = np.eye(len(hits), dtype=np.float32)
    for text, is_right in enumerate(hits):
        products[text, text ^ 1 if is_right else (text + 2) % len(hits)] = 0.5
    return Similarity(method, tuple(map(str, range(len(hits)))), products, np.zeros(len(hits)))


def describe_both(*arguments: Any) -> str:
    return BREAK.join(filter(None, similar_texts.describe_agreement(*arguments)))


def few_texts() -> Iterator[tuple[str, str]]:
    topic = {"topic": [str(i // 2) for i in range(40)]}
    best_hits, second_hits, close_hits = right(0.75, 0.25, 0.7, n=40)
    best, second = with_nearest("mean", best_hits), with_nearest("cls", second_hits)
    yield "labels, ahead", similar_texts.describe_similar_texts([best, second], topic)
    close = with_nearest("cls", close_hits)
    yield "labels, not decided", similar_texts.describe_similar_texts([best, close], topic)
    yield "labels, one method", similar_texts.describe_similar_texts([best], topic)
    mean = ranked("mean", 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    cls = ranked("cls", 0.9, 0.8, 0.7, 0.6, 0.4, 0.5)
    neural = ranked("neural", 0.1, 0.2, 0.4, 0.3, 0.5, 0.6)
    yield "two methods of four texts", similar_texts.describe_similar_texts([mean, cls])
    yield "three of which one differs", similar_texts.describe_similar_texts([mean, neural, cls])
    level = replace(cls, products=np.ones((4, 4), dtype=np.float32))
    yield "all pairs alike by one", similar_texts.describe_similar_texts([level, mean])
    yield "too few to agree", describe_both(mean, cls)
    yield "do not agree", describe_both(mean, neural)
    yield "cannot be compared", describe_both(mean, level)
    draw = np.random.default_rng(0)
    vectors, noise = draw.normal(size=(2, 8, 4))
    several = [similarity(name, "abcdefgh", vectors + share * noise)
               for name, share in (("mean", 0), ("cls", 0.2), ("neural", 0.7))]  # fmt: skip
    yield "two methods agree", describe_both(*several[:2])
    yield "two methods agree little", describe_both(*several[::2])
    yield "texts hardly read", describe_both(*several[::2], [5])
    unfinished = ranked("mean", 0.9, 0.8, np.nan, 0.6, np.nan, np.nan)
    unfinished.products[3, 3] = np.nan
    columns = {"topic": list("xxxy"), "form": list("xyxy"), "length": list("xxyy")}
    yield "columns of three texts", similar_texts.describe_similar_texts([unfinished], columns)
    yield "one method", similar_texts.describe_similar_texts([mean])
    ties = np.eye(6)[[0, 0, 0, 1, 2, 3]], np.eye(6)[[0, 1, 2, 3, 3, 3]]
    both = [similarity(name, "abcdef", v) for name, v in zip(("mean", "cls"), ties, strict=True)]
    yield "ties of different pairs", similar_texts.describe_similar_texts(both)
    one = similarity("mean", "ab", np.eye(2))
    yield "one pair", similar_texts.describe_similar_texts([one])
    yield "one pair by two", similar_texts.describe_similar_texts([one, replace(one, method="cls")])
    three = [method.in_order(range(3)) for method in (mean, neural)]
    yield "three pairs", describe_both(*three)
    yield "three pairs alike", describe_both(three[0], three[0])
    yield "no method", similar_texts.describe_similar_texts([])

    def sum_words(*rows: list[float]) -> explanation.NamedPairs:
        return explanation.NamedPairs(["a", "b"], ["c"], np.array(rows))

    plain, sides = sum_words([0.3, 0], [0.1, 0], [0, 0.1]), ("text 1", "text 2")
    marks = np.array([[0.2, 0], [0.3, 0], [0, 0]])
    swapped = sum_words([0.2, 0.2], [0, 0], [0, 0.1])
    beyond, level = sum_words([2.1, 0], [-2, 0], [0, 0.1]), sum_words([0.2, 0], [0, 0.2], [0, 0])
    for name, methods in (
        ("a word of one method, and parts that cancel", {"mean": beyond, "cls": plain}),
        ("parts that cancel", {"mean": beyond}),
        ("parts that are modest", {"mean": sum_words([0.21, 0], [-0.2, 0], [0, 0.01])}),
        ("a word of two methods", {"mean": plain, "sep": plain, "neural": level}),
        ("words of two methods", {"mean": plain, "sep": swapped}),
        ("several words", {"mean": level}),
        ("more than a word", {"mean": sum_words([0.2, 0.1], [0.1, 0], [0, 0.3])}),
        ("a mark", {"mean": explanation.NamedPairs(["😀", "."], ["!"], marks)}),
        ("no word", {"cls": sum_words([0, 0], [0, 0], [0, 0.1])}),
    ):
        yield name, explanation.describe_words(methods, sides, are_equal=False)
    yield "pairs", explanation.describe_words({"mean": beyond}, are_equal=False, by_pair=True)


# --- layers, a ladder --------------------------------------------------------------------------


def layer_views() -> Iterator[tuple[str, str]]:
    scores = np.random.default_rng(0).random(60)

    def pooling(noise: float, sign: int = 1) -> MeasuredPooling:
        cosines = sign * scores + noise * np.random.default_rng(1).standard_normal(60)
        return MeasuredPooling(cosines, scores, np.arange(60))

    def best(*poolings: MeasuredPooling, **more: bool) -> str:
        return layers.describe_best_layer({"mean": poolings}, **more)[0]

    yield "a layer is best", best(pooling(0.1), pooling(0.01), pooling(0.5))
    yield "the last layer is best", best(pooling(0.5), pooling(0.01))
    yield "so far", best(pooling(0.5), pooling(0.01), is_whole=False)
    yield "scores reversed", best(pooling(0.1, -1), pooling(0.01, -1))
    flat = MeasuredPooling(np.ones(60), scores, np.arange(60))
    yield "undefined", best(flat)
    yield "the last layer is undefined", best(pooling(0.5), pooling(0.01), flat)
    yield "one layer", best(pooling(0.01))
    words = [FollowedWord("the", 0.4), FollowedWord("cat", 0.2)]
    weights: Any = SimpleNamespace(importance=np.array([0.4, 0.2]), layers=np.arange(4))
    yield "words of a text", layers.describe_text(words, weights)
    yield "what the text shows", layers.TEXT_IN_SHORT
    yield "what the pairs show", layers.explain_layers("95% interval")
    lens = [
        Lens(
            None,
            np.arange(1),
            ("bank",),
            np.array([[0.01, 0.1, last]]),
            np.array([[9, first, 1 if last > 0.5 else 9]]),  # NaN is last
            (((("a",), ("##s",), ("bank" if last > 0.5 else "other",))),),
            np.full((1, 3, 1), max(last, 0.3)),
            has_head,
        )
        for first, last, has_head in ((3, 0.2, True), (3, 0.7, True), (1, 0.9, True),
                                      (3, np.nan, True), (3, 0.2, False), (1, 0.2, False),
                                      (1, 0.9, False))
    ]  # fmt: skip
    yield "what the lens shows", layers.explain_lens(lens[0], lens[1], 0)
    yield "what a lens without a head shows", layers.explain_lens(lens[4], None, 0)
    long: Any = SimpleNamespace(tokens=range(40), text=range(312), has_head=True)
    yield "cells of the lens", layers.explain_guesses(replace(lens[4], text=range(1)), 16)
    yield "cells of a long text", layers.explain_guesses(long, 16)
    for title, before, after in (("no lead", 0, None), ("a lead", 1, None), ("gained", 0, 1),
                                 ("earlier", 1, 2), ("lost", 2, 0), ("diverged", 1, 3),
                                 ("no head, never nearest", 4, None),
                                 ("no head, nearest at first", 5, None),
                                 ("no head, nearest to the last", 6, None)):  # fmt: skip
        later = None if after is None else lens[after]
        yield f"lens: {title}", layers.describe_lens(lens[before], later, 0)
        yield f"lead: {title}", layers.describe_lead(lens[before], later, 0)
    cosines = np.eye(4)
    cosines[[0, 1, 2], [1, 2, 3]] = (0.9, 0.5, 0.8)
    yield "map", layers.describe_map(cosines, "“cat”", "1 − cosine")
    yield "even map", layers.describe_map(np.full((3, 3), 0.7), "words", "mean of 1 − cosine")


def reverse(result: Baseline) -> Baseline:
    """A baseline or rung that predicts the opposite."""
    return replace(result, measured=replace(result.measured, cosines=-result.measured.cosines))


def ladders() -> Iterator[tuple[str, str]]:
    recorded = recorded_ladder()
    assert recorded is not None
    assert recorded.test is not None
    yield "layers", layers.describe_best_layer(recorded.layers)[0]
    yield "ladder", layers.describe_ladder(recorded)
    yield "what the ladder shows", layers.explain_ladder(recorded, ladder_lines(recorded), "")
    yield "what a rung is", layers.explain_rung(recorded, "siamese")
    yield "first baseline", layers.describe_ladder(replace(recorded, results={}))
    one = {place: result for place, result in recorded.results.items() if place[0] == "siamese"}
    yield "one rung", layers.describe_ladder(replace(recorded, results=one))
    worse = {place: reverse(result) for place, result in recorded.results.items()}
    yield "baseline ahead", layers.describe_ladder(replace(recorded, results=worse))
    below = {name: reverse(one) for name, one in recorded.baselines.items()}
    yield "scores reversed", layers.describe_ladder(replace(recorded, baselines=below))
    against = {name: [replace(one, cosines=-one.cosines) for one in layers]
               for name, layers in recorded.layers.items()}  # fmt: skip
    yield "layers reversed", layers.describe_ladder(replace(recorded, layers=against))
    yield "warning", " / ".join(layers.warn_of_rung(replace(recorded, results=worse), "siamese"))
    result = next(iter(recorded.results.values()))
    predicted = result.measured.cosines
    yield "errors", layers.describe_errors("siamese", predicted, recorded.test.scores)
    two_texts = ("A dog.", "A cat.")
    yield "worst", layers.describe_worst("siamese", 60, two_texts, 4.5, 1.25, lambda t: f"“{t}”")
    for shares in ([0.1, 0.7, 0.2], [0.45, 0.1, 0.45], [0.34, 0.33, 0.33]):
        yield f"layers heard {shares}", layers.describe_layer_shares("cosines", np.array(shares))
    two = {"cosines": 4.5, "siamese": 4.8}, {"cosines": 4.7, "siamese": 4.9}
    yield "two texts", layers.describe_two_texts(two_texts, *two, lambda t: f"“{t}”")


# --- trainings, runs, steps --------------------------------------------------------------------


def trainings() -> Iterator[tuple[str, str]]:
    crops, dropout = known = recorded_lessons()

    def lessons(*chosen: Any, label: str = "chapter") -> str:
        return training.describe_lessons(chosen, label)

    yield "whole model is better", training.describe_untrained(known)
    close = replace(crops, untrained=0.64)
    yield "whole model is not better", training.describe_untrained([close])
    between = replace(crops, untrained=0.66), dropout
    yield "whole model is better than one of two", training.describe_untrained(between)
    unmeasured = replace(close, snapshots=())
    yield "whole model alone", training.describe_untrained([unmeasured])
    yield "two kinds", lessons(*known)
    yield (
        "what two kinds are",
        training.explain_pairs(known, "significant", "chapter", "texts"),
    )
    frozen = TrainingSettings(pairs="masking", frozen_blocks=2)
    yield (
        "what masking is",
        training.explain_pairs([replace(crops, settings=frozen)], "", "chapter", "passages"),
    )
    random = TrainingSettings(part="table", start="random")
    yield (
        "a table at random",
        training.explain_pairs([replace(crops, settings=random)], "", "", "“a.csv”"),
    )
    yield "one kind", lessons(crops)
    first, *_, last = crops.snapshots
    swapped = replace(last, step=0), replace(first, step=60)
    yield "harm", lessons(replace(crops, snapshots=swapped))
    yield "not decided", lessons(dropout)
    yield "so far", lessons(replace(crops, is_over=False), replace(dropout, is_over=False))
    shorter = replace(dropout, snapshots=dropout.snapshots[:-1])
    yield "other numbers of steps", lessons(crops, shorter)
    yield "before", lessons(replace(crops, snapshots=crops.snapshots[:1], is_over=False))
    yield "no labels", lessons(replace(crops, snapshots=()), label="")
    yield "first step", lessons(replace(crops, snapshots=(), curves=crops.curves[:1]))
    yield "diverged", lessons(replace(crops, diverged=True))
    yield "layers", training.describe_trained_layers(known)
    before = replace(crops.snapshots[0], nearest=crops.snapshots[0].nearest % 7)
    after = replace(before, nearest=before.nearest.copy())
    unmoved = replace(crops, snapshots=(before, after))
    yield "no moves", training.describe_moves(unmoved)
    after.nearest[:3, 9] = 8
    yield "few moves", training.describe_moves(unmoved)
    yield "moves", training.describe_moves(crops)


def cut_off(record: RunRecord, epochs: int, texts: slice = slice(None)) -> RunRecord:
    """As it was after so many epochs on some texts."""
    live = copy(record)
    live.loss, live.delta_norm = record.loss.copy(), record.delta_norm.copy()
    live.loss[epochs + 1 :, texts], live.delta_norm[epochs + 1 :, texts] = np.nan, np.nan
    cut = range(len(record.texts))[texts]
    live.reports = {i: report for i, report in record.reports.items() if i not in cut}
    live.texts_done, live.epochs_reached = len(live.reports), epochs + 1
    return live


def runs() -> Iterator[tuple[str, str]]:
    record = RUN_FORMAT.unpack((sample_data() / "recorded_run.npz").read_bytes())
    yield "learnt", micro_tuning.describe_learning(record, 0)
    yield "under way", micro_tuning.describe_learning(cut_off(record, 4), 0)
    stopped = cut_off(record, 3, slice(2, 3))
    yield "a stopped run", micro_tuning.describe_learning(stopped, 0)
    yield "its last text", micro_tuning.describe_learning(stopped, 2)
    begun = RunRecord(record.model_id, record.settings, record.texts[:1])
    yield "not begun", micro_tuning.describe_learning(begun, 0)
    begun.parts = [Part(0, 0.2, 3.0), Part(0, 0.4, 4.0)]
    yield "its first parts", micro_tuning.describe_learning(begun, 0)
    yield "its progress", micro_tuning.describe_progress(stopped)
    diverged = copy(record)
    diverged.diverged = {1}
    yield "diverged", micro_tuning.describe_learning(diverged, 1)
    report = record.reports[0]

    def with_report(**changes: Any) -> RunRecord:
        changed = copy(record)
        changed.reports = {text: replace(report, **changes) for text in record.reports}
        return changed

    yield "loss rose", micro_tuning.describe_learning(with_report(loss_after=9.0), 0)
    yield "one epoch", micro_tuning.describe_learning(cut_off(record, 1), 0)
    yield "words", micro_tuning.describe_words(record, 0)
    pair = {f"text {i + 1}": record.reports[i].words[:2] for i in range(2)}
    yield "words of a pair", micro_tuning.describe_shares(pair)
    places = report.text.words
    cancelling = with_report(shares=np.where(places % 2, 1.5, -1.2) * (1 + places / 10))
    yield "words that cancel", micro_tuning.describe_words(cancelling, 0)
    against = with_report(shares=np.where(places == 2, -0.28, 0.08))
    yield "a word against", micro_tuning.describe_words(against, 0)
    signs = {"text 1": (["f(−x)", "cat"], np.array([0.6, 0.4]))}
    yield "a word with a minus", micro_tuning.describe_shares(signs)
    spans = np.where(places[:, None] == 2, [0, 90], [0, 0])
    long = replace(report.text, text="a" * 90, spans=spans)
    yield "a long word", micro_tuning.describe_words(with_report(text=long), 0)
    unread = with_report(text=replace(report.text, unknown=np.ones(len(report.text), dtype=bool)))
    yield "unreadable", micro_tuning.describe_learning(unread, 0)
    earlier = copy(record)
    earlier.settings = replace(record.settings, epochs=5, learning_rate=0.02)
    earlier.loss = record.loss[:6]
    yield "against an earlier run", micro_tuning.compare_with_earlier(record, earlier, (2, 1))
    vectors = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]])
    for name, embeddings in (("similar", vectors), ("different", np.eye(3)),
                             ("several pairs", np.repeat(np.eye(2), 2, axis=0)),
                             ("several pairs of three", np.array([[1, 0], [0, 1], [1, 1]])),
                             ("a vector is missing", np.vstack([vectors[:2], [[np.nan] * 2]])),
                             ("a vector of four is missing", np.vstack([vectors, [[np.nan] * 2]])),
                             ("two texts", vectors[:2])):  # fmt: skip
        products = similarity("neural", "abcd"[: len(embeddings)], embeddings)
        yield name, micro_tuning.describe_similar(products, range(len(embeddings)))
    places = np.arange(3)
    words = (("cat", "dog"), ("a", "the"), ("sat", "lay"))
    guesses = MaskedPredictions(places, places, np.array([0.6, 0.1, 0.2]), np.zeros(3), words,
                                np.array([[0.6, 0.1], [0.5, 0.1], [0.4, 0.2]]))  # fmt: skip
    yield "guesses", micro_tuning.describe_guesses(["cat", "the", "lay"], guesses)
    yield "hardly read", micro_tuning.warn_of_unread("text 2", record.model_id)
    yield "masks", micro_tuning.describe_masks(mask_inputs(9, DEFAULT_BLUEPRINTS))


class FourTokens(SimpleNamespace):
    def __len__(self) -> int:
        return 4


def steps() -> Iterator[tuple[str, str]]:
    made = SimpleNamespace
    cat = Candidate("cat", 0.1, 0.86)
    walk: Any = made(
        products=(0.338, 0.061), text=FourTokens(text="A cat sat."),
        inputs=made(masked=np.eye(4, dtype=bool)), before=made(mean_loss=3.39),
        after=made(mean_loss=1.24), settings=made(epochs=10), weights=[np.zeros(1500), np.zeros(2)],
        deltas=[np.array([[[0.01, -0.104]]])],
        tuning=made(delta_norm=np.array([1.0, 2.0, 3.0, 4.0])[:, None, None]),
        losses=np.array([3.39, 1.24]), blank=made(before=[cat], after=[cat]),
        sentence="A ___ sat.",
    )  # fmt: skip
    names = "text tokens inputs loss weights delta embedding product".split()
    yield from zip(names, describe_steps(walk), strict=True)
    yield from zip(("blank", "training", "after", "compared"), describe_story(walk), strict=True)
    for name, sentence in (("another word", "A cat ___."), ("no word", "A cat sat. ___")):
        walk.sentence = sentence
        yield f"blank for {name}", describe_story(walk)[0]
    walk.products = (0.201, 0.203)
    yield "equal products", describe_steps(walk)[-1]
    walk.products = (0.2, 0.3)
    yield "unrelated is closer", describe_steps(walk)[-1]


VIEWS = {
    "Evaluation": evaluations, "Corpus": corpora, "Compare": few_texts, "Layers": layer_views,
    "Frozen features": ladders, "Training": trainings, "Micro-tuning": runs, "How it works": steps,
}  # fmt: skip


def test_sentences_are_those_that_were_reviewed() -> None:
    written = "\n".join(
        f"{page}: {case}\n    {sentence.replace(BREAK, ' / ') or '(nothing)'}\n"
        for page, cases in VIEWS.items()
        for case, sentence in cases()
    )
    if os.environ.get("UPDATE_SENTENCES"):
        SNAPSHOT.write_text(written, encoding="utf-8")
    assert written == SNAPSHOT.read_text(encoding="utf-8")


# --- what holds whatever the words -------------------------------------------------------------


def test_permuted_labels_and_scores_decide_nothing() -> None:
    """Of vectors that know nothing of the labels, no method is called better than another."""
    decided = 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        texts = [f"text {i}" for i in range(60)]
        data = labelled_data("labels.csv", texts, draw.permutation(["a", "b", "c"] * 20).tolist())
        settings = MeasureSettings(measures=("neighbours",), resamples=200)
        measured = [measure(data, draw.normal(size=(60, 4)), settings) for _ in range(2)]
        sentence = verdict(data, *measured)
        decided += "difference is significant" in sentence
    assert decided <= 2  # one in twenty is what a 95% interval allows


@pytest.mark.parametrize("kind", ["agreement", "confusion", "landing", "pairs", "qualities"])
def test_what_is_drawn_at_random_is_no_finding(kind: str) -> None:
    found = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        if kind == "agreement":
            texts = list("abcdefghijkl")[: 4 + seed % 9]
            methods = [similarity(name, texts, draw.normal(size=(len(texts), 8)))
                       for name in ("mean", "cls")]  # fmt: skip
            sentence, _ = similar_texts.describe_agreement(*methods)
            found += sentence.startswith("The methods mean and cls agree")
        elif kind == "confusion":
            own, predicted = draw.choice(list("abcd"), (2, 200), p=[0.7, 0.1, 0.1, 0.1]).tolist()
            confusion = Confusion.from_predictions(own, predicted)
            found += evaluation.describe_confusion(confusion, "mean", str) != ""
        elif kind == "landing":
            near = draw.choice(list("abcd"), 10, p=[0.7, 0.1, 0.1, 0.1]).tolist()
            sizes = {"a": 210, "b": 30, "c": 30, "d": 30}
            sentence = corpus.describe_landing("A dog.", ["mean"], [near], "topic", ["A."], sizes)
            found += "the topic" in sentence
        elif kind == "pairs":
            data, settings = pairs(), MeasureSettings(("correlations",), resamples=200)
            measured = measure(data, draw.normal(size=(len(data.texts), 4)), settings)
            found += evaluation.describe_pairs(data, measured, "mean") != ""
        else:
            orders = draw.permuted(np.tile(np.arange(20.0), (6, 1)), axis=1)
            tau = np.array([correlate(order, np.arange(20.0)).kendall_c for order in orders])
            taus = dict(zip("abc", tau.reshape(3, 1, 2), strict=True))
            found += "most closely" in followed_quality(taus, n=20)
    assert found <= 4


@pytest.mark.parametrize("kind", ["texts", "lessons", "layers", "ladder"])
def test_what_knows_nothing_of_labels_or_scores_is_no_finding(kind: str) -> None:
    recorded, (lesson, _) = recorded_ladder(), recorded_lessons()
    assert recorded is not None
    n = len(lesson.snapshots[0].right)

    def guess(snapshot: Snapshot) -> Snapshot:
        right = draw.random(n) < 0.4
        inner = draw.binomial(n, 0.4, size=2) / n
        return replace(snapshot, right=right, accuracy=np.array([*inner, right.mean()]))

    def permute(result: Baseline) -> Baseline:
        cosines = draw.permutation(result.measured.cosines)
        return replace(result, measured=replace(result.measured, cosines=cosines))

    decided = 0
    for seed in range(6 if kind == "ladder" else 20):
        draw = np.random.default_rng(seed)
        if kind == "texts":
            labels = {"topic": draw.permutation(list("abcd") * 10).tolist()}
            methods = [similarity(name, labels["topic"], draw.normal(size=(40, 8)))
                       for name in ("mean", "cls")]  # fmt: skip
            sentence = similar_texts.describe_similar_texts(methods, labels)
            decided += "difference is significant" in sentence
            few = [method.in_order(range(3)) for method in methods]
            found = tuple(f"The methods mean and cls {verb}" for verb in ("differ", "put 3 pairs"))
            assert similar_texts.describe_agreement(*few)[0].startswith(found)
        elif kind == "ladder":
            changed = {name: {place: permute(one) for place, one in getattr(recorded, name).items()}
                       for name in ("baselines", "results")}  # fmt: skip
            sentence = layers.describe_ladder(replace(recorded, **changed))
            decided += "difference is significant" in sentence
        else:
            taken = replace(lesson, snapshots=tuple(map(guess, lesson.snapshots)), untrained=None)
            sentence = training.describe_lessons([taken], "chapter")
            if kind == "layers":
                sentence = training.describe_trained_layers([taken])
            decided += "difference is significant" in sentence or "changed layer" in sentence
    assert decided <= 3


def test_texts_in_another_order_have_the_same_sentence() -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        products = similarity(
            "neural", "abcdef", np.array([0, 0.5]) + draw.integers(3, size=(6, 2))
        )
        order = draw.permutation(6)
        sentences = [
            micro_tuning.describe_similar(products.in_order(places), places.tolist())
            for places in (np.arange(6), np.sort(order)[::-1], order)
        ]
        pairs = [set(re.findall(r"\d+", sentence)) for sentence in sentences]
        assert pairs[0] == pairs[1] == pairs[2]


def test_maps_of_shuffled_texts_share_as_many_neighbours_as_chance_brings() -> None:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(400, 8))
    near = [find_neighbours(part, 20) for part in (vectors, draw.permutation(vectors))]
    share = float(common_neighbours(*near, 20).mean())
    assert "share **5%** of a text's" in corpus.describe_disagreement(
        ["a", "b"], share, 20, "texts"
    )


@pytest.mark.parametrize("sizes", [[180, 60, 30, 15, 9, 6], [11] * 27])
def test_words_at_random_places_are_in_no_cluster_more_than_elsewhere(sizes: list[int]) -> None:
    labels, n_named = np.repeat(range(len(sizes)), sizes), 0
    for seed in range(400):
        draw = np.random.default_rng(seed)
        found = draw.permutation(len(labels)) < draw.integers(2, 8)
        counts = [(f"c{i}", int((labels[found] == i).sum()), n) for i, n in enumerate(sizes)]
        sentence = corpus.describe_matches("“ice”", int(found.sum()), len(labels), counts)
        n_named += "cluster" in sentence
    assert n_named <= 4


def test_the_rest_is_written_with_as_many_digits() -> None:
    entries = [Entry("a", 0.9), Entry("b", 0.75), Entry("c", 0.749)]
    measured = What("the share is", "9 texts")
    assert Headline.rank(measured, entries, lambda *_: (0.1, 0.2)).write_sentence() == (
        "With a, the share is 0.900 on 9 texts, against 0.750 with b and 0.749 with c.\n\n"
        "Both differences are significant (95% interval of the first: 0.10 to 0.20)."
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_lead_is_decided_where_its_interval_is_apart_from_0(sign: int) -> None:
    first, second = right(0.75, 0.5)
    headline = rank_hits(What("right for", "100 texts"), ["a", "b"], [first, second][::sign])
    assert headline.outcome == "ahead"
    assert headline.best.value == 0.75
    assert headline.interval is not None
    assert headline.interval[0] > 0
    half_done = rank_hits(What("right for", "100 texts"), ["a", "b"], [first, second[:50]])
    assert half_done.outcome == "unknown"


def test_an_answer_that_is_hardly_likelier_than_others_is_no_finding() -> None:
    def fill(after: float) -> FilledBlank:
        guesses = (Candidate("it", 0.02, 0.01),), (Candidate("tea", 0.01, after),)
        return FilledBlank(*guesses, guesses[1])

    clear = corpus.describe_answer([fill(0.4)], "adding it")
    assert "best guess for the blank was “it” (2.0%); after adding it it is “tea” (40%)." in clear
    unclear = corpus.describe_answer([fill(0.03), fill(0.02)], "adding it")
    assert unclear == ("After adding it, the model has no clear guess: its best one has 3%.")
    assert "guess for blank 2 was" in corpus.describe_answer([fill(0.03), fill(0.4)], "adding it")
