"""Waiting that ends: a test that hangs says so, and keeps no other waiting."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def wait_until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Ask every 20 ms whether something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"nothing has changed for {seconds:g} seconds"
        time.sleep(0.02)


def run_command(*command: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a command from the project's folder, for five minutes at most."""
    look = {"capture_output": True, "text": True, "timeout": 300, "cwd": ROOT, "check": False}
    return subprocess.run(list(map(str, command)), **look | settings)


def run_python(code: str, *arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, "-c", code, *arguments, **settings)


def heed_interrupts() -> None:
    """For ``preexec_fn``: what a shell starts in the background would ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
