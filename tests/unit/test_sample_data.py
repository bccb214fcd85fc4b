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
def test_a_file_is_tidy_and_read_whole(name: str):
    content, table = (FOLDER / name).read_bytes(), rows(name)
    assert b"\r" not in content and content.endswith(b"\n")
    for row in table:
        assert all(value and value == " ".join(value.split()) for value in row.values())
    assert len({row["id"] for row in table}) == len(table)
    for column in ("sentence1", "sentence2") if name == "scored_pairs.csv" else ("text",):
        read = read_texts(Source(name, content), column)
        assert read.texts == tuple(row[column] for row in table)
        assert read.ids == tuple(row["id"] for row in table)
        assert not read.notes
    assert read_texts(Source(name, content)).column in ("text", "sentence1")


def test_pairs_are_spread_over_scores_and_kinds():
    table = rows("scored_pairs.csv")
    scores = [float(row["score"]) for row in table]
    assert len(scores) >= 240
    assert all(0 <= score <= 5 for score in scores)
    bins = Counter(int(score + 0.5) for score in scores)
    assert set(bins) == set(range(6)) and min(bins.values()) >= 38
    kinds = Counter(row["kind"] for row in table)
    assert set(kinds) == KINDS and min(kinds.values()) >= 22
    pairs = [{row["sentence1"], row["sentence2"]} for row in table]
    assert max(Counter(sentence for pair in pairs for sentence in pair).values()) == 1


@pytest.mark.parametrize("name", GROUPED)
def test_groups_have_members_and_no_text_is_there_twice(name: str):
    table = rows(name)
    groups = Counter(row["group"] for row in table)
    assert all(2 <= size <= 4 for size in groups.values())
    assert len({row["text"] for row in table}) == len(table)
    assert len(groups) == 30 or name != "triplet_groups.csv"


@pytest.mark.parametrize(
    ("name", "texts_a_cell", "n_forms"), [(CORPORA[0], 8, 6), (CORPORA[1], 4, 3)]
)
def test_a_corpus_has_every_topic_in_every_form_and_repeats_no_words(name, texts_a_cell, n_forms):
    table = rows(name)
    cells = Counter((row["topic"], row["form"]) for row in table)
    topics, forms = ({cell[place] for cell in cells} for place in (0, 1))
    assert (len(topics), len(forms)) == (10, n_forms)
    assert len(cells) == len(topics) * len(forms)
    assert set(cells.values()) == {texts_a_cell}
    assert all(row["id"].startswith(f"{row['topic']}-{row['form']}-") for row in table)
    runs = Counter()
    for row in table:
        words = re.findall(r"[\w']+", row["text"].lower())
        runs.update({tuple(words[start : start + 7]) for start in range(len(words) - 6)})
    assert set(runs.values()) == {1}
