"""Folders that ``save_to_disk`` of the package ``datasets`` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralviz.errors import TextError
from neuralviz.reading.arrow_tables import Columns, check_damage, read_batches, read_schema
from neuralviz.words import joined

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.reading.table import Table

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


def is_saved_data_set(folder: Path) -> bool:
    """Whether a folder holds a saved data set, or several splits of one."""
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def find_split(name: str, folder: Path, split: str | None = None) -> Path:
    """The folder of a split, which may be the folder itself.

    Args:
        name: of the folder, for messages.
        folder: of a saved data set.
        split: its name; not needed where there is only one.

    Raises:
        TextError: there are several, or there is none of this name.
    """
    if not (folder / SPLITS).is_file():
        return folder
    splits = [one for one in _read_json(name, folder / SPLITS).get("splits", []) if _is_name(one)]
    if split in splits or (split is None and len(splits) == 1):
        return folder / (split or splits[0])
    named = joined([f"“{one}”" for one in splits]) if splits else "none"
    raise TextError(
        f"{name} is a saved data set whose splits are: {named}. Choose one of their folders, such "
        f"as {name}/{splits[0] if splits else 'train'}."
    )


def read_saved(name: str, folder: Path, max_rows: int | None) -> Table:
    """The columns of texts and labels of a saved data set; see `read_table`.

    Raises:
        TextError: it has several splits, or a file is missing or damaged.
    """
    with check_damage(name):
        columns, batches = _open_all(name, find_split(name, folder))
        return read_batches(name, columns, batches, max_rows)


def saved_columns(
    name: str, folder: Path, split: str | None, max_rows: int
) -> dict[str, Sequence[Any]]:
    """The values of a saved data set by column, one row more than ``max_rows`` at most.

    Raises:
        TextError: as of `find_split` and `read_saved`.
    """
    with check_damage(name):
        columns, batches = _open_all(name, find_split(name, folder, split))
        values: dict[str, list[Any]] = {title: [] for title in columns.names}
        n_rows = 0
        for batch in batches:
            for title, column in zip(columns.names, batch.columns, strict=True):
                values[title] += column.to_pylist()
            n_rows += len(batch)
            if n_rows > max_rows:
                break
    return {title: column[: max_rows + 1] for title, column in values.items()}


def _open_all(name: str, folder: Path) -> tuple[Columns, Iterator[pa.RecordBatch]]:
    """The columns of texts and labels of a data set, and their batches, in its order."""
    listed = _read_json(name, folder / STATE).get("_data_files") or []
    files = [str(part.get("filename")) for part in listed if isinstance(part, dict)]
    if not files or not all(map(_is_name, files)):
        raise TextError(f"{name} is a damaged data set: {STATE} names no files.")
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise TextError(f"{name} is not whole: {missing[0]} is missing. Copy the folder again.")

    with (folder / files[0]).open("rb") as content:
        columns = Columns.of(read_schema(name, content))

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            with (folder / file).open("rb") as content:
                yield from columns.batches(name, content)

    return columns, batches()


def _read_json(name: str, path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TextError(f"{name} is a damaged data set: {path.name} cannot be read.") from error
    return about if isinstance(about, dict) else {}


def _is_name(name: object) -> bool:
    """Whether it names something inside a folder, and nothing outside it."""
    return isinstance(name, str) and Path(name).name == name and name not in ("", ".", "..")
