"""A server's counts for Prometheus; nothing of them comes from the content of texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from neuralviz.jobs.queue import spare_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from neuralviz.jobs import Run
    from neuralviz.jobs.queue import RunQueue
    from neuralviz.jobs.task import Lane
    from neuralviz.jobs.workers import Workers

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600)  # upper ends of the histograms' bins


class Metrics:
    """The counts of a server since it started, and how things are at the moment.

    Args:
        queue: whose runs are counted.
        workers: that carry them out; None where there are none.
    """

    def __init__(self, queue: RunQueue, workers: Workers | None) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._runs = Counter(
            "neuralviz_runs", "Runs that have ended.", ["task", "status"], registry=self._registry
        )
        self._run_seconds = Histogram(
            "neuralviz_run_seconds",
            "How long the work of a run took.",
            ["task"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._wait_seconds = Histogram(
            "neuralviz_wait_seconds",
            "How long a run waited for its turn.",
            buckets=SECONDS,
            registry=self._registry,
        )
        self._show_queue(queue)
        self._show("spare_memory_bytes", "Memory left for new work.", spare_memory)
        if workers is not None:
            self._show_workers(workers)
        queue.at_every_end(self.note)

    def _show_queue(self, queue: RunQueue) -> None:
        states = ("waiting", "Runs that wait for their turn."), ("running", "Runs under way.")
        for place, (state, text) in enumerate(states):
            gauge = Gauge(f"neuralviz_runs_{state}", text, ["lane"], registry=self._registry)
            for lane in queue.n_by_lane():
                gauge.labels(lane).set_function(partial(_count_runs, queue, lane, place))

    def _show_workers(self, workers: Workers) -> None:
        self._show("workers", "Worker processes that are there.", lambda: len(workers.processes()))
        self._registry.register(_WorkersStarted(workers))
        self._show(
            "worker_memory_bytes",
            "Resident memory of all worker processes.",
            lambda: sum(map(_resident_bytes, workers.processes())),
        )

    def _show(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A value that is read whenever it is requested."""
        Gauge(f"neuralviz_{name}", text, registry=self._registry).set_function(read)

    def note(self, run: Run[Any]) -> None:
        """Count a run that is over."""
        task = type(run.task).__name__
        self._runs.labels(task, run.status).inc()
        self._wait_seconds.observe(run.seconds_waited)
        if run.started:
            self._run_seconds.labels(task).observe(run.seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)


class _WorkersStarted(Collector):
    """A counter of the workers that were started, those in place of ended ones included."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "neuralviz_workers_started",
            "Worker processes started so far.",
            value=self._workers.n_started,
        )


def _count_runs(queue: RunQueue, lane: Lane, place: int) -> int:
    """Runs of a lane that wait, or that are under way."""
    return queue.n_by_lane()[lane][place]


def _resident_bytes(pid: int) -> int:
    """Bytes of memory that a process holds; 0 for one that has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
