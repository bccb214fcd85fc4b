"""Texts kept under an id: they come back, and no id leads anywhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from neuralviz.ui import views

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    return tmp_path


def test_texts_come_back() -> None:
    texts = ["One text.", "שלום\nעולם", "<script>", ""]
    first, second = views.save_texts(texts), views.save_texts(texts)
    assert first != second
    assert views.load_texts(first) == texts


@pytest.mark.parametrize(
    "view_id", ["", "AAAAAAAAAAAA", "../../secret", "..%2Fsecret12", "AAAAAAAAAAAA\n", "A" * 500]
)
def test_an_unknown_or_foul_id_gives_nothing(view_id: str, home: Path) -> None:
    (home / "secret.json").write_text('["secret"]', "utf-8")
    assert views.load_texts(view_id) is None


def test_a_view_can_be_written_over(home: Path) -> None:
    view_id = views.save_texts(["a"])
    assert views.save_texts(["b"], view_id) == view_id
    assert views.load_texts(view_id) == ["b"]
    assert len(list((home / "views").iterdir())) == 1
    for foul in ("../../secret", "short", "AAAAAAAAAAAA\n"):
        with pytest.raises(ValueError, match="not a valid view ID"):
            views.save_texts(["b"], foul)
    assert len(list((home / "views").iterdir())) == 1


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1]"])
def test_a_broken_file_gives_nothing(content: str, home: Path) -> None:
    view_id = views.save_texts(["a"])
    (home / "views" / f"{view_id}.json").write_text(content, "utf-8")
    assert views.load_texts(view_id) is None


def test_the_oldest_views_are_dropped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "KEPT_VIEWS", 3)
    ids = []
    for age in range(5, 0, -1):
        ids.append(views.save_texts([str(age)]))
        path = home / "views" / f"{ids[-1]}.json"
        os.utime(path, (path.stat().st_mtime - age * 100,) * 2)
    last = views.save_texts(["now"])
    kept = [view_id for view_id in [*ids, last] if views.load_texts(view_id)]
    assert kept == [*ids[-2:], last]
    assert not list((home / "views").glob("*.part"))
