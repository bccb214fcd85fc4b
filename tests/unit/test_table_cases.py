"""Small files as people have them: what is read of each, and what is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuralviz.errors import TextError
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import read_texts

# content, rows with the names of the columns first (None where no line names them), part of a note
TABLES: dict[str, tuple[str, list[Any], str]] = {
    "marks inside a field": (
        'a,b\n5" wide,he said "no"\n "x",y\n',
        [("a", "b"), ('5" wide', 'he said "no"'), (' "x"', "y")],
        "not clear",
    ),
    "no word means something else": (
        "1,007,1e3\nNA,null,2024-01-01\nTRUE,nan,1_000\n",
        [("1", "007", "1e3"), ("NA", "null", "2024-01-01"), ("TRUE", "nan", "1_000")],
        "not clear",
    ),
    "empty marks at the end": ('id,text\n1,One,""\n', [("id", "text"), ("1", "One")], ""),
    "names are made unique": (
        "a (3),a,a,\nOne,2,3,4\n",
        [("a (3)", "a", "a (3) (3)", "column 4"), ("One", "2", "3", "4")],
        "",
    ),
    "a separator named, no header": (
        "sep=;\n1;Oil, and gas\n2;A vote, and so on\n",
        [None, ("1", "Oil, and gas"), ("2", "A vote, and so on")],
        "read as data",
    ),
    "commas of numbers": (
        "1,5;gut\n2,5;schlecht\n3,1;gut\n",
        [None, ("1,5", "gut"), ("2,5", "schlecht"), ("3,1", "gut")],
        "read as data",
    ),
    "blanks behind separators": (
        "1, One river, a\n2, Two, b\n3, Three, a\n",
        [None, ("1", "One river", "a"), ("2", "Two", "b"), ("3", "Three", "a")],
        "read as data",
    ),
    "marks that may enclose rows": (
        'id\ttext\n1\t"Stand up\n2\tSit down\n3\tA screen of 15"\n',
        [("id", "text"), ("1", '"Stand up'), ("2", "Sit down"), ("3", 'A screen of 15"')],
        "as text in 1 row, not as enclosing several lines (line 2)",
    ),
    "comments above rows like them": (
        "# written on 1 May\n#tag word,pos\n#day off,neg\na fan,neg\na foe,pos\n",
        [None, ("#tag word", "pos"), ("#day off", "neg"), ("a fan", "neg"), ("a foe", "pos")],
        "Skipped 1 comment line at the head of t.csv.",
    ),
    "fields missing or empty at the end": (
        "text,label,,label\r\none,x,,,\r\ntwo\r\n",
        [("text", "label", "column 3", "label (4)"), ("one", "x", "", ""), ("two", "", "", "")],
        "",
    ),
    "numbers of rows as R writes them": (
        '"text","label"\n"1","One river","a"\n"2","Two, or so","b"\n',
        [("column 1", "text", "label"), ("1", "One river", "a"), ("2", "Two, or so", "b")],
        "",
    ),
    "files put together": (
        "text,label\nOne river,a\ntext,label\nTwo rivers,b\n",
        [("text", "label"), ("One river", "a"), ("Two rivers", "b")],
        "Skipped 1 row of t.csv like the header (line 3).",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_read_as_it_was_meant(case: str) -> None:
    content, (titles, *rows), note = TABLES[case]
    table = read_table(Source("t.csv", content.encode()))
    read = [tuple(map(str.strip, row)) for row in zip(*table.values, strict=True)]
    assert read == [tuple(map(str.strip, row)) for row in rows]
    if titles is None:
        assert table.header == 0
    else:
        assert table.columns == titles
    assert (note in " ".join(table.notes)) if note else table.notes == ()


# name, content, texts, labels (None for any), part of a note
TEXTS: dict[str, tuple[str, str, list[str], dict[str, tuple[str, ...]] | None, str]] = {
    "no header": (
        "a.csv",
        '3,"Oil rises","Prices rose, again."\n1,"Vote","They voted."\n2,"Cup","They won."\n',
        ["Prices rose, again.", "They voted.", "They won."],
        {"column 1": ("3", "1", "2"), "column 2": ("Oil rises", "Vote", "Cup")},
        "choose line 1 as the header",
    ),
    "no header, between tabs": (
        "a.tsv",
        "ham\tGo until jurong point\nspam\tFree entry in 2 a wkly comp\nham\tU dun say so\n",
        ["Go until jurong point", "Free entry in 2 a wkly comp", "U dun say so"],
        {"column 1": ("ham", "spam", "ham")},
        "read as data",
    ),
    "questions for names": (
        "a.csv",
        "Timestamp,What did you like about it?,How old are you?\n"
        "2024-05-01 10:00,The pictures.,20\n2024-05-01 11:00,I liked the talks a lot.,30\n"
        "2024-05-02 09:30,Everything!,20\n",
        ["The pictures.", "I liked the talks a lot.", "Everything!"],
        None,
        "",
    ),
    "one column with commas": (
        "a.csv",
        "Review\n" + "".join(f"The river rose,it fell on day {day}\n" for day in range(9)),
        [f"The river rose,it fell on day {day}" for day in range(9)],
        {},
        "",
    ),
    "a title above rows without names": (
        "a.csv",
        "Report\n" + "".join(f"{n},Prices rose on day {n}.\n" for n in range(1, 7)),
        [f"Prices rose on day {n}." for n in range(1, 7)],
        {"column 1": tuple("123456")},
        "line 1 was read as data: “Report”",
    ),
    "sentences with quotations": (
        "a.csv",
        'He said, "Hello, you", and left\nShe said, "Bye", and went\nI, "So, so", stayed\n',
        ['He said, "Hello, you", and left', 'She said, "Bye", and went', 'I, "So, so", stayed'],
        {},
        "read as data",
    ),
    "a single line": ("a.csv", "Hello, and so on.", ["Hello, and so on."], {}, "read as data"),
    "descriptions, not titles": (
        "a.csv",
        "Class Index,Title,Description\n3,Oil,Prices rose.\n1,Vote,They voted.\n",
        ["Prices rose.", "They voted."],
        {"Class Index": ("3", "1"), "Title": ("Oil", "Vote")},
        "",
    ),
    "columns named like ours": (
        "a.csv",
        "text,vector,x,cluster\nOne,1,2,4\nTwo,,,\n",
        ["One", "Two"],
        {"vector": ("1", ""), "x": ("2", ""), "cluster": ("4", "")},
        "",
    ),
    "a blank column of a usual name": (
        "a.csv",
        "text,body\n,One\n,Two\n",
        ["One", "Two"],
        None,
        "",
    ),
    "characters without width": (
        "a.csv",
        "id,text\na,\u200b\nb,fine\nc,e\u0301\u200d\n",
        ["fine", "e\u0301\u200d"],
        {"id": ("b", "c")},
        "Skipped 1 row without a text.",
    ),
    "a text of half a million characters": (
        "a.csv",
        'id,text\n1,"' + "a, b " * 100_000 + '"\n',
        [("a, b " * 100_000).strip()],
        None,
        "The longest text has 499,999 characters (line 2).",
    ),
    "remarks below a table": (
        "a.csv",
        "label,text\na,The text of one.\nb,The text of two.\n\nSource: the office,\n",
        ["The text of one.", "The text of two."],
        {"label": ("a", "b")},
        "Skipped 1 row without a text.",
    ),
    "deleted on Reddit": (
        "a.jsonl",
        '{"body": "[deleted]"}\n{"body": "I like this river."}\n{"body": "[removed]"}\n',
        ["I like this river."],
        {},
        "Read “[deleted]” or “[removed]” as no text (2 rows).",
    ),
    "unreadable labels": (
        "a.jsonl",
        '{"text": "One", "label": " a\\u0000\\ud800b "}\n',
        ["One"],
        {"label": ("a  b",)},
        "",
    ),
    "no clear text in a value": (
        "a.jsonl",
        '{"text": {"en": "One", "de": "Eins"}}\n{"text": "Two"}\n',
        ['{"en": "One", "de": "Eins"}', "Two"],
        {},
        "Read 1 nested value without a clear text in the column “text” as written",
    ),
    "brackets that are no lists": (
        "a.jsonl",
        '"[Music] Hello."\n"{sic}"\n"[1"\n"[laughs]"\n',
        ["[Music] Hello.", "{sic}", "[1", "[laughs]"],
        {},
        "",
    ),
    "lists as numpy prints them": (
        "a.csv",
        f'text\n"{np.array(["One river.", "Two, they said."], dtype=object)}"\n',
        ["One river. Two, they said."],
        {},
        "",
    ),
    "short lists of whole numbers": (
        "a.csv",
        "text,hot\n" + "".join(f"The text {n} of all.,[{n % 2} {1 - n % 2}]\n" for n in range(8)),
        [f"The text {n} of all." for n in range(8)],
        {"hot": ("[0 1]", "[1 0]") * 4},
        "",
    ),
    "a replacement character": (
        "a.txt",
        "lost: \ufffd\nfound\n",
        ["lost: \ufffd", "found"],
        {},
        "",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_and_labels_are_told(case: str) -> None:
    name, content, texts, labels, note = TEXTS[case]
    read = read_texts(Source(name, content.encode()))
    assert list(read.texts) == texts
    assert labels is None or dict(read.labels) == labels
    notes = " ".join(read.notes)
    assert note in notes if note else not read.notes or "Took the text" in notes


def test_ids_and_chosen_columns() -> None:
    content = b'id,key,Text\n1,k1,"Hello, you"\n2,k2, \n3,k3,N. A.\n'
    read = read_texts(Source("a.csv", content))
    assert (read.texts, read.ids, read.column) == (("Hello, you", "N. A."), ("1", "3"), "Text")
    assert read_texts(Source("a.csv", content), id_column="key").ids == ("k1", "k3")
    with pytest.raises(TextError, match=r"no column “nr”\. Its columns are: “id”, “key”, “Text”"):
        read_texts(Source("a.csv", content), id_column="nr")
    with pytest.raises(TextError, match="not a table, so it has no column “key”"):
        read_texts(Source("a.txt", b"a"), id_column="key")


def test_lines_before_the_header_are_counted_from_the_first() -> None:
    table = read_table(Source("t.csv", b'#\n"""",""text\n x y z1'))
    assert table.notes[0].startswith("Skipped 2 lines before the header of t.csv, line 3")
