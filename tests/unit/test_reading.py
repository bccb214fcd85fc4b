"""Texts from files and from what was pasted."""

from __future__ import annotations

import pytest

from neuralviz.corpus.reading import join_pasted, read_texts, split_pasted
from neuralviz.errors import TextError


@pytest.mark.parametrize(
    ("mode", "texts"),
    [
        ("line", ("One", "two", "three")),
        ("blank line", ("One\ntwo", "three")),
        ("one", ("One\ntwo\n \nthree",)),
    ],
)
def test_pasted_texts_are_split_as_asked(mode: str, texts: tuple[str, ...]) -> None:
    assert split_pasted("  One\r\ntwo\n \nthree\n\n", mode).texts == texts


@pytest.mark.parametrize("mode", ["line", "blank line", "one"])
@pytest.mark.parametrize("text", ["", " \n\t\n ", "\n\n\n"])
def test_nothing_pasted_gives_nothing(text: str, mode: str) -> None:
    read = split_pasted(text, mode)
    assert (read.texts, read.notes) == ((), ())


def test_control_characters_and_surrogates_become_blanks() -> None:
    read = split_pasted("a\x00b\ud800c\n\x07\n<script>\n🙂\nשלום", "line")
    assert read.texts == ("a b c", "<script>", "🙂", "שלום")
    assert read.notes == ("3 unreadable characters were replaced by blanks.",)


@pytest.mark.parametrize(
    "texts", [[], ["a"], ["a", "b"], ["a\nb", "c"], ["a\n\nb"], ["a\nb", "c\nd\ne"]]
)
def test_what_was_pasted_can_be_pasted_again(texts: list[str]) -> None:
    assert list(split_pasted(*join_pasted(texts)).texts) == texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_encodings_are_recognised(encoding: str) -> None:
    read = read_texts("a.txt", "Ein Öltröpfchen.\r\n\r\nDéjà vu.".encode(encoding))
    assert read.texts == ("Ein Öltröpfchen.", "Déjà vu.")
    assert ("Windows-1252" in "".join(read.notes)) == (encoding == "cp1252")


def test_a_table_gives_texts_ids_and_its_columns() -> None:
    read = read_texts("a.csv", b'id,label,Text\n1,x,"Hello, you"\n2,y, \n3,z,NA\n')
    assert read.texts == ("Hello, you", "NA")
    assert read.ids == ("1", "3")
    assert (read.column, read.columns) == ("Text", ("id", "label", "Text"))
    assert read.notes == ("1 row without text left out.",)


def test_the_column_may_be_chosen_and_is_else_the_one_with_the_longest_texts() -> None:
    content = b"kind;words;score\nshort;a rather long text;1\nshort;another one;2\n"
    assert read_texts("a.csv", content).column == "words"
    assert read_texts("a.csv", content, "kind").texts == ("short", "short")
    with pytest.raises(TextError, match="“kind”, “words”, “score”"):
        read_texts("a.csv", content, "text")


def test_one_column_may_hold_commas() -> None:
    read = read_texts("a.csv", b"text\nHello, you, there\nNo comma\n")
    assert (read.texts, read.ids) == (("Hello, you, there", "No comma"), None)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b"\n \n", "is empty"),
        ("a.csv", b"text\n \n", "no text"),
        ("a.csv", b"a,b\n1,2\n1,2,3,4\n", "not a table"),
        ("a.txt", bytes(range(256)) * 20, "does not look like text"),
    ],
)
def test_unusable_files_are_refused_with_a_sentence(
    name: str, content: bytes, sentence: str
) -> None:
    with pytest.raises(TextError, match=sentence):
        read_texts(name, content)


def test_a_text_file_has_no_columns() -> None:
    with pytest.raises(TextError, match="not a CSV file"):
        read_texts("a.txt", b"a", "text")
