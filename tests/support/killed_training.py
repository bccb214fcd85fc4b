"""A process whose children train from the command line, and are killed or run out of disk space.

``python -m tests.support.killed_training MODEL`` prints JSON: one child trains undisturbed; each of
the others goes on where the one before it was killed, and the last comes to the end. What is heavy
is imported once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ARGUMENTS = (
    "--json --epochs 3 --batch-size 4 --learning-rate 0.001"
    " --sentences 1 --shortest 5 --longest 400"
).split()
KILLED, REFUSED = -signal.SIGKILL, 2
DISK = 50_000  # bytes that a file may have: less than the weights


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(module: Any, name: str, number: int, meet: Callable[..., None] = die) -> None:
    """Have something met before a function of a module is called for the so manieth time."""
    function, calls = getattr(module, name), iter(range(1, 1000))

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if next(calls) == number:
            meet()
        return function(*arguments, **named)

    setattr(module, name, wrapped)


def fill_the_disk() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK, DISK))


def child(work: Callable[[], None]) -> dict[str, Any]:
    """How a forked process ended that did some work, and what it said."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        work()
        os._exit(99)  # a command ends by itself
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as said:
        lines = said.read()
    _, status = os.waitpid(process, 0)
    return {"code": os.waitstatus_to_exitcode(status), "said": lines}


def train(model: str, name: str, prepare: Callable[[], None] = lambda: None) -> None:
    from neuralviz.cli import app
    from neuralviz.training import loop

    loop.CHECKPOINT_SECONDS = -1.0  # after every step
    loop.CHECKPOINT_SHARE = float("inf")
    prepare()
    words = ["train", "crops", "mine", "-o", name, "--model", model, *ARGUMENTS]
    try:
        app(words)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))


def main() -> None:
    import lance_namespace  # noqa: F401  # seconds of every child that opens a corpus

    import neuralviz.cli.train
    from neuralviz.training import loop, saving

    # what a child meets, how it ends, and after how many of the nine steps it began
    moments: dict[str, tuple[Callable[[], None], int, int]] = {
        "after a step": (partial(at_call, neuralviz.cli.train, "event_json", 5), KILLED, 0),
        "in a checkpoint": (partial(at_call, Path, "replace", 2), KILLED, 4),
        "before the old one goes": (partial(at_call, Path, "unlink", 1), KILLED, 5),
        "no room": (partial(at_call, loop, "save_file", 1, fill_the_disk), REFUSED, 6),
        "while it is saved": (partial(at_call, saving, "asdict", 1), KILLED, 6),
        "nothing": (lambda: None, 0, 9),
    }
    model = sys.argv[1]
    found = {"undisturbed": child(partial(train, model, "undisturbed"))}
    found["undisturbed"] |= {"expected": 0, "start": 0}
    for moment, (prepare, code, start) in moments.items():
        found[moment] = child(partial(train, model, "killed", prepare))
        found[moment] |= {"expected": code, "start": start}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
