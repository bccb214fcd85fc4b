"""Which line of a table names its columns: nothing that is read is lost or taken for a name."""

from __future__ import annotations

import csv
import io
from datetime import date, timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.errors import TextError
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import read_texts
from tests.support.table_files import WRITERS, Column, as_excel, as_text, delimited, rows_of

# --- formats × column types × headers × orders ---------------------------------------------------

HEADED = ("t.jsonl", "t.json", "t.parquet", "t.feather")
WORDS = "the a river bread rose fell slowly today near old house, salt; and we saw it again".split()
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=3, max_size=9).map(
    lambda words: " ".join(words).capitalize() + "."
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "texts": st.one_of(
        SENTENCES,
        SENTENCES.map(lambda text: f'He said: "{text}"'),
        SENTENCES.map(lambda text: f'"{text}" she said'),
        SENTENCES.map(lambda text: f"#{text}"),
    ),
    "category": st.sampled_from(["news", "sport", "arts"]),
    "number": st.integers(1, 500),
    "share": st.integers(1, 40).map(lambda value: value / 4 + 0.125),
    "truth": st.booleans(),
    "day": st.dates(date(2000, 1, 1), date(2030, 1, 1)).map(str),
    "duration": st.integers(1, 5000).map(lambda minutes: timedelta(minutes=minutes)),
}
NAMES = {
    "usual": dict(zip(VALUES, "text label n score flag date length".split(), strict=True)),
    "unusual": dict(zip(VALUES, "Kommentar Art Anzahl Anteil Wahr Tag Dauer".split(), strict=True)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], str]:
    others = draw(st.lists(st.sampled_from(list(VALUES)[1:]), unique=True, max_size=4))
    kinds = draw(st.permutations(["texts", *others]))
    n_rows = draw(st.integers(4, 12))
    columns = [(k, draw(st.lists(VALUES[k], min_size=n_rows, max_size=n_rows))) for k in kinds]
    return columns, draw(st.sampled_from(["usual", "unusual", "none"]))


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=20, deadline=None)
@given(made=tables())
def test_what_is_read_is_what_was_written_or_a_sentence_says_so(
    name: str, made: tuple[list[Column], str]
) -> None:
    columns, kind = made
    if name in HEADED and kind == "none":
        kind = "usual"
    names = None if kind == "none" else [NAMES[kind][what] for what, _ in columns]
    table = read_table(Source(name, WRITERS[name](names, columns)))
    rows = list(zip(*([as_text(v) for v in values] for _, values in columns), strict=True))
    read = rows_of(table)
    if names is not None and table.header != 0:
        assert (list(table.columns), read) == (names, rows)
    elif names is None and table.header == 0:
        assert read == rows
    elif names is None:  # the first row was taken for the header: that is said
        assert list(table.columns) == list(rows[0])
        assert any("It is not clear whether" in note for note in table.notes)
    else:  # the header was taken for a row: that is said, and nothing is lost
        assert kind == "unusual"
        assert read == [tuple(names), *rows]
        assert any("seems to name its columns" in note for note in table.notes)


# --- without a header ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentences",
    [
        ["I like tea.", "The cat sat on the mat.", "It rained."],
        ["Hello, you", "No comma", "One, two, three"],
        ["Hello, you", "Goodbye, me", "Well, well"],
        ["Good coffee", "The room was cold", "I shall come again"],
        ["404 people came to the party", "Nobody left"],
        ["What is it?", "A book; a good one", "A pen"],
        ["Yes", "No", "Maybe"],
        ["#blessed day", "#nofilter pic", "I like tea"],
        ["今日は雨が降っています。", "明日は晴れるでしょう。", "昨日は寒かったです。"],
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_the_first_of_a_column_of_sentences_is_kept(ending: str, sentences: list[str]) -> None:
    read = read_texts(Source(f"t{ending}", "\n".join(sentences).encode()))
    assert list(read.texts) == sentences
    assert not read.header_note
    (note,) = (note for note in read.notes if f"“{sentences[0]}”" in note)
    assert "choose line 1 as the header" in note


def test_a_person_may_choose_the_header() -> None:
    content = b"a note\nName,Words\nAda,Hello there\nBob,Good day\n"
    for header, columns, n_rows in ((2, ("Name", "Words"), 2), (3, ("Ada", "Hello there"), 1)):
        table = read_table(Source("t.csv", content, header))
        assert (table.columns, len(table), table.header) == (columns, n_rows, header)
        assert table.notes == ()
    table = read_table(Source("t.csv", b"text\nOne\nTwo\n", 0))
    assert (table.columns, rows_of(table)) == (("text",), [("text",), ("One",), ("Two",)])
    assert read_texts(Source("t.csv", b"Hello\nOne two three.\n", 1)).texts == ("One two three.",)
    workbook = as_excel(["a", "b"], [("texts", ["One", "Two"]), ("number", [1, 2])])
    assert rows_of(read_table(Source("t.xlsx", workbook, 0)))[0] == ("a", "b")
    assert read_table(Source("t.xlsx", workbook, 2)).columns == ("One", "1")
    for name, header, wrong, says in (
        ("t.csv", 9, content, "nothing in line 9"),
        ("t.csv", 2, b"a,b\n\n1,2\n", "nothing in line 2"),
        ("t.xlsx", 9, workbook, "nothing in row 9"),
        ("t.jsonl", 1, b'{"text": "One"}', "names its columns itself"),
    ):
        with pytest.raises(TextError, match=says):
            read_table(Source(name, wrong, header))
    with pytest.raises(TextError, match="plain text, not a table, so it has no header line"):
        read_texts(Source("t.txt", b"One\n", 1))


# --- lines before the header ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "separator", "line"),
    [
        ("sep=;\n", ";", 2),
        ("SEP=,\r\n", ",", 2),
        ('"sep=|"\n', "|", 2),
        ("sep=\t\n", "\t", 2),
        ("sep=^\n", "^", 2),
        ("sep=;\n\n", ";", 3),
        ("# exported on 1 May, by Ada, for Bob\n", ",", 2),
        ("# a comment\n#\n# another, with commas, in it\n", ";", 4),
        ("% written by a program\n", "\t", 2),
        ("Customer feedback\n\n", ",", 3),
        ("Customer feedback,,\nGenerated,2024-05-01,\n\n", ",", 4),
        ("Report: first, second\nQuarter 3\n", ";", 3),
        ("Report,Feedback\nCreated,2024-05-01\n\n", ",", 4),
        ("\n\n", ",", 3),
        ("\ufeffsep=;\n", ";", 2),
        ("#", "\t", 1),
        ("# ", ",", 1),
    ],
)
def test_lines_before_the_header_are_no_texts(before: str, separator: str, line: int) -> None:
    rows = [("id", "text", "kind"), ("1", "One; or more, so", "a"), ("2", "Two", "b")]
    rows.append(("3", "Three, and four", "a"))
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows(rows)
    table = read_table(Source("t.csv", (before + file.getvalue()).encode()))
    assert (table.columns, rows_of(table)) == (rows[0], rows[1:])
    assert table.header == line
    assert table.lines == [line + 1, line + 2, line + 3]
    is_known = before.strip("\ufeff\r\n#% ").lower().startswith(("sep", '"sep')) or line == 1
    assert bool(table.notes) == (not is_known and bool(before.strip()))


@pytest.mark.parametrize(
    "rows",
    [
        [*((f"#tag{n} word", "pos") for n in range(5)), ("normal", "neg"), ("other", "pos")],
        [("#tag word", "pos"), ("#day off", "neg"), ("normal", "neg"), ("value", "pos")],
        [("//cdn.x/y.png", "cat picture"), ("//cdn.x/z.png", "a dog"), ("http://x.y", "a cow")],
        [("% of people", "text"), ("10", "One river"), ("20", "Two houses"), ("30", "Three")],
        [("#1 fan", "3"), ("# 2 fan", "4"), ("a fan", "5")],
        [("#tag", "pos"), ("other", "neg"), ("more", "pos"), ("less", "neg")],
    ],
)
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_rows_that_begin_like_comments_are_rows(
    rows: list[tuple[str, str]], separator: str
) -> None:
    content = "\n".join(separator.join(row) for row in rows)
    table = read_table(Source("t.csv", content.encode()))
    read = rows_of(table) if table.header == 0 else [table.columns, *rows_of(table)]
    assert read == rows
    assert not any("comment" in note for note in table.notes)


@pytest.mark.parametrize(
    "cell", ["@." * 1500, "a@" * 1500 + ".", "a_" * 20_000 + "!", "[" + "1" * 20_000]
)
def test_long_cells_of_odd_signs_take_no_long_time(cell: str) -> None:
    content = f"my_name,my_text\n{cell},{cell} word\n{cell},{cell} word\n"
    assert read_texts(Source("t.csv", content.encode())).texts


@pytest.mark.parametrize("separator", [",", ";", "|"])
@pytest.mark.parametrize("names", [None, ("id", "text", "label")])
def test_blanks_before_quotation_marks_are_skipped_as_pandas_skips_them(
    separator: str, names: tuple[str, ...] | None
) -> None:
    s = separator
    lines = [f'1{s} "Hello{s} you"{s} a', f'2{s} "He said{s} ""so"""{s} b', f'3{s} "Bye"{s} a']
    content = "\n".join([*([f"{s} ".join(names)] if names else []), *lines])
    table = read_table(Source("t.csv", content.encode()))
    back = pd.read_csv(
        io.StringIO(content), sep=s, skipinitialspace=True, dtype=str, header=0 if names else None
    )
    cells = [tuple(cell.strip() for cell in row) for row in rows_of(table)]
    assert cells == list(back.itertuples(index=False, name=None))
    assert names is None or table.columns == names


@pytest.mark.parametrize("name", ["#id", "#tag", "# id"])
@pytest.mark.parametrize("other", ["text", "Satz"])
@pytest.mark.parametrize("first", ["1", "#1", "a"])
def test_a_header_may_begin_like_a_comment(name: str, other: str, first: str) -> None:
    rows = "".join(f"{first}{n},The river rose on day {n}.\n" for n in range(12))
    table = read_table(Source("t.csv", f"{name},{other}\n{rows}".encode()))
    assert [title.strip("# ") for title in table.columns] == [name.strip("# "), other]
    assert (len(table), table.header) == (12, 1)


# --- quotation marks between tabs ----------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        [("1", '"Stand up'), ("2", "Sit down"), ("3", 'A screen of 15"')],
        [("1", '"Yes" and "No"'), ("2", '"Never closed'), ("3", 'x"')],
        [('"Open', "1"), ('closed"', "2")],
        [("1", '5" wide'), ("2", 'he said ""so""')],
        [("1", '"quoted" too early'), ("2", "Two")],
        [("1", '"'), ("2", '"""'), ("3", "Three")],
    ],
)
def test_a_mark_that_encloses_no_field_between_tabs_is_text(rows: list[tuple[str, str]]) -> None:
    content = "\n".join("\t".join(row) for row in [("id", "text"), *rows])
    assert rows_of(read_table(Source("t.tsv", content.encode()))) == rows
    assert rows_of(read_table(Source("t.csv", content.encode()))) == rows


def test_a_field_of_several_lines_between_tabs_is_one_in_quotation_marks() -> None:
    rows = [("1", "One\nand two", "a"), ("2", 'He said "so"', "b"), ("3", "Three\t\nx", "c")]
    content = delimited("\t")(["id", "text", "kind"], [("", c) for c in zip(*rows, strict=True)])
    table = read_table(Source("t.tsv", content))
    assert (rows_of(table), table.notes) == (rows, ())


@pytest.mark.parametrize(
    ("lines", "more", "n_notes"),
    [
        (['"Hello she said', "plain row\t2", 'Good bye sir"', "last\t4"], "", 1),
        (['"Hello she said', "plain row", 'Good bye sir"', "last"], "", 1),
        (["plain row", '"Hello she said', '"Yes" and no', "last"], '\n"So, ""it"" is"', 0),
    ],
)
def test_rows_between_marks_that_enclose_no_field_are_not_joined(
    lines: list[str], more: str, n_notes: int
) -> None:
    has_labels = any("\t" in line for line in lines)
    content = "\n".join(["text\tlabel" if has_labels else "text", *lines]) + more
    table = read_table(Source("t.tsv", content.encode()))
    cells = [tuple([*line.split("\t"), ""][: 1 + has_labels]) for line in lines]
    assert rows_of(table) == [*cells, *([('So, "it" is',)] if more else [])]
    assert len(table.notes) == n_notes
