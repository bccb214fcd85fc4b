"""What stands behind ``--ray`` on the command line."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from neuralviz.cli.on_ray import with_address

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["a.csv", "--ray"], ["a.csv", "--ray=local"]),
        (["--ray", "a.csv"], ["--ray=local", "a.csv"]),
        (["--ray", "s3://bucket/a"], ["--ray=local", "s3://bucket/a"]),
        (["--ray", "auto", "a.csv"], ["--ray=auto", "a.csv"]),
        (["--ray", "10.0.0.1:6379", "a"], ["--ray=10.0.0.1:6379", "a"]),
        (["--ray", "[::1]:6379"], ["--ray=[::1]:6379"]),
        (["--ray=head:6379", "a"], ["--ray=head:6379", "a"]),
        (["--ray", "--method", "mean", "a"], ["--ray=local", "--method", "mean", "a"]),
        (["--", "--ray"], ["--", "--ray"]),
    ],
)
def test_an_address_goes_with_it_and_nothing_else(typed: list[str], read: list[str]):
    assert with_address(typed) == read


def run(*arguments: str) -> tuple[int, str, float]:
    began = time.monotonic()
    command = [sys.executable, "-m", "neuralviz", "corpus", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    return done.returncode, done.stderr, time.monotonic() - began


def test_an_address_where_nothing_answers(tmp_path: Path):
    pytest.importorskip("ray", reason="needs neuralviz[ray]")
    code, said, took = run("add", "sample_data/topics.csv", "--ray", "127.0.0.1:9")
    assert (code, took < 30) == (2, True)
    assert said.startswith("No Ray cluster answers at 127.0.0.1:9.")
    code, said, _ = run("add", "sample_data/topics.csv", "--ray", "ray://127.0.0.1:10001")
    assert code == 2
    assert "client address" in said


def test_an_address_where_something_else_answers():
    pytest.importorskip("ray", reason="needs neuralviz[ray]")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        threading.Thread(target=server.accept, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        code, said, took = run("add", "sample_data/topics.csv", "--ray", address)
    assert (code, took < 40) == (2, True)
    assert "is not the head of a Ray cluster" in said


def test_several_files_need_it():
    code, said, _ = run("add", "sample_data/topics.csv", "sample_data/topics.csv")
    assert code == 2
    assert "need --ray" in said
    code, said, _ = run("add", "--paragraphs", "sample_data/topics.csv", "--ray")
    assert code == 2
    assert "--paragraphs does not work with --ray" in said
