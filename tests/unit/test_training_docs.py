"""What docs/training.md shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import neuralviz.models
from neuralviz.models import LanguageModel

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text("utf-8")


def test_the_python_example_trains_and_saves_an_encoder(
    tiny: LanguageModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from sentence_transformers import SentenceTransformer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(neuralviz.models, "load_text_model", lambda _: tiny, raising=False)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [["1", "2"], ["2", "2"]]
    assert lines[-1] == f"(6, {tiny.d_model}) False"
    assert SentenceTransformer("my-encoder", device="cpu").encode(["A text."]).shape == (1, 32)
