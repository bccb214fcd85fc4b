"""Results that outlive the browser session: kept when a run ends, found again by its task."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from neuralviz import __version__
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.run import Run
from neuralviz.jobs.task import Task
from neuralviz.store.results import find_result, keep_result

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E")
R = TypeVar("R")

MOST_BYTES = 1 << 27  # a result that takes more is not kept: packing it would take seconds
_log = logging.getLogger(__name__)


class KeptTask(Task[E, R]):
    """A task whose result can be written down and read again."""

    @abstractmethod
    def cache_key(self) -> str:
        """All that the result depends on, and the version of `pack`, as JSON."""

    def n_bytes(self, result: R) -> int:
        """About how large `pack` would make a result, before it is compressed."""
        return 0

    def is_whole(self, result: R) -> bool:
        """Whether nothing in a result has failed."""
        return True

    @abstractmethod
    def pack(self, result: R) -> bytes:
        """A result as bytes that hold plain values only."""

    @abstractmethod
    def unpack(self, content: bytes) -> R:
        """The result that `pack` made bytes of.

        Raises:
            ValueError, LookupError, OSError, NeuralvizError: they are of something else.
        """


def keeper(view: str, *, in_part: bool = True) -> Callable[[Run[R]], None]:
    """What keeps the result of a run when it ends, under the id of its view.

    A run that failed, or was stopped before it began, leaves nothing; nor does one whose result
    cannot be written: the person who looks at it still has it.

    Args:
        view: the id.
        in_part: whether to keep the result of a run that was stopped, too, and one of which
            something has failed.
    """

    def keep(run: Run[R]) -> None:
        if run.status not in ("done", "stopped") or not run.started:
            return
        if not in_part and (run.status == "stopped" or not run.task.is_whole(run.result)):
            return
        about = {"status": run.status, "finished": run.finished, "seconds": run.seconds}
        if run.task.n_bytes(run.result) > MOST_BYTES:
            return
        try:
            content = json.dumps(about).encode() + b"\n" + run.task.pack(run.result)
            keep_result(view, _key(run.task), content)
        except (OSError, ValueError) as error:
            _log.warning("A result could not be kept: %s", error)

    return keep


def reopened(task: KeptTask[E, R], view: str, number: int) -> Run[R] | None:
    """A run that is over, with the result that was kept of a task; None when there is none.

    Args:
        task: what was done.
        view: id of the view under which it was kept.
        number: of the run among those of its owner.
    """
    found = find_result(view, _key(task))
    if found is None:
        return None
    head, _, content = found.partition(b"\n")
    try:
        about = json.loads(head)
        result = task.unpack(content)
        return Run.over(
            task,
            result,
            status="done" if about["status"] == "done" else "stopped",
            finished=float(about["finished"]),
            seconds=float(about["seconds"]),
            number=number,
        )
    except (ValueError, LookupError, TypeError, OSError, NeuralvizError) as error:
        _log.warning("A kept result could not be read: %s", error)
        return None


def _key(task: KeptTask[E, R]) -> str:
    """What the result of a task is kept under: another version may compute it in another way."""
    return json.dumps([__version__, task.cache_key()])
