"""A network that fails for a moment costs nothing; one that stays away is told from damage."""

from __future__ import annotations

import io
from copy import copy
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from neuralviz.errors import ConnectionLostError, TextError
from neuralviz.reading import blocks
from neuralviz.reading.blocks import BUFFER, FilePart, PatientFile
from tests.support.flaky_files import flaky_files

N = 60_000


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, in seconds, none of which is waited for."""
    seconds: list[float] = []
    monkeypatch.setattr(blocks.time, "sleep", seconds.append)
    return seconds


@pytest.fixture(params=[".csv", ".jsonl", ".parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of some megabytes."""
    found = tmp_path / f"file{request.param}"
    texts = [f"{i} a text that is long enough for several reads" for i in range(N)]
    if request.param == ".parquet":
        parquet.write_table(pa.table({"text": texts}), found)
    elif request.param == ".csv":
        found.write_text("\n".join(["text,n", *(f"{text},0" for text in texts)]))
    else:
        found.write_text("\n".join(f'{{"text": "{text}"}}' for text in texts))
    return found


def texts_of(path: Path, reads: int) -> list[str]:
    part = FilePart(path.name, str(path), flaky_files(reads), (0,))
    blocks = [block for block in part.blocks() if len(block)]
    return [text for block in blocks for text in block.values[block.columns.index("text")]]


def test_what_was_read_is_all_there(path: Path, waited: list[float]) -> None:
    found = texts_of(path, reads=1)
    assert len(found) == N
    assert [int(text.split()[0]) for text in found] == list(range(N))
    assert waited
    assert set(waited) == {1.0}


def test_a_connection_that_stays_away_is_no_damage(path: Path, waited: list[float]) -> None:
    with pytest.raises(ConnectionLostError) as told:
        texts_of(path, reads=0)
    assert str(told.value) == (
        f"The connection to {path.name} was lost: connection reset. Run the same command again."
    )
    assert str(copy(told.value)) == str(told.value)
    assert waited == [1.0, 4.0, 16.0]


def test_a_file_that_is_gone_is_not_waited_for(tmp_path: Path, waited: list[float]) -> None:
    part = FilePart("gone.csv", str(tmp_path / "gone.csv"), flaky_files(1))
    with pytest.raises(TextError, match=r"Could not read gone.csv: No such file"):
        list(part.blocks())
    assert waited == []


def test_places_are_those_of_any_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytes(range(256)) * 10
    path.write_bytes(content)
    again = lambda: pa.OSFile(str(path))  # noqa: E731
    with io.BufferedReader(PatientFile("file", again), BUFFER) as file:
        assert file.seek(-6, io.SEEK_END) == len(content) - 6
        assert file.read() == content[-6:]
        assert file.read() == b""
        file.seek(300)
        file.seek(7, io.SEEK_CUR)
        assert (file.tell(), file.read(5)) == (307, content[307:312])
