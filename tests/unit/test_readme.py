"""What the README and docs/training.md show works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neuralviz.cli import app
from neuralviz.lazy import Lazy
from neuralviz.models import LanguageModel
from neuralviz.models.shared import LOADERS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.fixture(autouse=True)
def _a_small_model(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in for the two models that the commands name, which take long with many texts."""
    for name in ("load_model", "load_text_model"):
        monkeypatch.setattr(f"neuralviz.models.{name}", lambda _: tiny)
    for kind in ("masked", "text"):
        monkeypatch.setitem(LOADERS, kind, lambda _: tiny)
    # those that other tests loaded
    monkeypatch.setattr("neuralviz.models.shared._models", Lazy(freeze=False))
    # it could be micro-tuned, which the sentence encoder that it stands in for cannot
    monkeypatch.setattr("neuralviz.evaluation.ladder.MOST_TUNED_ON", 0)


def blocks(language: str, page: Path = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_python_example_runs():
    (example,) = blocks("python")
    names: dict[str, object] = {}
    exec(example, names)
    vectors = names["vectors"]
    assert isinstance(vectors, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_the_example_of_a_training_saves_an_encoder(
    tiny: LanguageModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from sentence_transformers import SentenceTransformer

    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python", ROOT / "docs" / "training.md")
    exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [["1", "2"], ["2", "2"]]
    assert lines[-1] == f"(6, {tiny.d_model}) False"
    assert SentenceTransformer("my-encoder", device="cpu").encode(["A text."]).shape == (1, 32)


COMMANDS = [
    line
    for block in blocks("sh")
    for line in block.splitlines()
    if line.startswith("neuralviz ") and not line.startswith("neuralviz app")
]


@pytest.mark.slow
def test_the_commands_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    assert len(COMMANDS) > 10
    for command in COMMANDS:
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}: {result.output}"


def test_every_file_and_make_target_it_names_is_there():
    text, makefile = README.read_text("utf-8"), (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
    for target in set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
