"""A queue of runs, each on its own thread, and what is kept of them."""

from __future__ import annotations

import atexit
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from neuralviz import __version__
from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.files import corpus_view, find_result, is_of_corpus, is_shared, keep_result
from neuralviz.jobs.task import KeptTask, Lane, Run, Status, Task
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.jobs.workers import Workers

CLOSE_SECONDS = 10.0  # for running work to end with the process
MEGABYTE = 1 << 20
MOST_UNFINISHED = 500  # of all owners
MOST_OWNERS = 1000  # whose last start is remembered
MAX_SHORT = 4  # short tasks at once beside the others
MAX_SHARED = 64  # tasks at once that share their work
NOT_BEGUN = "The server was stopped before this run began. Press “Run again” to start it."
R = TypeVar("R")
_log = logging.getLogger(__name__)


class BusyError(NeuralvizError):
    """The server cannot take more work now."""


class RunQueue:
    """Carries runs out, a limited number in each lane: short tasks never wait for long ones.

    The owner with the fewest active runs goes next, then the one that has waited longest since a
    start; of an owner's runs, those of the kind requested last. Finished runs are forgotten.
    """

    def __init__(
        self,
        max_running: int = 1,  # long tasks; one already uses all cores
        max_short: int = MAX_SHORT,  # tasks beside the others
        workers: Workers | None = None,  # by default, this process does the work
        max_of_owner: int | None = None,  # unfinished runs; one more fails
        spare_mb: int = 0,  # free memory that a new run needs, in megabytes
    ) -> None:
        self._limits: dict[Lane, int] = {
            "long": max_running,
            "short": max_short,
            "shared": MAX_SHARED,
        }
        self._workers = workers
        self._max_of_owner = max_of_owner
        self._spare_mb = spare_mb
        self._lock = threading.RLock()  # reentrant, as stopping a run removes it from the queue
        self._waiting: list[Run[Any]] = []
        self._running: dict[Run[Any], threading.Thread] = {}
        self._turns: Counter[str] = Counter()  # by owner, the number of the last start
        self._n_started = 0
        self._is_closed = False
        self._listeners: list[Callable[[Run[Any]], None]] = []

    def submit(self, run: Run[R]) -> Run[R]:
        """Queue a run and return it; if it cannot be taken, it fails at once."""
        note_run(run)
        run.at_end += [keep_run, note_run, *self._listeners, self._leave]
        with self._lock:
            refusal = self._find_refusal(run.owner)
            if refusal is None:
                self._waiting.append(run)
                self._start_next()
        if refusal is not None:
            run.end(refusal)
        return run

    def _find_refusal(self, owner: str) -> BusyError | None:
        if self._is_closed:
            return BusyError(NOT_BEGUN)
        unfinished = self._unfinished()
        if len(unfinished) >= MOST_UNFINISHED or spare_memory() < self._spare_mb * MEGABYTE:
            return BusyError(
                "The server has too much to do or too little memory. Try again in a minute."
            )
        n_unfinished = sum(run.owner == owner and not run.is_stopping for run in unfinished)
        if self._max_of_owner is not None and n_unfinished >= self._max_of_owner:
            return BusyError(
                f"You already have {many(n_unfinished, 'unfinished run')}, the most that this "
                "server allows. Stop one, or wait until one finishes."
            )
        return None

    def at_every_end(self, listener: Callable[[Run[Any]], None]) -> None:
        """Call ``listener`` with every later run that ends, from any thread."""
        self._listeners.append(listener)

    @property
    def has_workers(self) -> bool:
        """Whether other processes do the work."""
        return self._workers is not None

    def n_unfinished(self) -> int:
        with self._lock:
            return len(self._unfinished())

    def find(self, is_wanted: Callable[[Run[Any]], bool]) -> Run[Any] | None:
        """The latest unfinished run that ``is_wanted``."""
        with self._lock:
            runs = self._unfinished()
        return next((run for run in reversed(runs) if is_wanted(run)), None)

    def _unfinished(self) -> list[Run[Any]]:
        return [*self._running, *self._waiting]

    def n_by_lane(self) -> dict[Lane, tuple[int, int]]:
        with self._lock:
            waiting = Counter(run.task.lane for run in self._waiting)
            running = Counter(run.task.lane for run in self._running)
        return {lane: (waiting[lane], running[lane]) for lane in self._limits}

    def place_in_queue(self, run: Run[Any]) -> int:
        """1 for the next run to start, 0 for one that has started."""
        with self._lock:
            self._drop_abandoned()
            ahead = self._in_order(run.task.lane)
        return ahead.index(run) + 1 if run in ahead else 0

    def seconds_until_start(self, run: Run[Any]) -> float | None:
        """Expected wait of the next run to start; None if others are before it, or if unknown."""
        lane = run.task.lane
        with self._lock:
            is_next = self._in_order(lane)[:1] == [run]
            running = [active for active in self._running if active.task.lane == lane]
        remaining = [active.seconds_left for active in running] if is_next else []
        return min((seconds for seconds in remaining if seconds is not None), default=None)

    def _in_order(self, lane: Lane) -> list[Run[Any]]:
        """Waiting runs: each owner's next one, then each owner's second, and so on."""
        latest = {(run.owner, type(run.task)): n for n, run in enumerate(self._waiting)}
        waiting = [run for run in self._waiting if run.task.lane == lane]
        waiting.sort(key=lambda run: -latest[run.owner, type(run.task)])
        n_before = Counter(run.owner for run in self._running if run.task.lane == lane)
        rounds: dict[Run[Any], int] = {}
        for run in waiting:
            rounds[run] = n_before[run.owner]
            n_before[run.owner] += 1
        owners = [run.owner for run in self._waiting]
        return sorted(
            waiting, key=lambda run: (rounds[run], self._turns[run.owner], owners.index(run.owner))
        )

    def close(self, seconds: float = CLOSE_SECONDS, grace: float = 0.0) -> bool:
        """Stop all runs before Python ends, lest threads in torch crash it; whether all end."""
        with self._lock:
            self._is_closed = True
            waiting, running = list(self._waiting), dict(self._running)
        for run in waiting:
            run.end(BusyError(NOT_BEGUN))
        _join(running.values(), grace)
        unfinished = [run for run in running if not run.is_over]
        if unfinished:
            _log.warning("The server ends: %s stopped in the middle.", many(len(unfinished), "run"))
        for run in unfinished:
            run.stop()
        _join(running.values(), seconds)
        for run in unfinished:
            run.end(Stopped())  # a run that hangs keeps its result so far and is logged
        if self._workers is not None:
            self._workers.close()
        return not any(thread.is_alive() for thread in running.values())

    def _start_next(self) -> None:
        self._drop_abandoned()
        if self._is_closed:
            return
        for lane, limit in self._limits.items():
            n_free = limit - sum(run.task.lane == lane for run in self._running)
            for run in self._in_order(lane)[: max(n_free, 0)]:
                self._waiting.remove(run)
                self._n_started += 1
                self._turns[run.owner] = self._n_started
                if len(self._turns) > MOST_OWNERS:
                    del self._turns[min(self._turns, key=self._turns.__getitem__)]
                thread = threading.Thread(
                    target=self._work, args=(run,), name="neuralviz-run", daemon=True
                )
                self._running[run] = thread
                thread.start()

    def _work(self, run: Run[Any]) -> None:
        try:
            run.carry_out(self._workers.carry_out if self._workers else Task.carry_out)
        finally:
            with self._lock:
                del self._running[run]
                self._start_next()

    def _drop_abandoned(self) -> None:
        for run in list(self._waiting):
            if run.is_abandoned():
                run.stop()

    def _leave(self, run: Run[Any]) -> None:
        with self._lock, suppress(ValueError):  # it has begun
            self._waiting.remove(run)


def spare_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Free bytes of the machine, or of the container if that is less."""
    spare = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # no container, or one without a limit (“max”)
        limit = int((groups / "memory.max").read_text())
        spare = min(spare, max(limit - int((groups / "memory.current").read_text()), 0))
    return spare


def _join(threads: Iterable[threading.Thread], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


_queue_lock = threading.Lock()
_the_queue: RunQueue | None = None


def run_queue(make: Callable[[], RunQueue] = RunQueue) -> RunQueue:
    """This process's queue, made at first use and closed when the process ends."""
    global _the_queue
    with _queue_lock:
        if _the_queue is None:
            _the_queue = make()
            atexit.register(_the_queue.close)
        return _the_queue


# --- kept results, and how runs ended; neither holds texts or settings ---------------------------

MOST_BYTES = 1 << 27  # larger results are not kept
COMPUTING = ("torch", "transformers", "tokenizers", "sentence-transformers", "numpy", "scipy")
_UNREADABLE = (ValueError, LookupError, TypeError, OSError, NeuralvizError)

# What became of a run that has no result to show.
WHAT_HAPPENED: dict[Status, str] = {
    "queued": "did not finish, or another server is still carrying it out",
    "done": "is no longer saved",
    "stopped": "was stopped",
    "failed": "failed",
}


def keep_run(run: Run[Any]) -> None:
    """Keep a run's result under its view; if others share the view, only a flawless result."""
    if not run.view or not run.started or run.status not in ("done", "stopped"):
        return
    is_whole = run.status == "done" and run.task.is_whole(run.result)
    if is_shared(run.view) and not is_whole:
        return
    named = ("status", "finished", "seconds", "n_events")
    metadata = {name: getattr(run, name) for name in named}
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
            n_events=int(metadata.get("n_events", 1)),
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
