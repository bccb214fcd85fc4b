"""What a server needs beside its pages: settings, memory, metrics, logs."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from streamlit.runtime.scriptrunner.exec_code import modified_sys_path

from neuralviz.errors import (
    ModelError,
    SettingsError,
    ShouldStop,
    StoreError,
    TextError,
    describe_unexpected,
)
from neuralviz.files import why_not_writable
from neuralviz.jobs import RunQueue
from neuralviz.jobs.logs import JsonFormatter, log_run
from neuralviz.jobs.queue import spare_memory
from neuralviz.jobs.task import LatestTask
from neuralviz.jobs.workers import Workers
from neuralviz.models.shared import check_may_load
from neuralviz.reading.texts import ReadTexts
from neuralviz.server_settings import DEMO_LIMITS, OPEN_LIMITS, ServerSettings, server_settings
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.database import Database
from neuralviz.training.record import hold_training
from neuralviz.ui import NAVIGATION, server
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.server import Metrics
from tests.support.tasks import submit
from tests.support.waiting import wait_until

SECRET = "the text that somebody typed"


@dataclass(frozen=True)
class Say(LatestTask[str]):
    """Yields a text, or fails with it."""

    text: str = SECRET
    fails: bool = False

    def events(self, should_stop: ShouldStop) -> Generator[str, None, None]:
        if self.fails:
            raise TextError(self.text)
        yield self.text


GO_ON = threading.Event()


@dataclass(frozen=True)
class Hangs(LatestTask[str]):
    """Does not look whether it should stop."""

    def events(self, should_stop: ShouldStop) -> Generator[str, None, None]:
        yield "something"
        GO_ON.wait(20)


@pytest.fixture
def queue() -> Iterator[RunQueue]:
    queue = RunQueue()
    yield queue
    queue.close()


def test_each_variable_is_read(monkeypatch) -> None:
    assert server_settings() == ServerSettings()
    for name, value in {
        "WORKERS": "0", "PRIVATE": "1", "MAX_TEXTS": "10", "MAX_CHARACTERS": "1000",
        "MAX_RUNS": "3", "MAX_UPLOAD_MB": "7", "KEEP_DAYS": "30", "SPARE_MEMORY_MB": "0",
        "UNWATCHED_SECONDS": "60", "GRACE_SECONDS": "60", "JSON_LOGS": "yes",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"NEURALVIZ_{name}", value)
    assert server_settings() == ServerSettings(
        workers=0, private=True, max_texts=10, max_characters=1000, max_runs=3, max_upload_mb=7,
        keep_days=30, spare_memory_mb=0, unwatched_seconds=60, grace_seconds=60, json_logs=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MAX_RUNS", "0", "NEURALVIZ_MAX_RUNS must be a whole number, at least 1, not “0”."),
        ("WORKERS", "two", "NEURALVIZ_WORKERS must be a whole number, at least 0, not “two”."),
        ("WORKERS", "²", "NEURALVIZ_WORKERS must be a whole number, at least 0, not “²”."),
        ("DEMO", "maybe", "NEURALVIZ_DEMO must be 1 or 0, not “maybe”."),
    ],
)
def test_a_variable_that_makes_no_sense(monkeypatch, name: str, value: str, sentence: str) -> None:
    monkeypatch.setenv(f"NEURALVIZ_{name}", value)
    with pytest.raises(SettingsError) as caught:
        server_settings()
    assert str(caught.value) == sentence


def test_limits_of_an_open_server_and_of_a_demo_leave_those_that_were_set(monkeypatch) -> None:
    monkeypatch.setenv("NEURALVIZ_MAX_RUNS", "9")
    assert server_settings().for_network() == ServerSettings(
        open=True, **{**OPEN_LIMITS, "max_runs": 9}
    )
    monkeypatch.setenv("NEURALVIZ_DEMO", "1")
    assert server_settings() == ServerSettings(demo=True, **{**DEMO_LIMITS, "max_runs": 9})
    assert server_settings().for_network().max_texts == DEMO_LIMITS["max_texts"]


def test_a_demo_loads_no_model_by_name_or_path(monkeypatch, tmp_path: Path) -> None:
    check_may_load("bert-base-uncased")
    monkeypatch.setenv("NEURALVIZ_DEMO", "1")
    check_may_load("bundled")
    for model_id in ("bert-base-uncased", str(tmp_path), "/etc/passwd", "~"):
        with pytest.raises(ModelError, match="This demo only uses the models that come with it"):
            check_may_load(model_id)


def test_memory_is_that_of_the_container_where_it_has_less(tmp_path: Path) -> None:
    machine = spare_memory(tmp_path)
    assert machine > 0
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert spare_memory(tmp_path) == pytest.approx(machine, rel=0.5)
    (tmp_path / "memory.max").write_text("5000\n")
    assert spare_memory(tmp_path) == 4000
    (tmp_path / "memory.current").write_text("6000\n")
    assert spare_memory(tmp_path) == 0


def test_a_page_that_is_drawn_leaves_the_import_path_alone(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    server.fix_import_path()
    before = list(sys.path)
    with modified_sys_path(str(NAVIGATION)):  # as Streamlit runs a script
        assert sys.path == before


def test_metrics_count_runs_by_task_and_end(queue: RunQueue) -> None:
    metrics = Metrics(queue, Workers(n=1))
    for task in (Say(), Say("another"), Say(fails=True)):
        assert submit(queue, task).wait(10)
    assert queue.close()
    text = metrics.text().decode()
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["neuralviz_runs_total", "Say", "done"] == 2
    assert found["neuralviz_runs_total", "Say", "failed"] == 1
    assert found["neuralviz_run_seconds_count", "Say"] == 3
    assert found["neuralviz_wait_seconds_count",] == 3
    assert found["neuralviz_runs_waiting", "long"] == found["neuralviz_runs_running", "long"] == 0
    assert found["neuralviz_spare_memory_bytes",] > 0
    assert found["process_resident_memory_bytes",] > 0
    assert found["neuralviz_workers_started_total",] == found["neuralviz_workers",] == 0
    assert SECRET not in text


def test_a_line_of_the_log_says_how_a_run_ended_and_not_what_of(queue: RunQueue, caplog) -> None:
    caplog.set_level(logging.INFO, "neuralviz")
    queue.at_every_end(log_run)
    submit(queue, Say())
    submit(queue, Say(fails=True))
    assert queue.close(grace=10)
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert sorted(line["status"] for line in lines) == ["done", "failed"]
    assert {line["task"] for line in lines} == {"Say"}
    for line in lines:
        assert {"time", "level", "seconds", "waited"} <= set(line)
        assert ("reason" in line) == (line["status"] == "failed")
    assert SECRET not in json.dumps(lines)
    assert [record.levelname for record in caplog.records if "failed" in record.getMessage()] == [
        "WARNING"  # which is shown where nobody has asked for a log
    ]


def test_a_run_that_the_end_of_the_server_cuts_leaves_a_line_and_its_result(caplog) -> None:
    caplog.set_level(logging.INFO, "neuralviz")
    queue, kept = RunQueue(), []
    queue.at_every_end(log_run)
    run = submit(queue, Hangs(), at_end=lambda run: kept.append(run.status))
    wait_until(lambda: run.result)
    assert not queue.close(seconds=0.1)
    assert (run.status, run.result, kept) == ("stopped", "something", ["stopped"])
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "The server ends: 1 run stopped in the middle."
    assert said[1].startswith("A run is over: Hangs, stopped after ")
    GO_ON.set()
    wait_until(lambda: not queue.n_unfinished())
    assert kept == ["stopped"]  # the work's own end comes too late
    assert len(caplog.records) == 2


NO_FOLDER = Path("/proc/neuralviz")  # which nobody can make, root neither
TO_VISITORS = (
    "This server cannot write to its data folder. Tell whoever runs it: its log says why. "
    "Nothing saved earlier was lost."
)


def fail_to_save(how: str) -> str:
    """What is said where nothing can be written to a folder."""
    with pytest.raises(StoreError) as caught:
        if how == "corpus":
            CorpusStore(NO_FOLDER).add("mine", ReadTexts(("A text.", "Another.")))
        elif how == "training":
            with hold_training(NO_FOLDER):
                pass
        else:
            raise Database(NO_FOLDER).refusal(how)
    return str(caught.value)


@pytest.mark.parametrize(
    "how", ["corpus", "training", "No space left", "lance: /proc/neuralviz/tables broke"]
)
def test_visitors_do_not_read_of_folders_and_the_log_does(how, tmp_path, monkeypatch, caplog):
    own = fail_to_save(how)
    assert str(NO_FOLDER) in own
    assert not caplog.records
    for name in ("OPEN", "DEMO"):
        caplog.clear()
        with monkeypatch.context() as environment:
            environment.setenv(f"NEURALVIZ_{name}", "1")
            assert fail_to_save(how) == TO_VISITORS
        assert [record.getMessage() for record in caplog.records] == [own]
        assert str(NO_FOLDER) in JsonFormatter().format(caplog.records[0])
    (tmp_path / "format.json").write_text("{")
    monkeypatch.setenv("NEURALVIZ_OPEN", "1")
    with pytest.raises(StoreError, match=r"^This server cannot read its data folder. Tell whoever"):
        Database(tmp_path)


def test_an_unforeseen_error_names_no_file() -> None:
    try:
        (NO_FOLDER / "file").write_text("")
    except OSError as error:
        said = describe_unexpected(error)
    assert said == "Unexpected error: FileNotFoundError: No such file or directory."
    assert describe_unexpected(OSError("broken")) == "Unexpected error: OSError: broken."


def test_a_folder_is_tried_with_all_in_it(tmp_path: Path, monkeypatch) -> None:
    assert why_not_writable(tmp_path / "new") == ""
    assert [one.name for one in tmp_path.rglob("*")] == ["new"]
    assert why_not_writable(NO_FOLDER).startswith(f"Cannot write to {NO_FOLDER}: ")
    (tmp_path / "corpora").mkdir()
    make = tempfile.TemporaryFile

    def of_another_user(**where: Path) -> object:
        if where["dir"].name == "corpora":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return make(**where)

    monkeypatch.setattr(tempfile, "TemporaryFile", of_another_user)
    expected = f"Cannot write to {tmp_path / 'corpora'}: Permission denied."
    assert why_not_writable(tmp_path) == expected


def test_a_server_is_not_ready_while_it_cannot_save(monkeypatch, tmp_path: Path, caplog) -> None:
    monkeypatch.setattr(server, "run_queue", lambda _make: RunQueue())
    monkeypatch.setattr(server, "_start_workers", lambda _workers: None)
    monkeypatch.setattr(server.sys, "setswitchinterval", lambda _seconds: None)
    monkeypatch.setattr(server.Workers, "is_ready", lambda _self: True)
    monkeypatch.setenv("NEURALVIZ_WORKERS", "1")
    effective_settings.cache_clear()
    served = server.Server()
    for folder, why_not, n_lines in (
        (NO_FOLDER, "The server cannot write to its data folder.", 1),
        (NO_FOLDER, "The server cannot write to its data folder.", 1),  # said once
        (tmp_path, "", 1),
        (NO_FOLDER, "The server cannot write to its data folder.", 2),
    ):
        monkeypatch.setenv("NEURALVIZ_HOME", str(folder))
        assert served.why_not_ready() == why_not
        assert len(caplog.records) == n_lines
    assert caplog.records[0].getMessage().startswith(f"Cannot write to {NO_FOLDER}: ")
    effective_settings.cache_clear()


@pytest.mark.parametrize("logger", ["neuralviz.jobs.task", "streamlit.runtime", "asyncio"])
def test_the_message_of_an_exception_is_not_written(logger: str, caplog) -> None:
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        message = "The run failed." if logger.startswith("neuralviz") else f"Uncaught: {error}"
        logging.getLogger(logger).error(message, exc_info=True)
    line = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert SECRET not in json.dumps(line)
    assert line["exception"] == "KeyError"
    assert "test_serving.py" in line["at"][0]
