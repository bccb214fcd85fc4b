"""Names that packages import when they are first used."""

from __future__ import annotations

import re
import rlcompleter
from importlib import import_module
from pathlib import Path

import pytest

import neuralviz


@pytest.mark.parametrize(
    "package",
    [
        "neuralviz",
        "neuralviz.embedders",
        "neuralviz.evaluation",
        "neuralviz.micro_tuning",
        "neuralviz.models",
        "neuralviz.training",
        "neuralviz.training.similarity",
    ],
)
def test_every_name_of_a_package_is_found_and_no_other(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("neuralviz.load_", {"load_model"}),
        ("neuralviz.evaluation.ev", {"evaluate"}),
        ("neuralviz.evaluation.s", {"scored_data"}),
        ("neuralviz.training.Tr", {"TrainingEnded", "TrainingStarted", "TrainingStep"}),
        ("neuralviz.training.similarity.sc", {"score_pairs"}),
        ("neuralviz.models.load", {"load_model", "load_sentence_transformer", "load_text_model"}),
    ],
)
def test_a_shell_completes_names_that_were_never_used(typed: str, offered: set[str]) -> None:
    import_module(typed.rpartition(".")[0])
    complete = rlcompleter.Completer({"neuralviz": neuralviz})
    found = {name.rpartition(".")[2].rstrip("()") for name in complete.attr_matches(typed)}
    assert offered <= found
    assert offered.isdisjoint(vars(import_module(typed.rpartition(".")[0])))


def test_what_the_documentation_evaluates_works_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    said, spearman = capsys.readouterr().out.strip().rsplit("\n", 1)
    assert "mean (all-MiniLM-L6-v2)" in said
    assert -1 <= float(spearman) <= 1
