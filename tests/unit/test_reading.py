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


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]
)
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


def test_rows_with_too_many_fields_are_left_out_and_named() -> None:
    """A text is never cut at its commas."""
    content = b"id,text\n1,hello, world of texts\n\n2,bye\n3,bye, all\n"
    read = read_texts("a.csv", content)
    assert (read.texts, read.ids) == (("bye",), ("2",))
    assert read.notes == (
        "2 rows were left out for more fields than the first line has (line 2, 5); put texts that "
        "contain “,” in quotation marks.",
    )
    with pytest.raises(TextError, match="put texts that contain “,” in quotation marks"):
        read_texts("a.csv", b"id,text\n1,hello, world of texts\n2,bye, all\n")
    many = b"a,b\n1,two\n" + b"1,2,3\n" * 7
    assert "(line 3, 4, 5, 6, 7 …)" in read_texts("a.csv", many).notes[0]


def test_fields_may_be_missing_or_empty_at_the_end_and_names_may_repeat() -> None:
    read = read_texts("a.csv", b"text,label,,label\r\none,x,,,\r\ntwo\r\n")
    assert (read.texts, read.notes) == (("one", "two"), ())
    assert read.columns == ("text", "label", "column 3", "label (4)")


def test_a_long_text_in_a_table() -> None:
    assert len(read_texts("a.csv", b'id,text\n1,"' + b"a, b " * 100_000 + b'"\n').texts[0]) > 4e5


@pytest.mark.parametrize("content", [b"A dog\0 barks.\nA cat.\n", b"A dog\0 barks.\nA cat."])
def test_a_zero_byte_makes_no_chinese(content: bytes) -> None:
    read = read_texts("a.txt", content)
    assert read.texts == ("A dog  barks.", "A cat.")
    assert read.notes == ("1 unreadable character was replaced by blanks.",)


def test_lines_end_where_pasted_lines_end() -> None:
    text = "One\u2028still one\x85\nTwo\rthree\r\nfour\n\n"
    read = read_texts("a.txt", text.encode())
    assert read.texts == split_pasted(text).texts == ("One\u2028still one", "Two", "three", "four")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b"\n \n", "is empty"),
        ("a.csv", b"text\n \n", "no text"),
        ("a.csv", b"\xef\xbb\xbf\n", "no text"),
        ("a.csv", b"a,b\n1,2,3,4\n", "not a table.* put texts that contain “,” in quotation"),
        ("a.csv", b'a,b\n1,2\n1,"open\n3,4\n', "not a table.* quotation marks from line 3 on"),
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


def test_a_table_without_a_column_of_texts_is_refused() -> None:
    with pytest.raises(TextError, match="no column of texts: there is no word in “x”, “y”"):
        read_texts("t.csv", b"x,y\n1,2.5\n3,1e5\n")
    assert read_texts("t.csv", b"x,y\n1,two\n3,four\n").column == "y"
    assert read_texts("t.csv", b"x,text\n1,2\n3,4\n").texts == ("2", "4")
