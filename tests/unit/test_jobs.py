"""The queue: order, stopping, vanished owners, failures, limits."""

from __future__ import annotations

import threading

import pytest

from neuralviz.errors import NeuralvizError
from neuralviz.ui import jobs
from neuralviz.ui.jobs import Job, JobQueue


def here() -> bool:
    return True


def gone() -> bool:
    return False


class Gate:
    """Work that says when it has begun and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()

    def __call__(self, job: Job) -> None:
        job.add("begun")
        self.begun.set()
        while not self.open.wait(0.01):
            if job.should_stop():
                return
        job.add("ended")


def test_first_come_first_served() -> None:
    queue, gate, order = JobQueue(max_running=1), Gate(), []
    first = queue.submit("first", gate, "a", here)
    later = [queue.submit(str(i), lambda job: order.append(job.label), "a", here) for i in range(5)]
    assert gate.begun.wait(5)
    assert [queue.place_in_queue(job) for job in [first, *later]] == [0, 1, 2, 3, 4, 5]
    assert (first.status, later[0].status) == ("running", "queued")
    gate.open.set()
    assert all(job.wait(5) for job in later)
    assert order == ["0", "1", "2", "3", "4"]
    assert {job.status for job in [first, *later]} == {"done"}
    assert first.submitted <= first.started <= first.finished


def test_a_waiting_job_that_is_stopped_never_runs() -> None:
    queue, gate, ran = JobQueue(max_running=1), Gate(), []
    queue.submit("first", gate, "a", here)
    stopped = queue.submit("stopped", lambda job: ran.append(job), "a", here)
    last = queue.submit("last", lambda job: None, "a", here)
    stopped.stop()
    assert (stopped.status, stopped.is_over) == ("stopped", True)
    assert queue.place_in_queue(last) == 1
    gate.open.set()
    assert last.wait(5)
    assert ran == []


def test_a_running_job_that_is_stopped_keeps_its_events() -> None:
    gate = Gate()
    job = JobQueue().submit("stopped", gate, "a", here)
    assert gate.begun.wait(5)
    job.stop()
    assert job.wait(5)
    assert (job.status, job.events(), job.error) == ("stopped", ["begun"], None)


def test_a_job_that_ends_before_it_hears_of_the_stop_is_done() -> None:
    def deaf(job: Job) -> None:
        gate.begun.set()
        gate.open.wait(5)
        job.add("ended")

    gate = Gate()
    job = JobQueue().submit("deaf", deaf, "a", here)
    assert gate.begun.wait(5)
    job.stop()
    gate.open.set()
    assert job.wait(5)
    assert (job.status, job.events()) == ("done", ["ended"])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GONE_AFTER", 0.05)
    monkeypatch.setattr(jobs, "LOOK_EVERY", 0.01)


@pytest.mark.usefixtures("impatient")
def test_work_ends_with_its_owner() -> None:
    gate = Gate()
    job = JobQueue().submit("orphan", gate, "a", gone)
    assert job.wait(5)
    assert (job.status, job.events()) == ("stopped", ["begun"])


@pytest.mark.usefixtures("impatient")
def test_an_owner_who_comes_back_keeps_the_work() -> None:
    present = threading.Event()
    job = Job("blinking", "a", present.is_set)
    assert not job.should_stop()
    present.set()
    threading.Event().wait(0.1)
    assert not job.should_stop()


@pytest.mark.usefixtures("impatient")
def test_finished_jobs_of_vanished_owners_are_forgotten() -> None:
    queue = JobQueue()
    job = queue.submit("short", lambda job: None, "a", gone)
    assert job.wait(5)
    job.is_abandoned()
    threading.Event().wait(0.1)
    queue.submit("other", lambda job: None, "b", here)
    assert queue.jobs_of("a") == []
    assert queue.job(job.id) is None


def test_failures_become_sentences(caplog: pytest.LogCaptureFixture) -> None:
    def fail(error: Exception) -> Job:
        def work(job: Job) -> None:
            job.add("begun")
            raise error

        job = JobQueue().submit("failing", work, "a", here)
        assert job.wait(5)
        assert (job.status, job.events()) == ("failed", ["begun"])
        return job

    assert fail(NeuralvizError("The text is empty.")).error == "The text is empty."
    assert not caplog.records
    error = fail(ValueError("odd")).error
    assert error == "Something went wrong that was not foreseen (ValueError: odd)."
    assert "Traceback" in caplog.text


def test_finished_jobs_are_limited_by_number_and_by_events() -> None:
    queue = JobQueue(max_running=1, max_finished=3, max_events=25)

    def ten_events(job: Job) -> None:
        for i in range(10):
            job.add(i)

    for owner in ("a", "a", "b"):
        assert queue.submit(owner, ten_events, owner, here).wait(5)
    queue.submit("short", lambda job: None, "b", here).wait(5)
    assert (len(queue.jobs_of("a")), len(queue.jobs_of("b"))) == (1, 2)
    for i in range(9):
        queue.submit(str(i), lambda job: None, "b", here).wait(5)
    assert [job.label for job in queue.jobs_of("b")] == ["5", "6", "7", "8"]


def test_many_submit_at_once() -> None:
    queue, running, most = JobQueue(max_running=3, max_finished=1000), [0], [0]
    lock = threading.Lock()

    def work(job: Job) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        job.advance(1, 1)
        with lock:
            running[0] -= 1

    def submit(owner: str) -> None:
        for _ in range(20):
            queue.submit("one of many", work, owner, here)

    threads = [threading.Thread(target=submit, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [job for i in range(8) for job in queue.jobs_of(str(i))]
    assert all(job.wait(5) for job in everything)
    assert len({job.id for job in everything}) == 160
    assert most[0] <= 3
    assert {(job.status, job.count, job.total) for job in everything} == {("done", 1, 1)}
