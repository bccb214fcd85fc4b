"""What stands behind ``--ray`` on the command line."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuralviz import cli
from neuralviz.cli import options
from neuralviz.cli.options import give_ray_a_value
from neuralviz.errors import NeuralvizError
from tests.support.waiting import run_python

ROOT = Path(__file__).parents[2]
TOPICS = ROOT / "sample_data" / "topics.csv"


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["a.csv", "--ray"], ["a.csv", "--ray", "local"]),
        (["--ray", "a.csv"], ["--ray", "local", "a.csv"]),
        (["--ray", "auto", "a.csv"], ["--ray", "auto", "a.csv"]),
        (["--ray", "[::1]:6379"], ["--ray", "[::1]:6379"]),
        (["--ray=head:6379", "a"], ["--ray=head:6379", "a"]),
        (["--ray", "--method", "mean", "a"], ["--ray", "local", "--method", "mean", "a"]),
        (["--", "--ray"], ["--", "--ray"]),
    ],
)
def test_an_address_goes_with_it_and_nothing_else(typed: list[str], read: list[str]):
    assert give_ray_a_value(typed) == read


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, ["corpus", *arguments])
    return result.exit_code, result.stderr


@pytest.mark.slow
def test_an_address_where_something_else_answers(monkeypatch):
    pytest.importorskip("ray", reason="needs neuralviz[ray]")
    monkeypatch.setattr("neuralviz.cluster.connecting.HEAD_PATIENCE", 4)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        code, message = run("add", str(TOPICS), "--ray", "auto")
    assert (code, f"Could not connect to a Ray cluster at {address} (" in message) == (2, True)
    code, message = run("add", str(TOPICS), "--ray", address)  # nothing answers any more
    assert (code, f"{address} (Connection refused)" in message) == (2, True)


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "10.0.0.1"])
def test_an_address_that_cannot_be_one(address: str):
    pytest.importorskip("ray", reason="needs neuralviz[ray]")
    from neuralviz.cluster.connecting import connected

    sentence = f"“{address}” is not the address of a Ray cluster. Write HOST:PORT"
    with pytest.raises(NeuralvizError, match=re.escape(sentence)), connected(address):
        pass


def test_nothing_else_loads_ray():
    """Whoever does not use it does not need it."""
    look = (
        "import sys\nfrom neuralviz.cli.commands import COMMANDS, load_command\n"
        "[load_command(name) for name in COMMANDS]\n"
        "print(sorted({'ray', 'lance'} & sys.modules.keys()))"
    )
    done = run_python(look)
    assert done.stdout.strip() == "[]", done.stderr


def test_without_ray_a_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(NeuralvizError, match=r"pip install .neuralviz\[ray\]."):
        options.ray_work()


def test_several_files_need_it():
    code, said = run("add", str(TOPICS), str(TOPICS))
    assert code == 2
    assert "need --ray" in said
    code, said = run("add", "--paragraphs", str(TOPICS), "--ray")
    assert code == 2
    assert "Use --paragraphs only with plain text" in said


def test_why_a_cluster_refuses_is_a_sentence():
    pytest.importorskip("ray", reason="needs neuralviz[ray]")
    from neuralviz.cluster.connecting import refusal

    said = str(refusal("head:6379", "Version mismatch:\n  Ray: 2.51.0\n"))
    assert "at head:6379 (Version mismatch: Ray: 2.51.0). Check that" in said
