"""Kept results of runs, and how runs ended; texts and settings are in neither."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from neuralviz import __version__
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.task import Run
from neuralviz.lazy import NamedLocks
from neuralviz.store.files import corpus_view, find_result, is_of_corpus, is_shared, keep_result

if TYPE_CHECKING:
    from neuralviz.jobs.task import KeptTask

R = TypeVar("R")

MOST_BYTES = 1 << 27  # larger results are not kept
COMPUTING = ("torch", "transformers", "tokenizers", "sentence-transformers", "numpy", "scipy")
_UNREADABLE = (ValueError, LookupError, TypeError, OSError, NeuralvizError)
_writing = NamedLocks()  # view and key of what is being written
_log = logging.getLogger(__name__)

# not begun: failed before its turn, as the server ended or was too busy; cut off: its worker ended;
# requested: its end was never noted.
RunStatus = Literal["done", "stopped", "failed", "cut off", "not begun", "requested"]

# Why a run has no result to show.
REASONS: dict[RunStatus, str] = {
    "done": "The result of this run is no longer saved. Press “Run again” to compute it again.",
    "stopped": "This run was stopped. Press “Run again” to start it again.",
    "failed": "This run failed. Press “Run again” to try once more.",
    "cut off": (
        "The process that did this work ended suddenly; the machine may be out of memory. Press "
        "“Run again” to start it again, with fewer or shorter texts if it ends again."
    ),
    "not begun": "This run did not begin. Press “Run again” to start it.",
    "requested": (
        "The server ended in the middle of this run, or another one is still carrying it out. "
        "Reload the page later, or press “Run again” to start it again."
    ),
}

# --- results -------------------------------------------------------------------------------------


def keep_run(run: Run[Any]) -> None:
    """Keep a run's result under its view; if others share the view, only a flawless result."""
    if not run.view or not run.started or run.status not in ("done", "stopped"):
        return
    is_whole = run.status == "done" and run.task.is_whole(run.result)
    if is_shared(run.view) and not is_whole:
        return
    metadata = {"status": run.status, "finished": run.finished, "seconds": run.seconds}
    key = result_key(run.task)
    with _writing.hold((run.view, hash(key))):
        try:
            content = json.dumps(metadata).encode() + b"\n" + run.task.pack(run.result)
            if len(content) <= MOST_BYTES and _has_corpus(run.view):
                keep_result(run.view, key, content)
        except _UNREADABLE as error:
            _log.warning("A result could not be kept: %s", error)


def reopen_run(task: KeptTask[Any, R], view: str) -> Run[R] | None:
    """A finished run with the kept result of a task, if there is one."""
    key = result_key(task)
    with _writing.hold((view, hash(key))):  # a run that has just ended may be writing it
        content = find_result(view, key)
    if content is None:
        return None
    head, _, packed = content.partition(b"\n")
    try:
        metadata = json.loads(head)
        return Run.from_result(
            task,
            task.unpack(packed),
            status="done" if metadata["status"] == "done" else "stopped",
            finished=float(metadata["finished"]),
            seconds=float(metadata["seconds"]),
            view=view,
        )
    except _UNREADABLE as error:
        _log.warning("A kept result could not be read: %s", error)
        return None


def result_key(task: KeptTask[Any, Any]) -> str:
    """Key of a task's result, with the versions of everything that computes it."""
    return json.dumps([__version__, _versions(), task.cache_key()])


@cache
def _versions() -> dict[str, str]:
    versions = {}
    for name in COMPUTING:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _has_corpus(view: str) -> bool:
    from neuralviz.store.corpora import CorpusStore  # loads pyarrow

    if not is_of_corpus(view):
        return True
    return any(corpus_view(corpus.id) == view for corpus in CorpusStore().corpora())


# --- how runs ended ------------------------------------------------------------------------------


def note_request(run: Run[Any]) -> None:
    _note(run, "requested")


def note_end(run: Run[Any]) -> None:
    """Record how a run with a `work` ended, but not why: that may quote a text."""
    if not run.work:
        return
    status: Any = run.status
    if status == "failed" and not run.started:
        status = "not begun"
    _note(run, "cut off" if run.was_cut_off else status)


def _note(run: Run[Any], status: RunStatus) -> None:
    try:
        keep_result(run.id, run.work, status.encode(), prunes=False)
    except OSError as error:
        _warn_once(str(error))


def find_status(run_id: str, work: str) -> RunStatus | None:
    """What became of a run that is not active here; None if unknown."""
    status: Any = (find_result(run_id, work) or b"").decode("utf-8", "replace")
    return status if status in REASONS else None


@cache
def _warn_once(reason: str) -> None:
    _log.warning("Runs are not noted, so links to them are not found: %s", reason)
