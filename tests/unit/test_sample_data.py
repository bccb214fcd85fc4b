"""The sample data are as sample_data/README.md says."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts

FOLDER = Path(__file__).parents[2] / "sample_data"
KINDS = {"plain", "same words", "other words", "negation", "number", "word order"}
SMALL = ("word_order.csv", "common_topic_rare_words.csv", "style_and_content.csv")
GROUPED = ("triplet_groups.csv", *SMALL[:2])
CORPORA = ("topics.csv", "longer_texts.csv")
FILES = ("sentences.csv", "scored_pairs.csv", "style_and_content.csv", *GROUPED, *CORPORA)


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_all_files_are_in_the_readme():
    readme = (FOLDER / "README.md").read_text("utf-8")
    named = set(re.findall(r"^\| `([^`]+\.(?:csv|npz))`", readme, re.MULTILINE))
    assert named == {path.name for path in FOLDER.iterdir() if path.suffix in (".csv", ".npz")}
    for name in FILES:
        columns = ", ".join(f"`{column}`" for column in rows(name)[0])
        assert re.search(rf"^\| `{name}` \| {columns} \| {len(rows(name))} ", readme, re.MULTILINE)


@pytest.mark.parametrize("name", FILES)
def test_every_field_is_filled_and_tidy(name: str):
    content = (FOLDER / name).read_bytes()
    assert b"\r" not in content and content.endswith(b"\n")
    for row in rows(name):
        assert all(value and value == " ".join(value.split()) for value in row.values())


@pytest.mark.parametrize("name", FILES)
def test_ids_are_unique(name: str):
    ids = [row["id"] for row in rows(name)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_texts(name: str):
    table = rows(name)
    for column in ("sentence1", "sentence2") if name == "scored_pairs.csv" else ("text",):
        read = read_texts(Source(name, (FOLDER / name).read_bytes()), column)
        assert read.texts == tuple(row[column] for row in table)
        assert read.ids == tuple(row["id"] for row in table)
        assert not read.notes
    guessed = read_texts(Source(name, (FOLDER / name).read_bytes()))
    assert guessed.column in ("text", "sentence1")


def test_pairs_are_spread_over_the_scores():
    scores = [float(row["score"]) for row in rows("scored_pairs.csv")]
    assert len(scores) >= 240
    assert all(0 <= score <= 5 for score in scores)
    bins = Counter(int(score + 0.5) for score in scores)
    assert set(bins) == set(range(6))
    assert min(bins.values()) >= 38


def test_there_are_enough_pairs_of_every_kind():
    kinds = Counter(row["kind"] for row in rows("scored_pairs.csv"))
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 22


def test_every_topic_has_pairs_over_the_scores():
    topics: dict[str, set[int]] = {}
    for row in rows("scored_pairs.csv"):
        topics.setdefault(row["topic"], set()).add(int(float(row["score"]) + 0.5))
    assert len(topics) >= 12
    assert all(scores == set(range(6)) for scores in topics.values())


def test_no_sentence_is_in_two_pairs():
    sentences = Counter(
        sentence
        for row in rows("scored_pairs.csv")
        for sentence in {row["sentence1"], row["sentence2"]}
    )
    assert max(sentences.values()) == 1


def test_identical_sentences_score_five():
    same = [row for row in rows("scored_pairs.csv") if row["sentence1"] == row["sentence2"]]
    assert all(float(row["score"]) == 5 for row in same)


@pytest.mark.parametrize("name", GROUPED)
def test_groups_have_members_and_no_text_is_there_twice(name: str):
    table = rows(name)
    groups = Counter(row["group"] for row in table)
    assert all(2 <= size <= 4 for size in groups.values())
    assert len({row["text"] for row in table}) == len(table)


def test_there_are_thirty_groups_of_paraphrases():
    assert len({row["group"] for row in rows("triplet_groups.csv")}) == 30


@pytest.mark.parametrize("name", SMALL)
def test_small_sets_are_small(name: str):
    assert 9 <= len(rows(name)) <= 14


def test_word_order_has_the_same_words_in_every_text():
    words = {
        tuple(sorted(re.findall(r"\w+", row["text"].lower()))) for row in rows("word_order.csv")
    }
    assert len(words) == 1


def test_every_topic_is_there_in_every_form_of_the_small_set():
    table = rows("style_and_content.csv")
    topics, forms = ({row[name] for row in table} for name in ("topic", "form"))
    assert {(row["topic"], row["form"]) for row in table} == {(t, f) for t in topics for f in forms}
    assert len(table) == len(topics) * len(forms)


@pytest.mark.parametrize(
    ("name", "texts_a_cell", "n_forms"), [(CORPORA[0], 8, 6), (CORPORA[1], 4, 3)]
)
def test_every_topic_is_there_equally_often_in_every_form(
    name: str, texts_a_cell: int, n_forms: int
):
    table = rows(name)
    cells = Counter((row["topic"], row["form"]) for row in table)
    topics, forms = ({cell[place] for cell in cells} for place in (0, 1))
    assert (len(topics), len(forms)) == (10, n_forms)
    assert len(cells) == len(topics) * len(forms)
    assert set(cells.values()) == {texts_a_cell}
    assert all(row["id"].startswith(f"{row['topic']}-{row['form']}-") for row in table)


@pytest.mark.parametrize("name", CORPORA)
def test_no_two_texts_of_a_corpus_have_the_same_words(name: str):
    words = Counter(" ".join(re.findall(r"\w+", row["text"].lower())) for row in rows(name))
    assert max(words.values()) == 1


@pytest.mark.parametrize("name", CORPORA)
def test_no_run_of_seven_words_is_in_two_texts_of_a_corpus(name: str):
    found: dict[tuple[str, ...], set[str]] = {}
    for row in rows(name):
        words = re.findall(r"[\w']+", row["text"].lower())
        for start in range(len(words) - 6):
            found.setdefault(tuple(words[start : start + 7]), set()).add(row["id"])
    assert {run: ids for run, ids in found.items() if len(ids) > 1} == {}


def test_short_texts_are_short_and_their_words_are_counted():
    for row in rows("topics.csv"):
        assert 40 <= len(row["text"]) <= 140, row["id"]
        assert int(row["words"]) == len(row["text"].split()), row["id"]


def test_forms_look_like_themselves():
    for row in rows("topics.csv"):
        text = row["text"]
        assert (row["form"] == "dialogue") == text.startswith('"'), text
        assert (row["form"] == "question") == bool(re.fullmatch(r"[^.?!]+\?", text)), text
        assert (row["form"] == "headline") == (text[-1] not in '.?!"'), text


def test_longer_texts_are_on_the_topics_of_the_short_ones():
    short, longer = ({row["topic"] for row in rows(name)} for name in CORPORA)
    assert longer <= short


def test_sentences_of_longer_texts_are_found_and_of_like_length():
    from sentencex import segment

    for row in rows("longer_texts.csv"):
        sentences = [sentence.strip() for sentence in segment("en", row["text"])]
        ends = re.findall(r"[.!?](?= |$)", row["text"])
        assert len(sentences) == len(ends) >= 5, row["id"]
        assert all(100 <= len(sentence) <= 250 for sentence in sentences), row["id"]
