"""Results that outlive the browser session: kept when a run ends, found again by its task."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, TypeVar

from neuralviz import __version__
from neuralviz.arrays import RecordFormat
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.run import Run
from neuralviz.jobs.task import Task
from neuralviz.locks import NamedLocks
from neuralviz.store.results import corpus_view, find_result, is_of_corpus, keep_result

E = TypeVar("E")
R = TypeVar("R")

MOST_BYTES = 1 << 27  # a result that takes more is not kept: packing it would take seconds
COMPUTING = ("torch", "transformers", "tokenizers", "sentence-transformers", "numpy", "scipy")
_writing = NamedLocks()  # view and key of what is being written
_log = logging.getLogger(__name__)


class KeptTask(Task[E, R]):
    """A task whose result can be written down and read again.

    Attributes:
        format: of the file; a task with a `pack` and an `unpack` of its own needs none.
    """

    format: ClassVar[RecordFormat]

    @abstractmethod
    def cache_key(self) -> str:
        """All that the result depends on, and the version of the format, as JSON."""

    def n_bytes(self, result: R) -> int:
        """About how large `pack` would make a result, before it is compressed."""
        return 0

    def is_whole(self, result: R) -> bool:
        """Whether nothing in a result has failed."""
        return True

    def pack(self, result: R) -> bytes:
        """A result as bytes that hold plain values only."""
        return self.format.pack(result)

    def unpack(self, content: bytes) -> R:
        """The result that `pack` made bytes of.

        Raises:
            ValueError, LookupError, OSError, NeuralvizError: they are of something else.
        """
        restored: R = self.format.unpack(content)
        return restored


def keep_run(run: Run[R], *, in_part: bool = True) -> None:
    """Keep the result of a run that is over, under the id of its view.

    A run that failed, or was stopped before it began, leaves nothing; nor does one whose result
    cannot be written: the person who looks at it still has it.

    Args:
        run: with a view.
        in_part: whether to keep the result of a run that was stopped, too, and one of which
            something has failed.
    """
    if run.status not in ("done", "stopped") or not run.started:
        return
    if not in_part and (run.status == "stopped" or not run.task.is_whole(run.result)):
        return
    if run.task.n_bytes(run.result) > MOST_BYTES:
        return
    metadata = {"status": run.status, "finished": run.finished, "seconds": run.seconds}
    key = result_key(run.task)
    with _writing.hold((run.view, key)):
        try:
            content = json.dumps(metadata).encode() + b"\n" + run.task.pack(run.result)
            if is_of_corpus(run.view) and not _is_there(run.view):
                return  # the corpus was deleted meanwhile, and its results with it
            keep_result(run.view, key, content)
        except (OSError, ValueError, TypeError, NeuralvizError) as error:
            _log.warning("A result could not be kept: %s", error)


def reopen_run(task: KeptTask[E, R], view: str, number: int = 1) -> Run[R] | None:
    """A run that is over, with the result that was kept of a task; None when there is none.

    Args:
        task: what was done.
        view: id of the view under which it was kept.
        number: of the run among those of its owner.
    """
    key = result_key(task)
    with _writing.hold((view, key)):  # a run that has just ended may be writing it
        stored = find_result(view, key)
    if stored is None:
        return None
    head, _, content = stored.partition(b"\n")
    try:
        metadata = json.loads(head)
        return Run.from_result(
            task,
            task.unpack(content),
            status="done" if metadata["status"] == "done" else "stopped",
            finished=float(metadata["finished"]),
            seconds=float(metadata["seconds"]),
            number=number,
            view=view,
        )
    except (ValueError, LookupError, TypeError, OSError, NeuralvizError) as error:
        _log.warning("A kept result could not be read: %s", error)
        return None


def result_key(task: KeptTask[E, R]) -> str:
    """The key of a task's kept result, with the versions of all that computes it."""
    return json.dumps([__version__, _versions(), task.cache_key()])


@cache
def _versions() -> dict[str, str]:
    """Versions of the packages whose numbers are in a result; none is imported for that."""
    versions = {}
    for name in COMPUTING:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _is_there(view: str) -> bool:
    """Whether the corpus that a view's results are of is still kept."""
    from neuralviz.store.corpora import CorpusStore  # loads pyarrow

    return any(corpus_view(corpus.id) == view for corpus in CorpusStore().corpora())
