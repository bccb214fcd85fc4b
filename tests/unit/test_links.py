"""Texts kept under an id: they come back, and no id leads anywhere else."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neuralviz.reading.source import Source
from neuralviz.ui import inputs


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    return tmp_path


def save(*texts: str) -> str:
    return inputs.save_view(inputs.View(texts))


def texts_of(view_id: str) -> list[str]:
    return list(inputs.load_view(view_id).texts)


@pytest.mark.parametrize(
    "view_id", ["", "AAAAAAAAAAAA", "../../secret", "..%2Fsecret12", "AAAAAAAAAAAA\n", "A" * 500]
)
def test_an_unknown_or_foul_id_gives_nothing(view_id: str, home: Path) -> None:
    (home / "secret.json").write_text('["secret"]', "utf-8")
    assert inputs.load_view(view_id) is None


def test_texts_come_back() -> None:
    texts = ["One text.", "שלום\nעולם", "<script>", ""]
    assert texts_of(save(*texts)) == texts


def test_the_same_view_has_one_id_that_another_machine_does_not_know(home: Path) -> None:
    def kept(*texts: str, choice: str = "") -> str:
        return inputs.save_view(inputs.View(texts, choices=(("a", choice),)))

    first = kept("a", "\ud800")
    assert kept("a", "\ud800") == first
    assert texts_of(first)[0] == "a"
    assert len({first, kept("a"), kept("a", "\ud800", choice="b")}) == 3
    assert len(list((home / "views").iterdir())) == 3
    (home / "views.key").unlink()
    assert kept("a", "\ud800") != first
    file = Source("a.txt", b"content")
    ids = {inputs.save_view(inputs.View(("a",), one)) for one in (file, file, None)}
    assert len(ids) == 2


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1]"])
def test_a_broken_file_gives_nothing(content: str, home: Path) -> None:
    view_id = save("a")
    (home / "views" / f"{view_id}.json").write_text(content, "utf-8")
    assert inputs.load_view(view_id) is None


def test_the_oldest_views_are_dropped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "KEPT_VIEWS", 3)
    monkeypatch.setattr(inputs, "SAVES_BETWEEN", 1)
    ids = []
    for age in range(5, 0, -1):
        ids.append(save(str(age)))
        path = home / "views" / f"{ids[-1]}.json"
        os.utime(path, (path.stat().st_mtime - age * 100,) * 2)
    last = save("now")
    kept = [view_id for view_id in [*ids, last] if inputs.load_view(view_id)]
    assert kept == [*ids[-2:], last]
    assert not list((home / "views").glob("*.part"))


def test_a_file_comes_back_with_how_it_was_read(home: Path, monkeypatch) -> None:
    table = inputs.View(("a", "b"), Source("../t.csv", b"text\na\nb\n"), (("column", "text"),))
    view_id = inputs.save_view(table)
    assert inputs.load_view(view_id) == table
    assert sorted(path.name for path in home.iterdir()) == ["views", "views.key"]
    (home / "views" / f"{view_id}.file").unlink()
    assert inputs.load_view(view_id) is None
    monkeypatch.setattr(inputs, "LARGEST_FILE", 5)
    assert inputs.load_view(inputs.save_view(table)) == inputs.View(("a", "b"), None, table.choices)


def test_a_full_disk_keeps_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out_of_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", run_out_of_room)
    with pytest.raises(OSError, match="No space left"):
        inputs.save_view(inputs.View(("a",), Source("t.txt", b"a text")))
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_many_sessions_keep_the_same_view_at_once(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: inputs.save_view(inputs.View(("a", "b"))), range(200)))
    assert [inputs.load_view(one) for one in ids] == [inputs.View(("a", "b"))]
    assert sorted(path.name for path in home.iterdir()) == ["views", "views.key"]
    assert (home / "views.key").stat().st_mode & 0o777 == 0o600
