"""Scored pairs from files, and their figures."""

from __future__ import annotations

import json

import pytest

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.reading.table import MAX_CHARACTERS


def test_columns_go_by_their_names_and_kinds_and_topics_come_along():
    rows = [f"{i}\tk{i}\tb{i}\t{i}\tt{i}\ta{i}" for i in range(4)]
    for header in ("score kind sentence2 id Topic sentence1", "Similarity kind B id topic a"):
        content = "\n".join([header.replace(" ", "\t"), *rows])
        pairs = read_pairs(Source("p.tsv", content.encode())).first(2)
        assert (pairs.sentences1, pairs.sentences2) == (("a0", "a1"), ("b0", "b1"))
        assert dict(pairs.labels) == {"kind": ("k0", "k1"), "topic": ("t0", "t1")}
        assert (pairs.scores.tolist(), pairs.notes) == ([0, 1], ())


def test_rows_that_cannot_be_used_are_left_out_and_named():
    content = (
        "sentence1,sentence2,score\nA,B,1\n,B,1\nA, ,2\nA,B,good\nA,B,\nA,B,nan\nA,B,inf\n"
        'A,B,"3,5"\nA,B,-7e2\nA,B,1e3\nA,B,1,9\n'
    )
    pairs = read_pairs(Source("p.csv", content.encode()))
    assert pairs.scores.tolist() == [1, 3.5, -700, 1000]
    assert pairs.notes == (
        "Skipped 1 row with more fields than the header (line 12). Put texts that contain “,” in "
        "quotation marks.",
        "Read “nan” in the column “score” as missing (1 row).",
        "Skipped 2 rows: “sentence1” or “sentence2” is missing (lines 3, 4).",
        "Skipped 4 rows: “score” is not a number (lines 5, 6, 7, 8).",
        "3 pairs repeat the texts of another pair. Intervals count such pairs as one.",
    )


def test_a_text_that_is_cut_at_a_blank_is_too_long() -> None:
    long = "x" * MAX_CHARACTERS + " more words"
    content = f"sentence1,sentence2,score\n{long},B,1\nA,B,2\nC,D,3\nE,F,4\n"
    pairs = read_pairs(Source("p.csv", content.encode()))
    assert pairs.scores.tolist() == [2, 3, 4]
    assert "has more than 1,000,000 characters (line 2)" in pairs.notes[0]


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (["1,5", "2.5", "3.5", "4"], "1 number in the column “score” cannot .*“1,5”"),
        (["1", "1.234,5", "2.000,5", "3,5"], "3 numbers .*“1.234,5”"),
        (["1,234", "2,345", "3,456"], "3 numbers"),
    ],
)
def test_numbers_of_several_kinds_in_a_column_are_refused(scores: list[str], says: str) -> None:
    rows = "".join(f"A {n};B {n};{score}\n" for n, score in enumerate(scores))
    source = Source("p.csv", f"sentence1;sentence2;score\n{rows}".encode())
    with pytest.raises(TextError, match=says):
        read_pairs(source)
    (note,) = read_pairs(source, needs_scores=False).notes
    assert "of “score” as numbers" in note


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"one,two,score\nA,B,1\n", "text1 and text2. Its columns are: “one”, “two”, “score”"),
        (b"sentence1,sentence2\nA,B\n", "score. Its columns are: “sentence1”, “sentence2”"),
        (b"A sentence.\nAnother one.\n", "needs a column for text1"),
        (b"sentence1,sentence2,score\n", "has only 0 pairs with two texts and a score"),
        (b"sentence1,sentence2,score\nA,B,1\nC,D,x\nE,F,2\n", "has only 2 pairs.*line 3"),
        (b'sentence1,sentence2,score\nA,B,1\n"C,D,2\nE,F,3\n', r"quotation mark \(line 3\)"),
    ],
)
def test_what_is_no_table_of_pairs_is_refused_with_a_sentence(content: bytes, says: str):
    with pytest.raises(NeuralvizError, match=says):
        read_pairs(Source("p.csv", content))


def test_pairs_may_be_in_any_table():
    rows = [{"sentence1": f"a{i}", "sentence2": f"b{i}", "score": i / 2} for i in range(4)]
    rows[1]["score"] = None
    lines = "\n".join(map(json.dumps, rows))
    for name, content, unit in (("p.json", json.dumps(rows), "row"), ("p.jsonl", lines, "line")):
        pairs = read_pairs(Source(name, content.encode()))
        assert (pairs.scores.tolist(), pairs.sentences1) == ([0, 1, 1.5], ("a0", "a2", "a3"))
        assert pairs.notes == (f"Skipped 1 row: “score” is not a number ({unit} 2).",)
    some = read_pairs(Source("p.json", json.dumps(rows).encode()), needs_scores=False)
    assert some.scores[1] != some.scores[1]
    assert (len(some), some.notes) == (4, ())
