"""The queue: order, stopping, vanished owners, failures."""

from __future__ import annotations

import threading

import pytest

from neuralviz.errors import NeuralvizError
from neuralviz.jobs import queue as jobs
from neuralviz.jobs.queue import Job, JobQueue


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
    first = queue.submit("first", gate, here)
    later = [queue.submit(str(i), lambda job: order.append(job.label), here) for i in range(5)]
    assert gate.begun.wait(5)
    assert [queue.place_in_queue(job) for job in [first, *later]] == [0, 1, 2, 3, 4, 5]
    assert (first.status, later[0].status) == ("running", "queued")
    gate.open.set()
    assert all(job.wait(5) for job in later)
    assert order == ["0", "1", "2", "3", "4"]
    assert {job.status for job in [first, *later]} == {"done"}
    assert first.started <= first.finished


def test_a_waiting_job_that_is_stopped_never_runs() -> None:
    queue, gate, ran = JobQueue(max_running=1), Gate(), []
    queue.submit("first", gate, here)
    stopped = queue.submit("stopped", lambda job: ran.append(job), here)
    last = queue.submit("last", lambda job: None, here)
    stopped.stop()
    assert (stopped.status, stopped.is_over) == ("stopped", True)
    assert queue.place_in_queue(last) == 1
    gate.open.set()
    assert last.wait(5)
    assert ran == []


def test_a_running_job_that_is_stopped_keeps_its_events() -> None:
    gate = Gate()
    job = JobQueue().submit("stopped", gate, here)
    assert gate.begun.wait(5)
    job.stop()
    assert job.wait(5)
    assert (job.status, job.take(), job.error) == ("stopped", ["begun"], None)


def test_a_job_that_ends_before_it_hears_of_the_stop_is_done() -> None:
    def deaf(job: Job) -> None:
        gate.begun.set()
        gate.open.wait(5)
        job.add("ended")

    gate = Gate()
    job = JobQueue().submit("deaf", deaf, here)
    assert gate.begun.wait(5)
    job.stop()
    gate.open.set()
    assert job.wait(5)
    assert (job.status, job.take()) == ("done", ["ended"])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GONE_AFTER", 0.05)
    monkeypatch.setattr(jobs, "LOOK_EVERY", 0.01)


@pytest.mark.usefixtures("impatient")
def test_work_ends_with_its_owner() -> None:
    gate = Gate()
    job = JobQueue().submit("orphan", gate, gone)
    assert job.wait(5)
    assert (job.status, job.take()) == ("stopped", ["begun"])


@pytest.mark.usefixtures("impatient")
def test_an_owner_who_comes_back_keeps_the_work() -> None:
    present = threading.Event()
    job = Job("blinking", present.is_set)
    assert not job.should_stop()
    present.set()
    threading.Event().wait(0.1)
    assert not job.should_stop()


def test_failures_become_sentences(caplog: pytest.LogCaptureFixture) -> None:
    def fail(error: Exception) -> Job:
        def work(job: Job) -> None:
            job.add("begun")
            raise error

        job = JobQueue().submit("failing", work, here)
        assert job.wait(5)
        assert (job.status, job.take()) == ("failed", ["begun"])
        return job

    assert fail(NeuralvizError("The text is empty.")).error == "The text is empty."
    assert not caplog.records
    error = fail(ValueError("odd")).error
    assert error == "Something went wrong that was not foreseen (ValueError: odd)."
    assert "Traceback" in caplog.text


def test_events_are_taken_once_and_in_order() -> None:
    job = Job("counting", here)
    for i in range(5):
        job.add(i)
    assert job.take() == [0, 1, 2, 3, 4]
    job.add(5)
    assert job.take() == [5]
    assert job.take() == []


def test_many_submit_at_once() -> None:
    queue, running, most = JobQueue(max_running=3), [0], [0]
    everything: list[Job] = []
    lock = threading.Lock()

    def work(job: Job) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        job.add("ran")
        with lock:
            running[0] -= 1

    def submit() -> None:
        everything.extend(queue.submit("one of many", work, here) for _ in range(20))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(job.wait(5) for job in everything)
    assert len(everything) == 160
    assert most[0] <= 3
    assert {(job.status, *job.take()) for job in everything} == {("done", "ran")}


# --- the end of the process ----------------------------------------------------------------------


def test_closing_ends_what_runs_and_what_waits() -> None:
    queue, gate, ran = JobQueue(max_running=1), Gate(), []
    running = queue.submit("running", gate, here)
    waiting = queue.submit("waiting", lambda job: ran.append(job), here)
    assert gate.begun.wait(5)
    assert queue.close()
    late = queue.submit("late", lambda job: ran.append(job), here)
    assert [job.status for job in (running, waiting, late)] == ["stopped"] * 3
    assert ran == []


def test_closing_does_not_wait_for_ever() -> None:
    queue, begun, hang = JobQueue(), threading.Event(), threading.Event()

    def deaf(job: Job) -> None:
        begun.set()
        hang.wait(20)

    queue.submit("deaf", deaf, here)
    assert begun.wait(5)
    assert not queue.close(seconds=0.05)
    hang.set()
