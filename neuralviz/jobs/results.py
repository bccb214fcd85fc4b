"""Kept results of runs, and how runs ended; texts and settings are in neither."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from neuralviz import __version__
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.task import KeptTask, Run, Status
from neuralviz.store.files import corpus_view, find_result, is_of_corpus, is_shared, keep_result

R = TypeVar("R")

MOST_BYTES = 1 << 27  # larger results are not kept
COMPUTING = ("torch", "transformers", "tokenizers", "sentence-transformers", "numpy", "scipy")
_UNREADABLE = (ValueError, LookupError, TypeError, OSError, NeuralvizError)
_log = logging.getLogger(__name__)

# What became of a run that has no result to show.
WHAT_HAPPENED: dict[Status, str] = {
    "queued": "did not finish, or another server is still carrying it out",
    "done": "is no longer saved",
    "stopped": "was stopped",
    "failed": "failed",
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
    try:
        content = json.dumps(metadata).encode() + b"\n" + run.task.pack(run.result)
        if len(content) <= MOST_BYTES and _has_corpus(run.view):
            keep_result(run.view, result_key(run.task), content)
    except _UNREADABLE as error:
        _log.warning("A result could not be kept: %s", error)


def reopen_run(task: KeptTask[Any, R], view: str) -> Run[R] | None:
    """A finished run with the kept result of a task, if there is one."""
    content = find_result(view, result_key(task))
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


def note_run(run: Run[Any]) -> None:
    """Record the status of a run with a `work`, but not why it failed: that may quote a text."""
    if not run.work:
        return
    try:
        keep_result(run.id, run.work, run.status.encode(), prunes=False)
    except OSError as error:
        _warn_once(str(error))


def find_status(run_id: str, work: str) -> Status | None:
    """The last status of a run that is not active here; None if unknown."""
    status: Any = (find_result(run_id, work) or b"").decode("utf-8", "replace")
    return status if status in WHAT_HAPPENED else None


@cache
def _warn_once(reason: str) -> None:
    _log.warning("Runs are not noted, so links to them are not found: %s", reason)
