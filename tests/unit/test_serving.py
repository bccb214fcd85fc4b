"""What a server needs beside its pages: settings, memory, metrics, logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from neuralviz.errors import ModelError, SettingsError, ShouldStop, TextError
from neuralviz.jobs import RunQueue
from neuralviz.jobs.logs import JsonFormatter, log_run
from neuralviz.jobs.memory import spare_memory
from neuralviz.jobs.metrics import Metrics
from neuralviz.jobs.task import LatestTask
from neuralviz.models.shared import check_may_load
from neuralviz.server_settings import DEMO_LIMITS, OPEN_LIMITS, ServerSettings, server_settings

SECRET = "the text that somebody typed"


@dataclass(frozen=True)
class Say(LatestTask[str]):
    """Yields a text, or fails with it."""

    text: str = SECRET
    fails: bool = False

    @property
    def label(self) -> str:
        return "Saying"

    def events(self, should_stop: ShouldStop) -> Generator[str, None, None]:
        if self.fails:
            raise TextError(self.text)
        yield self.text


@pytest.fixture
def queue() -> Iterator[RunQueue]:
    queue = RunQueue()
    yield queue
    queue.close()


# --- settings ------------------------------------------------------------------------------------


def test_without_variables_nothing_is_limited() -> None:
    settings = server_settings()
    assert settings == ServerSettings()
    assert settings.max_texts is settings.max_runs is None


def test_each_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
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
        ("MAX_RUNS", "0", "NEURALVIZ_MAX_RUNS must be a whole number from 1 to 1,000, not “0”."),
        ("WORKERS", "two", "NEURALVIZ_WORKERS must be a whole number from 0 to 64, not “two”."),
        ("WORKERS", "-1", "NEURALVIZ_WORKERS must be a whole number from 0 to 64, not “-1”."),
        ("WORKERS", "²", "NEURALVIZ_WORKERS must be a whole number from 0 to 64, not “²”."),
        ("DEMO", "maybe", "NEURALVIZ_DEMO must be 1 or 0, not “maybe”."),
    ],
)
def test_a_variable_that_makes_no_sense(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(f"NEURALVIZ_{name}", value)
    with pytest.raises(SettingsError) as caught:
        server_settings()
    assert str(caught.value) == sentence


def test_limits_of_an_open_server_and_of_a_demo_leave_those_that_were_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NEURALVIZ_MAX_RUNS", "9")
    assert server_settings().for_network() == ServerSettings(
        open=True, **{**OPEN_LIMITS, "max_runs": 9}
    )
    monkeypatch.setenv("NEURALVIZ_DEMO", "1")
    assert server_settings() == ServerSettings(demo=True, **{**DEMO_LIMITS, "max_runs": 9})
    assert server_settings().for_network().max_texts == DEMO_LIMITS["max_texts"]


def test_a_demo_loads_no_model_by_name_or_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check_may_load("bert-base-uncased")
    monkeypatch.setenv("NEURALVIZ_DEMO", "1")
    check_may_load("bundled")
    for model_id in ("bert-base-uncased", str(tmp_path), "/etc/passwd", "~"):
        with pytest.raises(ModelError, match="This demo only uses the models that come with it"):
            check_may_load(model_id)


# --- memory --------------------------------------------------------------------------------------


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


# --- metrics -------------------------------------------------------------------------------------


def test_metrics_count_runs_by_task_and_end(queue: RunQueue) -> None:
    metrics = Metrics(queue, None)
    for task in (Say(), Say("another"), Say(fails=True)):
        assert queue.submit(task, lambda: True).wait(10)
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
    assert SECRET not in text


# --- logs ----------------------------------------------------------------------------------------


def test_a_line_of_the_log_says_how_a_run_ended_and_not_what_of(
    queue: RunQueue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "neuralviz")
    queue.at_every_end(log_run)
    queue.submit(Say(), lambda: True)
    queue.submit(Say(fails=True), lambda: True)
    assert queue.close(grace=10)
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert sorted((line["task"], line["status"]) for line in lines) == [
        ("Say", "done"),
        ("Say", "failed"),
    ]
    for line in lines:
        assert set(line) == {
            "time", "level", "logger", "message", "task", "status", "seconds", "waited",
        }  # fmt: skip
    assert SECRET not in json.dumps(lines)


@pytest.mark.parametrize("logger", ["neuralviz.jobs.run", "streamlit.runtime", "asyncio"])
def test_the_message_of_an_exception_is_not_written(
    logger: str, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        message = "The run failed." if logger.startswith("neuralviz") else f"Uncaught: {error}"
        logging.getLogger(logger).error(message, exc_info=True)
    line = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert SECRET not in json.dumps(line)
    assert line["exception"] == "KeyError"
    assert "test_serving.py" in line["at"][0]


def test_every_setting_is_in_the_docs() -> None:
    said = (Path(__file__).parents[2] / "docs" / "server.md").read_text()
    for one in fields(ServerSettings):
        assert f"| `NEURALVIZ_{one.name.upper()}` |" in said
    for one in ("max_texts", "max_characters", "max_runs", "max_upload_mb"):
        row = next(line for line in said.splitlines() if f"NEURALVIZ_{one.upper()}`" in line)
        assert f"open {OPEN_LIMITS[one]:,}; demo {DEMO_LIMITS[one]:,} |" in row
