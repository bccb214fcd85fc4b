"""Ctrl-C and SIGTERM while torch computes: the process ends by itself, and says nothing of C++."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from tests.support.waiting import heed_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TEXT = "The river rose overnight and covered the lower meadows."

TUNING_APP = f"""
from neuralviz.jobs import Run, run_queue
from neuralviz.jobs.task import LatestTask
from neuralviz.micro_tuning import micro_tune
from neuralviz.models.shared import shared_model

class Tuning(LatestTask):
    label = "tuning"

    def events(self, should_stop):
        model = shared_model("bundled")
        for event in micro_tune(model, [{TEXT!r}], epochs=1000, should_stop=should_stop):
            print("a step", flush=True)
            yield event.step

run_queue().submit(Run(Tuning()))
"""

IMPORTING = """
import signal
from neuralviz.cli import commands, main

def load_command(name):
    exec("signal.raise_signal(signal.SIGINT)")  # as in many packages

commands.load_command = load_command
main()
"""

WARM_UP = """
import time
from neuralviz.ui import pace

def load():
    print("begins", flush=True)
    time.sleep(1)
    print("ends", flush=True)
    raise ImportError("cannot import once Python has begun to end")

pace.AFTER = 0
pace.WARMING.call_soon(load)
time.sleep(0.3)
"""


@contextmanager
def started(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process whose output can be read, killed at the end if it is still there."""
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(line: str, process: subprocess.Popen[str], seconds: float = 120) -> None:
    """Read what a process prints up to a line that begins so; it is killed where none comes."""
    killing = threading.Timer(seconds, process.kill)
    killing.start()
    try:
        for printed in process.stdout:
            if printed.startswith(line):
                return
    finally:
        killing.cancel()
    pytest.fail(f"it did not print “{line}” in {seconds:g} s: {process.stderr.read()}")


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM],
    ids=lambda number: number.name,
)
def test_the_command_that_tunes(number: signal.Signals) -> None:
    with started("-m", "neuralviz", "tune", TEXT, "--epochs", "1000") as process:
        wait_for("epoch", process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert "terminate called" not in errors
    assert process.returncode == 130
    assert "Stopped after epoch" in errors


def test_ctrl_c_while_packages_are_imported(tmp_path: Path) -> None:
    (tmp_path / "importing.py").write_text(IMPORTING)
    done = subprocess.run(
        [sys.executable, "-m", "importing", "methods"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, preexec_fn=heed_interrupts,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


@pytest.mark.slow
def test_the_app_with_a_run_under_way(tmp_path: Path) -> None:
    """Ctrl-C, for which Streamlit has the same handler as for SIGTERM."""
    (tmp_path / "app.py").write_text(TUNING_APP)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [f"--server.port={port}", "--server.headless=true", "--server.fileWatcherType=none"]
    with started("-m", "streamlit", "run", tmp_path / "app.py", *options) as process:
        asyncio.run(open_page(port))
        wait_for("a step", process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "terminate called" not in errors
    assert process.returncode == 0  # Streamlit's own


async def open_page(port: int) -> None:
    """Draw the page once, as a browser does, to its end: left sooner, it may never run."""
    until = time.monotonic() + 60
    while True:
        try:
            urlopen(f"http://127.0.0.1:{port}/_stcore/health").close()
            break
        except OSError:
            assert time.monotonic() < until
            await asyncio.sleep(0.1)
    url = f"ws://127.0.0.1:{port}/_stcore/stream"
    async with connect(url, subprotocols=["streamlit"], max_size=None) as page:
        rerun = BackMsg()
        rerun.rerun_script.query_string = ""
        await page.send(rerun.SerializeToString())
        async with asyncio.timeout(60):
            while ForwardMsg.FromString(await page.recv()).WhichOneof("type") != "script_finished":
                pass


def test_a_warm_up_is_waited_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WARM_UP], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["begins", "ends"]
    assert "Traceback" not in done.stderr
