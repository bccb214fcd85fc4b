"""Texts from files and from what was pasted."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas._libs.parsers import STR_NA_VALUES

from neuralviz.errors import TextError
from neuralviz.reading import source, texts
from neuralviz.reading.source import Source
from neuralviz.reading.table import MISSING
from neuralviz.reading.texts import (
    ReadTexts,
    join_pasted,
    read_files,
    read_folder,
    read_texts,
    split_pasted,
)


@pytest.mark.parametrize(
    ("mode", "texts"),
    [
        ("line", ("One", "two", "three")),
        ("blank line", ("One\ntwo", "three")),
        ("one", ("One\ntwo\n \n\nthree",)),
    ],
)
def test_texts_are_split_as_asked(mode: str, texts: tuple[str, ...], tmp_path: Path) -> None:
    content = b"\n  One\r\ntwo\n \n\nthree\n\n"
    (tmp_path / "a.txt").write_bytes(content)
    assert split_pasted(content.decode(), mode).texts == texts
    assert split_pasted(" \n\t\n ", mode) == ReadTexts(())
    assert read_texts(Source("a.txt", content), mode=mode).texts == texts
    assert read_texts(Source("a.txt", tmp_path / "a.txt"), mode=mode).texts == texts


@pytest.mark.parametrize(
    "cells",
    [
        ["one", "two\nlines", "three"],
        ['He said "yes"\nand left.\n\n"Why?"', "two"],
        ["blanks at the end \nof a line within a cell", "two"],
        ['ends in a mark\nhere: "', '"\nbegins with one'],
    ],
)
def test_a_cell_of_several_lines_copied_from_a_spreadsheet_is_one_text(cells: list[str]) -> None:
    copied = io.StringIO()
    for cell in cells:  # a spreadsheet quotes those with line breaks alone
        quoting = csv.QUOTE_ALL if "\n" in cell else csv.QUOTE_NONE
        csv.writer(copied, "excel-tab", quoting=quoting, quotechar='"').writerow([cell])
    read = split_pasted(copied.getvalue(), "line")
    assert read.texts == tuple(cells)
    assert "quoted cell" in read.notes[0]


@pytest.mark.parametrize(
    "prose",
    [
        '"Come in," she said.\nHe did.\n"Sit down."',
        '"A quotation that is never closed.\nThe next line.',
        '"One paragraph.\n"The next one of the same speech."',
        '"Quoted"\n"Quoted, too"',
        'She said "yes\nand no".',
        '"Open\nline with "marks" inside\nclosed"',
    ],
)
def test_a_line_that_begins_with_a_quotation_mark_is_a_text(prose: str) -> None:
    read = split_pasted(prose, "line")
    assert read.texts == tuple(line for line in prose.split("\n") if line)
    assert read.notes == ()


def test_control_characters_and_surrogates_become_blanks() -> None:
    read = split_pasted("a\x00b\ud800c\n\x07\n<script>\n🙂\nשלום", "line")
    assert read.texts == ("a b c", "<script>", "🙂", "שלום")
    assert read.notes == ("Replaced 3 unreadable characters with spaces.",)


@pytest.mark.parametrize(
    "texts", [[], ["a"], ["a", "b"], ["a\nb", "c"], ["a\n\nb"], ["a\nb", "c\nd\ne"], ['"a', 'b"']]
)
def test_what_was_pasted_can_be_pasted_again(texts: list[str]) -> None:
    assert list(split_pasted(*join_pasted(texts)).texts) == texts


def test_the_column_may_be_chosen_and_is_else_the_one_with_the_longest_texts() -> None:
    content = b"kind;words;score\nshort;a rather long text;1\nshort;another one;2\n"
    assert read_texts(Source("a.csv", content)).column == "words"
    assert read_texts(Source("a.csv", content), "kind").texts == ("short", "short")
    with pytest.raises(TextError, match="“kind”, “words”, “score”"):
        read_texts(Source("a.csv", content), "text")


@pytest.mark.parametrize(
    ("content", "column"),
    [
        ("review,said\n1,The river rose today.\n2,It fell again.\n", "said"),
        ("comment,said\nyes,The river rose today.\nno,It fell again.\n", "said"),
        ("title,said\nA,The river rose today.\n", "said"),
        ("text,said\n" + "".join(f"Very good,The river rose {n} m.\n" for n in "12345"), "said"),
        ("title,review\nThe river,It rose again today.\nA book,I liked it a lot.\n", "review"),
        ("text,category\npizza,Food and drink items\ncello,Food and drink items\n", "text"),
        ("text,note\nGood coffee,A friend of mine said so.\nOld tea,Nobody knew why.\n", "text"),
        ("text,label\nriver,a\nbread,b\n", "text"),
        ("题目,text\n一,今天下雨了。\n二,明天天晴。\n", "text"),
        ("text,正文\n1,今天下雨了，我们在家。\n2,明天天晴，我们出去。\n", "正文"),
        ("text,date\n1,Mon Apr 06 22:19:45 PDT 2009\n2,Tue Apr 07 01:00:00 PDT 2009\n", "date"),
        ("text,n\n1,2\n3,4\n", "text"),
        ("x,y\n1,two\n3,four\n", "y"),
    ],
)
def test_the_texts_are_told_by_what_is_in_the_columns(content: str, column: str) -> None:
    assert read_texts(Source("a.csv", content.encode())).column == column


def test_a_word_that_is_in_every_row_is_no_text() -> None:
    features = [{"type": "Feature", "of": {"name": f"River {n}"}} for n in range(4)]
    with pytest.raises(TextError, match="no words, or the same in every row"):
        read_texts(Source("a.json", json.dumps({"features": features}).encode()))


def test_words_for_missing_values_are_those_of_pandas() -> None:
    words = sorted(MISSING)
    assert words == sorted(word for word in STR_NA_VALUES if word)
    texts, moods = ["The river rose.", *words, "It fell."], ["fine", *words, "not so good"]
    content = pd.DataFrame({"text": texts, "mood": moods}).to_csv(index=False)
    assert pd.read_csv(io.StringIO(content))["text"].isna().sum() == len(words)
    read = read_texts(Source("a.csv", content.encode()))
    assert read.texts == ("The river rose.", "It fell.")
    notes = " ".join(read.notes)
    assert f"Skipped {len(words)} rows without a text" in notes
    assert f"in the column “mood” as missing ({len(words)} rows)" in notes
    assert read_texts(Source("a.csv", content.encode()), "mood").texts == ("fine", "not so good")


def test_a_code_that_looks_like_a_missing_value_is_one() -> None:
    content = (
        "text,country,mood,region,note\nThe river rose.,NA,None,NA,None\n"
        "It fell.,DE,Mild,EMEA,so so\nIt rose.,FR,Severe,EU,fine\n"
    )
    read = read_texts(Source("a.csv", content.encode()))
    assert read.labels == {
        "country": ("NA", "DE", "FR"),
        "mood": ("None", "Mild", "Severe"),
        "region": ("NA", "EMEA", "EU"),
        "note": ("", "so so", "fine"),
    }
    as_value = "as a value, like the others."
    assert read.notes == (
        f"Read “NA” in the column “country” {as_value}",
        f"Read “None” in the column “mood” {as_value}",
        f"Read “NA” in the column “region” {as_value}",
        "Read “None” in the column “note” as missing (1 row).",
    )
    rows = [{"text": "None", "label": "NA"}, {"text": "A dog.", "label": "+"}]
    typed = read_texts(Source("a.json", json.dumps(rows).encode()))
    assert (typed.texts, typed.labels["label"]) == (("None", "A dog."), ("NA", "+"))
    signs = read_texts(Source("a.csv", b"text,mood\nI like it.,+\nI do not.,-\n"))
    assert signs.labels == {"mood": ("+", "-")}


@pytest.mark.parametrize(
    "line", ["\x1b[32mok\x1b[0m", "\x1b[1;31mE\x1b[0m \x1b[2K", "ring\a\a", "a\x01b\x02c\x03d"]
)
@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_a_few_control_characters_make_no_binary(line: str, name: str) -> None:
    texts = read_texts(Source(name, f"text\n{line} and so on\n{line}\n".encode())).texts
    assert len(texts) == (3 if name == "a.txt" else 2)
    assert texts[-2].endswith("and so on")


SRT = """1\r
00:00:01,000 --> 00:00:04,000\r
Hello there,\r
<i>my friend</i>.\r
\r
2\r
00:00:05,000 --> 00:00:07,000\r
1984\r
"""
VTT = """WEBVTT - a film

NOTE nobody reads this

00:01.000 --> 00:04.000 align:start
Hello there,
<v Bob>my friend</v>.

second
01:00:05.000 --> 01:00:07.000
1984
"""
SUBTITLES = ("Hello there, my friend.", "1984")


@pytest.mark.parametrize(
    ("name", "content", "texts", "says"),
    [
        ("a.srt", SRT, SUBTITLES, "holds subtitles"),
        ("a.srt", SRT.replace(".\r\n\r", ".\r"), SUBTITLES, "holds subtitles"),
        ("a.vtt", VTT, SUBTITLES, "holds subtitles"),
        ("a.txt", VTT.replace("NOTE", "STYLE\n::cue {\n}\n\nNOTE"), SUBTITLES, "holds subtitles"),
        ("a.vtt", VTT.replace("\n\nsecond", ""), SUBTITLES, "holds subtitles"),
        ("a.txt", "One, two\nThree --> four\n", ("One, two", "Three --> four"), ""),
        ("a.txt", "{One}\n[Two]\n\tThree\tand\n", ("{One}", "[Two]", "Three\tand"), ""),
    ],
)
def test_plain_text_of_another_kind_is_named(
    name: str, content: str, texts: tuple[str, ...], says: str
) -> None:
    read = read_texts(Source(name, content.encode()))
    assert read.texts == texts
    assert (says in " ".join(read.notes)) if says else not read.notes


def test_rows_that_describe_their_columns_are_no_data() -> None:
    rows = [[f"R_{n}", str(n), f"An answer of {n} words."] for n in range(5)]
    codes = [json.dumps({"ImportId": f"QID{n}"}) for n in range(3)]
    qualtrics = [["ResponseId", "Q1", "Q2"], ["Response ID", "Your age?", "Your day?"], codes]
    monkey = [["Respondent ID", "Your age?", "Your day?"], ["", "Response", "Open-Ended Response"]]
    for n_skipped, head in ((2, qualtrics), (1, monkey)):
        content = pd.DataFrame([*head, *rows]).to_csv(index=False, header=False).encode()
        frame = pd.read_csv(io.BytesIO(content), skiprows=range(1, n_skipped + 1), dtype=str)
        read = read_texts(Source("survey.csv", content))
        assert list(read.texts) == list(frame.iloc[:, 2])
        assert list(read.labels[read.columns[0]]) == list(frame.iloc[:, 0])
        assert f"Skipped {n_skipped} row" in " ".join(read.notes)
    plain = pd.DataFrame([["id", "text"], *(row[1:] for row in rows)])
    read = read_texts(Source("plain.csv", plain.to_csv(index=False, header=False).encode()))
    assert (len(read.texts), read.notes) == (5, ())


def test_columns_of_vectors_are_neither_texts_nor_labels() -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"text": [f"The text {n} of all." for n in range(5)], "topic": list("ababa")}
    )
    lists = [draw.normal(size=8).round(4).tolist() for _ in range(5)]
    frame["vector"] = [json.dumps(one) for one in lists]
    frame["as numpy prints"] = [str(np.array(one)) for one in lists]
    frame["as PostgreSQL writes"] = [f"{{{','.join(map(str, one))}}}" for one in lists]
    frame["of several lengths"] = [json.dumps(one[: n + 1]) for n, one in enumerate(lists)]
    read = read_texts(Source("out.csv", frame.to_csv(index=False).encode()))
    assert read.texts == tuple(frame["text"])
    assert set(read.labels) == {"topic", "of several lengths"}
    for title in ("vector", "as numpy prints", "as PostgreSQL writes"):
        assert f"Skipped the lists of numbers in the column “{title}”." in read.notes
    with pytest.raises(TextError, match=r"contains no text\. Skipped the lists of numbers"):
        read_texts(Source("v.csv", frame[["vector"]].to_csv(index=False).encode()))


def test_ids_are_made_unique() -> None:
    rows = "a,A\na,B\na (2),C\n,D\n1,E\na,F\n,G\n"
    read = read_texts(Source("a.csv", f"id,text\n{rows}".encode()))
    assert read.ids == ("a", "a (3)", "a (2)", "2", "1", "a (4)", "3")
    assert read.labels["id"] == ("a", "a", "a (2)", "", "1", "a", "")
    assert read.notes == (
        "Added a number in brackets to 2 duplicate IDs.",
        "Numbered 2 texts without an ID.",
    )
    assert read_texts(Source("a.csv", b"id,text\n,One\n,Two\n")).ids is None


@pytest.mark.parametrize("mode", ["line", "blank line", "one"])
def test_texts_that_are_far_too_long_are_left_out_and_named(mode: str) -> None:
    long = "word " * 200_001
    content = f"One\n\n{long}\n\nTwo\n".encode()
    if mode == "one":
        with pytest.raises(TextError, match="more than 1,000,000 characters"):
            read_texts(Source("a.txt", content), mode=mode)
    else:
        read = read_texts(Source("a.txt", content), mode=mode)
        assert read.texts == ("One", "Two")
        assert "Skipped 1 text with more than 1,000,000 characters (line 3)." in read.notes
    read = read_texts(Source("a.csv", f"id,text\n1,One\n2,{long}\n3,Two\n".encode()))
    assert (read.texts, read.ids) == (("One", "Two"), ("1", "3"))
    assert "Skipped 1 text with more than 1,000,000 characters (line 3)." in read.notes


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE", 1 << 16)
    for name in ("a.csv", "a.txt", "a.jsonl"):
        with pytest.raises(TextError, match=r"Line 2 of a\..* has more than 65,536 characters"):
            read_texts(Source(name, b"text\n" + b"a" * (1 << 17)))


# --- folders -----------------------------------------------------------------------------------


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_a_folder_of_texts_is_a_text_a_file(tmp_path: Path) -> None:
    files = {"b/two.txt": "Two\n\nin two paragraphs.\n", "a/one.md": "One", "zero": "No ending"}
    folder = write(tmp_path, {**files, "a/deep/er.txt": "Deeper"})
    read = read_folder(folder)
    assert read.texts == ("Deeper", "One", "Two\n\nin two paragraphs.", "No ending")
    assert read.labels == {
        "file": ("a/deep/er.txt", "a/one.md", "b/two.txt", "zero"),
        "folder": ("a/deep", "a", "b", ""),
    }
    assert (read.ids, read.column, read.notes) == (None, None, ())
    assert len(read_folder(folder, mode="line").texts) == 5
    assert set(read_folder(folder / "a" / "deep").labels) == {"file"}


def test_tables_in_a_folder_are_put_one_below_the_other(tmp_path: Path, monkeypatch) -> None:
    table = "id,text,file\n1,One,theirs\n2,Two,theirs\n"
    rows = '{"sentence": "Three", "tone": "calm", "id": 1}\n'
    folder = write(tmp_path, {"1.csv": table, "2.jsonl": rows, "3.txt": "Four"})
    read = read_folder(folder)
    assert read.texts == ("One", "Two", "Three", "Four")
    assert read.columns == ("id", "text", "file", "sentence", "tone")
    assert read.ids == ("1", "2", "1 (2)", "3")
    assert dict(read.labels) == {
        "id": ("1", "2", "1", ""),
        "file": ("theirs", "theirs", "", ""),
        "tone": ("", "", "calm", ""),
        "file (2)": ("1.csv", "1.csv", "2.jsonl", "3.txt"),
    }
    monkeypatch.setattr(texts, "MAX_FILES", 2)
    with pytest.raises(TextError, match=r"has more than 2 files\. Choose a folder inside it"):
        read_folder(folder)
    monkeypatch.undo()
    with pytest.raises(TextError, match="No such folder"):
        read_folder(folder / "nowhere")
    chosen = read_folder(folder, "text")
    assert chosen.texts == ("One", "Two", "Four")
    assert "2.jsonl has no column “text”" in chosen.notes[0]
    some = read_folder(folder, max_texts=2)
    assert some.texts == ("One", "Two")
    assert some.notes[-1] == "Limited to the first 2 texts. There are more files."


def test_what_cannot_be_read_in_a_folder_is_named(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": "Secret"})
    hidden = {".hidden.txt": "Hidden", ".git/config": "Hidden", "picture.png": b"\x89PNG"}
    broken = {"binary.csv": bytes(range(256)) * 9, "empty.txt": b""}
    folder = write(tmp_path / "inside", {"text.txt": "A text", **hidden, **broken})
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "links").symlink_to(outside)
    (folder / "circle.txt").symlink_to(folder / "circle.txt")
    (folder / "twice.txt").symlink_to(folder / "text.txt")
    read = read_folder(folder)
    assert read.texts == ("A text", "A text")
    assert read.labels["file"] == ("text.txt", "twice.txt")
    assert read.notes == (
        "Skipped .git: hidden.",
        "Skipped .hidden.txt: hidden.",
        "Skipped circle.txt: link to a folder, or out of this one.",
        "Skipped link.txt: link to a folder, or out of this one.",
        "Skipped links: link to a folder, or out of this one.",
        "And 3 more like this.",
    )


def test_files_that_were_given_are_read_in_their_order() -> None:
    read = read_files(
        [Source("b.txt", b"One"), Source("a.csv", b"text,n\nTwo,2\n"), Source("c.txt", b"")]
    )
    assert read.texts == ("One", "Two")
    assert dict(read.labels) == {"n": ("", "2"), "file": ("b.txt", "a.csv")}
    assert read.notes == ("c.txt is empty.",)
    with pytest.raises(TextError, match=r"No text found in these files. c\.txt is empty"):
        read_files([Source("c.txt", b"")])
    short = Source("a.csv", b"text,n\nTwo,2\n", header=9)
    (note,) = read_files([Source("b.txt", b"One"), short]).notes
    assert "a.csv" in note


def test_a_text_that_is_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.write(b"a\n" * (1 << 23))  # as much as the encoding is told by
        file.truncate(1 << 40)  # a hole, in which no line ends
    with pytest.raises(TextError, match="with more than 1,000,000 characters"):
        read_texts(Source("a.txt", path), mode="one")
