"""Logs as JSON lines without users' input: of exceptions only the type and places."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from neuralviz.jobs.task import Run

_log = logging.getLogger(__name__)
_FIELDS = "fields"  # attribute of a record: values beside its message


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name.partition(".")[0] == "neuralviz"  # others may quote anything
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage() if is_ours else str(record.msg),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            line["exception"] = kind.__name__
            line["at"] = [
                f"{frame.filename}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(trace)
            ]
            if not is_ours:
                line["message"] = "Uncaught exception"
        return json.dumps(line, ensure_ascii=False)


def log_as_json() -> None:
    formatter = JsonFormatter()
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
    for name in [None, *logging.root.manager.loggerDict]:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(formatter)
    logging.getLogger("neuralviz").setLevel(logging.INFO)


def log_run(run: Run[Any]) -> None:
    """Log a finished run; a failed one as a warning, which every log shows."""
    fields = {
        "task": type(run.task).__name__,
        "status": run.status,
        "seconds": round(run.seconds, 3),
        "waited": round(run.seconds_waited, 3),
    }
    level, suffix = logging.INFO, ""
    if run.status == "failed":
        is_error = run.may_succeed_again
        fields["reason"] = "an error" if is_error else "texts or settings were refused"
        level, suffix = logging.WARNING, f": {fields['reason']}"
    values = (fields["task"], run.status, fields["seconds"], suffix)
    _log.log(level, "A run is over: %s, %s after %s s%s.", *values, extra={_FIELDS: fields})
