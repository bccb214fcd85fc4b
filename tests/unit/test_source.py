"""A source is known by its name and by what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuralviz.errors import TextError
from neuralviz.reading.source import Source


@pytest.mark.parametrize(
    ("name", "ending", "is_table"),
    [
        ("a.CSV", ".csv", True),
        ("a.b.xlsx", ".xlsx", True),
        ("a.txt", ".txt", False),
        ("csv", "", False),
        ("", "", False),
    ],
)
def test_the_ending_says_what_it_is(name: str, ending: str, is_table: bool) -> None:
    source = Source(name, b"")
    assert (source.ending, source.is_table) == (ending, is_table)


def test_the_digest_is_of_name_and_content() -> None:
    assert Source("a", b"One").digest == Source("a", b"One").digest
    others = [Source("a", b"Two"), Source("b", b"One"), Source("a\0O", b"ne")]
    assert len({one.digest for one in (Source("a", b"One"), *others)}) == 4


def test_the_digest_of_a_file_is_of_what_it_holds_now(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One")
    before = Source.from_path(path).digest
    assert Source.from_path(path).digest == before
    path.write_text("One more")
    assert Source.from_path(path).digest != before
    with pytest.raises(TextError, match=r"^No such file: nothing\.txt\.$"):
        _ = Source.from_path(tmp_path / "nothing.txt").digest
