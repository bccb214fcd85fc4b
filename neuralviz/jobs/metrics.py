"""A server's metrics for Prometheus, without any content of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psutil
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from neuralviz.jobs.queue import spare_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from neuralviz.jobs import Run
    from neuralviz.jobs.queue import RunQueue
    from neuralviz.jobs.workers import Workers

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600)  # upper ends of the histograms' bins


class Metrics:
    def __init__(self, queue: RunQueue, workers: Workers | None) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_StateCollector(queue, workers))
        self._runs = Counter(
            "neuralviz_runs", "Runs that have ended.", ["task", "status"], registry=registry
        )
        self._run_seconds = Histogram(
            "neuralviz_run_seconds",
            "How long the work of a run took.",
            ["task"],
            buckets=SECONDS,
            registry=registry,
        )
        self._wait_seconds = Histogram(
            "neuralviz_wait_seconds",
            "How long a run waited for its turn.",
            buckets=SECONDS,
            registry=registry,
        )
        queue.at_every_end(self.note)

    def note(self, run: Run[Any]) -> None:
        task = type(run.task).__name__
        self._runs.labels(task, run.status).inc()
        self._wait_seconds.observe(run.seconds_waited)
        if run.started:
            self._run_seconds.labels(task).observe(run.seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _StateCollector(Collector):
    """The current state, read at every request."""

    def __init__(self, queue: RunQueue, workers: Workers | None) -> None:
        self._queue, self._workers = queue, workers

    def collect(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "neuralviz_runs_waiting", "Runs that wait for their turn.", labels=["lane"]
        )
        running = GaugeMetricFamily("neuralviz_runs_running", "Runs under way.", labels=["lane"])
        for lane, counts in self._queue.n_by_lane().items():
            waiting.add_metric([lane], counts[0])
            running.add_metric([lane], counts[1])
        yield from (waiting, running)
        yield GaugeMetricFamily(
            "neuralviz_spare_memory_bytes", "Memory left for new work.", spare_memory()
        )
        if self._workers is None:
            return
        pids = self._workers.processes()
        yield GaugeMetricFamily("neuralviz_workers", "Worker processes that are there.", len(pids))
        yield CounterMetricFamily(
            "neuralviz_workers_started", "Worker processes started so far.", self._workers.n_started
        )
        yield GaugeMetricFamily(
            "neuralviz_worker_memory_bytes",
            "Resident memory of all worker processes.",
            sum(map(_resident_bytes, pids)),
        )


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
