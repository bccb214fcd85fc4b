"""Probes: what they reach is scikit-learn's own, and their tasks are made from texts alone."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from sklearn import metrics
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neuralviz.errors import NeuralvizError, SettingsError, Stopped
from neuralviz.evaluation.data import Measure, labelled_data
from neuralviz.evaluation.measures import check_measures, measure
from neuralviz.evaluation.probing import FOLDS, Confusion, folds, probe, why_not_probed
from neuralviz.evaluation.probing_tasks import FEWEST_TEXTS, TASKS, probing_task, words_of
from neuralviz.evaluation.results import MeasureSettings
from neuralviz.maps.shares import wilson_interval

LABELS = [f"label {i % 3}" for i in range(90)]
TEXTS = [f"text {'abc'[i % 3] * 3} {i}" for i in range(90)]


def random_vectors(n: int = 90, dim: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


# --- the probe -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_is_scikit_learns_classifier_under_the_same_split_and_seed() -> None:
    seed = 3
    vectors = random_vectors() + np.array([[i % 3 == j for j in range(12)] for i in range(90)])
    vectors = vectors.astype(np.float32)
    network = MLPClassifier(
        hidden_layer_sizes=(50,), batch_size=64, max_iter=200, random_state=seed
    )
    split = StratifiedKFold(5, shuffle=True, random_state=seed)
    theirs = cross_val_predict(
        make_pipeline(StandardScaler(), network), vectors, np.array(LABELS), cv=split
    )
    found = probe(vectors, LABELS, TEXTS, seed=seed)
    right, told = found.right, found.as_json()
    np.testing.assert_array_equal(right, theirs == np.array(LABELS))
    assert found.accuracy == right.mean()
    assert 0.4 < found.accuracy < 1
    assert found.interval == wilson_interval(int(right.sum()), 90)
    assert (found.n, told["n_labels"], told["folds"], found.baseline) == (90, 3, 5, 30 / 90)
    words = make_pipeline(
        TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True),
        LogisticRegression(max_iter=1000),
    )
    told = cross_val_predict(words, TEXTS, np.array(LABELS), cv=split)
    assert found.tfidf == (told == np.array(LABELS)).mean() == 1


def test_a_text_that_is_there_several_times_is_in_one_fold() -> None:
    texts = [f"text {at // 3}" for at in range(90)]
    labels = [f"label {at // 3 % 2}" for at in range(90)]
    asked = []
    for learnt, places in folds(labels, texts, 0):
        assert not {texts[at] for at in learnt} & {texts[at] for at in places}
        asked += places.tolist()
    assert sorted(asked) == list(range(90))
    # the vectors tell texts, not labels: had a probe seen a text, it would know its label
    found = probe(np.repeat(random_vectors(30, 40), 3, axis=0), labels, texts)
    assert found.accuracy < 0.8
    with pytest.raises(NeuralvizError, match="different texts each; 1 of 2 labels has that many"):
        probe(random_vectors(), ["a"] * 80 + ["b"] * 10, [*TEXTS[:80], *["once"] * 10])


def test_what_cannot_be_probed_is_said() -> None:
    vectors = random_vectors()
    with pytest.raises(NeuralvizError, match="same label"):
        probe(vectors, ["a"] * 90, TEXTS)
    few = ["a"] * 86 + ["b"] * 4
    with pytest.raises(NeuralvizError, match="5 different texts each; 1 of 2 labels has that many"):
        probe(vectors, few, TEXTS)
    assert "none of 3 labels has that many" in why_not_probed(list("aabbcc"), range(6))
    assert why_not_probed(["a"] * 5 + ["b"] * 5 + ["c"], range(11)) == ""
    assert why_not_probed(["a"] * FOLDS + ["b"] * FOLDS, range(2 * FOLDS)) == ""


def test_it_can_be_stopped_between_folds() -> None:
    asked = iter([False, False, True])
    with pytest.raises(Stopped):
        probe(random_vectors(), LABELS, TEXTS, should_stop=lambda: next(asked))


def test_it_says_nothing_to_the_terminal() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probe(random_vectors(30), LABELS[:30], TEXTS[:30])


# --- tasks from texts ----------------------------------------------------------------------------

NOUNS = ("apple", "river", "engine", "violin", "lantern", "saddle")


def sentences(n: int = 240) -> list[str]:
    """Different sentences of 6 to 17 words with a noun or none."""
    draw = np.random.default_rng(5)
    found = []
    for i in range(n):
        fillers = " ".join(f"x{chr(97 + v)}y" for v in draw.integers(26, size=1 + i % 12))
        found.append(f"The {NOUNS[i % 6]} was seen {fillers}, it seems.")
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("task", TASKS)
def test_labels_of_a_task_are_equally_frequent_and_texts_differ(task: str) -> None:
    made = probing_task(task, "own", [*sentences(), *sentences()[:30]])
    counts = Counter(made.labels)
    assert len(set(counts.values())) == 1
    assert min(counts.values()) >= FEWEST_TEXTS
    assert len(set(made.texts)) == len(made.texts) == len(made.labels)
    assert made.by_default == ("probe",)
    assert made.name == f"own, {TASKS[task].title.lower()}"
    assert check_measures(made, MeasureSettings()) == ("probe",)


def test_lengths_are_told_by_number_of_words() -> None:
    made = probing_task("length", "own", sentences())
    assert len(set(made.labels)) == 6
    ranges = []
    for text, label in zip(made.texts, made.labels, strict=True):
        low, high = map(int, re.fullmatch(r"(\d+) to (\d+) words", label).groups())
        assert low <= len(text.split()) <= high
        ranges.append((low, high))
    in_order = sorted(set(ranges))
    confusion = Confusion.from_predictions(made.labels, made.labels)
    assert confusion.labels == tuple(f"{low} to {high} words" for low, high in in_order)
    assert all(a[1] < b[0] for a, b in pairwise(in_order))
    assert set(made.texts) <= set(sentences())


def test_word_content_has_just_one_of_the_words() -> None:
    made = probing_task("word-content", "own", sentences())
    chosen = set(made.labels)
    assert set(NOUNS) & chosen
    assert not {"the", "was", "seen"} & chosen  # they are everywhere
    for text, label in zip(made.texts, made.labels, strict=True):
        assert set(words_of(text)) & chosen == {label}


def test_exchanged_words_differ_from_what_was_written_in_one_place() -> None:
    originals = list({tuple(sorted(words_of(text))): text for text in sentences()}.values())
    made = probing_task("bigram-shift", "own", originals)
    assert Counter(made.labels).keys() == {"as written", "exchanged"}
    by_words = {tuple(sorted(words_of(text))): text for text in originals}
    sources = []
    for text, label in zip(made.texts, made.labels, strict=True):
        source = by_words[tuple(sorted(words_of(text)))]
        sources.append(source)
        if label == "as written":
            assert text == source
            continue
        assert text not in originals
        one, other = words_of(source), words_of(text)
        (first, second) = [at for at in range(len(one)) if one[at] != other[at]]
        assert second == first + 1
        assert (one[first], one[second]) == (other[second], other[first])
        assert text.startswith("The ")  # a capital would show it
        assert text.endswith(", it seems.") or text.endswith(", seems it.")
    assert len(set(sources)) == len(sources)  # never a text in both its forms


def test_words_change_places_within_punctuation_only() -> None:
    texts = [f"Stop{chr(97 + i)}x! No, “wait” here: a (b) c. Go on then" for i in range(26)]
    made = probing_task("bigram-shift", "own", texts)
    shifted = [t for t, label in zip(made.texts, made.labels, strict=True) if label == "exchanged"]
    assert {text.partition("! ")[2] for text in shifted} == {"No, “wait” here: a (b) c. Go then on"}


def test_unknown_tasks_are_refused_and_many_texts_are_drawn_from() -> None:
    with pytest.raises(SettingsError, match="Unknown task “depth”"):
        probing_task("depth", "own", sentences())
    made = probing_task("length", "own", sentences(), max_texts=100)
    (note,) = made.notes
    assert note == f"Using 100 of {len(sentences())} different texts, drawn at random."
    assert len(made.texts) <= 100


# --- in the lab ----------------------------------------------------------------------------------


def test_labels_are_probed_when_asked_and_not_by_default() -> None:
    data = labelled_data("own.csv", TEXTS, LABELS)
    vectors = random_vectors()
    assert measure(data, vectors, MeasureSettings(k=3)).probe is None
    asked = measure(data, vectors, MeasureSettings(("probe",)))
    assert asked.neighbours is None
    assert asked.probe is not None
    everything = measure(data, vectors, MeasureSettings(("all",), k=3))
    assert everything.as_json()["probe"] == asked.as_json()["probe"]
    assert everything.neighbours is not None
    one = labelled_data("own.csv", TEXTS[:8], ["a"] * 5 + ["b"] * 3)
    with pytest.raises(NeuralvizError, match="1 of 2 labels has that many"):
        check_measures(one, MeasureSettings(("probe",)))


def test_labels_too_rare_to_probe_are_left_out_by_name() -> None:
    labels = ["a"] * 40 + ["b"] * 44 + ["rare"] * 4 + ["once", "again"]
    vectors = random_vectors()
    units = vectors / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True)
    alone = probe(units[:84], labels[:84], TEXTS[:84]).as_json()
    data = labelled_data("own.csv", TEXTS, labels)
    check_measures(data, MeasureSettings(("probe",)))
    asked = measure(data, vectors, MeasureSettings(("probe",)))
    assert asked.probe.as_json() == alone | {"left_out": ["rare", "once", "again"]}
    assert (alone["n"], alone["n_labels"], alone["baseline"]) == (84, 2, 44 / 84)
    assert asked.notes == (
        "The probe leaves out labels of fewer than 5 different texts: “rare” (4), “once” (1) and "
        "“again” (1).",
    )
    assert len(asked.probe.right) == 84


@pytest.mark.parametrize("name", ["neighbours", "probe"])
def test_every_label_counts_alike_as_scikit_learn_counts(name: Measure) -> None:
    draw = np.random.default_rng(2)
    labels = ["often"] * 60 + ["some"] * 22 + ["7"] * 8
    centres = {"often": 0.0, "some": 1.0, "7": 2.0}
    vectors = np.array([centres[one] for one in labels])[:, None] + draw.normal(size=(90, 6))
    data = labelled_data("own.csv", TEXTS, labels)
    found = measure(data, vectors, MeasureSettings((name,), k=3))
    confusion = found.confusions[name]
    assert confusion.labels == ("often", "some", "7")
    own = [one for one, row in zip(confusion.labels, confusion.counts, strict=True)
           for _ in range(row.sum())]  # fmt: skip
    predicted = [one for row in confusion.counts for one, n in
                 zip(confusion.labels, row, strict=True) for _ in range(n)]  # fmt: skip
    assert Counter(own) == Counter(labels)
    np.testing.assert_array_equal(
        confusion.counts, metrics.confusion_matrix(own, predicted, labels=confusion.labels)
    )
    macro = metrics.f1_score(own, predicted, average="macro", zero_division=0)
    balanced = metrics.balanced_accuracy_score(own, predicted)
    assert confusion.macro_f1 == pytest.approx(macro)
    assert confusion.balanced_accuracy == pytest.approx(balanced)
    share = found.accuracies[name]
    assert share.accuracy == pytest.approx(metrics.accuracy_score(own, predicted))
    told = found.as_json()[name]
    assert told["macro_f1"] == pytest.approx(macro)
    assert told["confusion"]["counts"] == confusion.counts.tolist()
    if name == "neighbours":  # of an independent classifier, each text left out in turn
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        nearest = KNeighborsClassifier(1, metric="cosine")
        one_nearest = measure(data, vectors, MeasureSettings((name,), k=1)).confusions[name]
        theirs = cross_val_predict(nearest, units, labels, cv=LeaveOneOut())
        np.testing.assert_array_equal(
            one_nearest.counts, metrics.confusion_matrix(labels, theirs, labels=confusion.labels)
        )
