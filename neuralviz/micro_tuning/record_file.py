"""A `RunRecord` as one file of plain arrays: nothing in it is ever unpickled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.arrays import RecordFormat
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.micro_tuning.watching import Predictions, TextReport
from neuralviz.models.tokens import TokenizedText

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RECORD_FORMAT = RecordFormat(
    "a run", version=1, classes=(Blueprint, Predictions, TextReport, TokenizedText, TuningSettings)
)


def save_record(record: RunRecord, path: Path) -> None:
    """Write `record_bytes` to a file."""
    path.write_bytes(record_bytes(record))


def load_record(path: Path) -> RunRecord:
    """Read what `save_record` wrote; errors as of `read_record`."""
    return read_record(path.read_bytes())


def record_bytes(record: RunRecord) -> bytes:
    """The content of a file with a run that is over, also one that was stopped.

    Deltas on the way are rounded to float16 where all are within its range; the latest are not, so
    that embeddings come back bit by bit.
    """
    return RECORD_FORMAT.pack(vars(record) | {"history": _round_to_halves(record.history)})


def _round_to_halves(history: Sequence[np.ndarray]) -> list[np.ndarray]:
    """In float16 where all values are within its range, which those that diverged may not be."""
    with np.errstate(over="ignore"):
        halves = [values.astype(np.float16) for values in history]
    return [
        values if np.isinf(half).any() else half
        for values, half in zip(history, halves, strict=True)
    ]


def read_record(content: bytes) -> RunRecord:
    """The run that `record_bytes` made bytes of.

    Raises:
        ValueError: it is something else.
    """
    values = RECORD_FORMAT.unpack(content)
    try:
        record = RunRecord(values["model_id"], values["settings"], values["texts"])
        vars(record).update(values)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("This is no file of a run.") from error
    record.history = [deltas.astype(np.float32) for deltas in record.history]
    return record
