"""A `RunRecord` as one file of plain arrays: nothing in it is ever unpickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.errors import SettingsError
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.settings import PRECISIONS, TuningSettings
from neuralviz.micro_tuning.watching import Predictions, TextReport
from neuralviz.models.tokens import TokenizedText

if TYPE_CHECKING:
    from pathlib import Path

_TEXT_ARRAYS = ("ids", "spans", "words", "unknown")
_PREDICTED_ARRAYS = ("input", "token", "before", "after", "loss_before", "loss_after")


def save_record(record: RunRecord, path: Path) -> None:
    """Write `record_bytes` to a file."""
    path.write_bytes(record_bytes(record))


def load_record(path: Path) -> RunRecord:
    """Read what `save_record` wrote; errors as of `read_record`."""
    return read_record(path.read_bytes(), path.name)


def record_bytes(record: RunRecord) -> bytes:
    """The content of a file with a run that is over, also one that was stopped.

    Deltas on the way are rounded to float16 where all are within its range; the latest are not, so
    that embeddings come back bit by bit.
    """
    arrays: dict[str, Any] = {
        "loss": record.loss,
        "delta_norm": record.delta_norm,
        **{f"deltas_{i}": _compact(history) for i, history in enumerate(record.history)},
        **{f"last_{i}": last for i, last in enumerate(record.last)},
    }
    metadata: dict[str, Any] = {
        "model_id": record.model_id,
        "settings": asdict(record.settings),
        "texts": record.texts,
        "diverged": sorted(record.diverged),
        "reached": record.reached,
        "reports": [],
    }
    for index, report in sorted(record.reports.items()):
        text, predictions = report.text, report.predictions
        arrays |= {f"{index}_text_{name}": getattr(text, name) for name in _TEXT_ARRAYS}
        arrays |= {f"{index}_{name}": getattr(predictions, name) for name in _PREDICTED_ARRAYS}
        if report.shares is not None:
            arrays[f"{index}_shares"] = report.shares
        metadata["reports"].append(
            {
                "index": index,
                "tokens": text.tokens,
                "chunks": [(chunk.start, chunk.stop) for chunk in text.chunks],
                "decay_share": report.decay_share,
                "loss_after": report.loss_after,
                "words_before": predictions.words_before,
                "words_after": predictions.words_after,
            }
        )
    return npz_bytes(metadata, arrays)


def _compact(values: np.ndarray) -> np.ndarray:
    """In float16 where all are within its range; those of a text that diverged may not be."""
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    return values if np.isinf(halves).any() else halves


def read_record(content: bytes, name: str = "the file") -> RunRecord:
    """The run that `record_bytes` made bytes of, also before it kept all that it keeps now.

    A file without a precision is of an exact run; one without `last` has the history of all texts;
    one that does not say how far the run has come is of a finished one.

    Args:
        content: of the file.
        name: of the file, for errors.

    Raises:
        SettingsError: it was made with a precision or settings that are not known here.
        ValueError: it is something else.
    """
    metadata, arrays = read_npz(content)
    settings = read_settings(metadata["settings"], name)
    record = RunRecord(metadata["model_id"], settings, metadata["texts"])
    record.loss, record.delta_norm = arrays["loss"], arrays["delta_norm"]
    n_kept = sum(f"deltas_{i}" in arrays for i in range(record.n_layers))  # 0 before a step
    record.history = [arrays[f"deltas_{i}"].astype(np.float32) for i in range(n_kept)]
    record.last = [
        arrays[f"last_{i}"].astype(np.float32) if f"last_{i}" in arrays else history[-1]
        for i, history in enumerate(record.history)
    ]
    record.diverged = set(metadata.get("diverged", ()))
    for entry in metadata["reports"]:
        record.reports[entry["index"]] = _read_report(arrays, entry, record.texts)
    record.reached = metadata.get("reached", {"texts_done": len(record.texts), "batch": 0})
    return record


def read_settings(values: dict[str, Any], file_name: str) -> TuningSettings:
    """Settings from their fields as JSON gives them; errors as of `read_record`."""
    if values.get("precision", "exact") not in PRECISIONS:
        raise SettingsError(
            f"{file_name} has the unknown precision “{str(values['precision'])[:40]}”. It "
            "may come from a newer version of neuralviz."
        )
    if values.keys() - {field.name for field in fields(TuningSettings)}:
        raise SettingsError(
            f"{file_name} has unknown settings. It may come from a newer version of neuralviz."
        )
    tuples = {
        "layers": tuple(values["layers"]),
        "betas": tuple(values["betas"]),
        "blueprints": tuple(Blueprint(*pair) for pair in values["blueprints"]),
    }
    return TuningSettings(**values | tuples)


def _read_report(
    arrays: Mapping[str, np.ndarray], entry: dict[str, Any], texts: Sequence[str]
) -> TextReport:
    index = entry["index"]

    def array(name: str) -> np.ndarray:
        return arrays[f"{index}_{name}"]

    return TextReport(
        index=index,
        text=TokenizedText(
            text=texts[index],
            tokens=tuple(entry["tokens"]),
            chunks=tuple(slice(*chunk) for chunk in entry["chunks"]),
            **{name: array(f"text_{name}") for name in _TEXT_ARRAYS},
        ),
        shares=array("shares") if f"{index}_shares" in arrays else None,
        decay_share=entry["decay_share"],
        predictions=Predictions(
            **{name: array(name) for name in _PREDICTED_ARRAYS},
            words_before=tuple(entry["words_before"]),
            words_after=tuple(entry["words_after"]),
        ),
        loss_after=entry["loss_after"],
    )
