"""Data sets of the command line: files, the sample data, the Hub, and tasks made from texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralviz.cli.common import print_message, status
from neuralviz.embedders import split_options
from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.evaluation.hub_data import PREFIX, load_hub_data
from neuralviz.evaluation.probing_tasks import TASKS, probing_task
from neuralviz.evaluation.tables import MAX_ROWS, make_data
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import read_texts

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet, Thresholds


RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE=COLUMN",
        help=(
            "Assign a role (text1, text2, score, text, group, label, …) to a column "
            "with another name. Repeatable."
        ),
    ),
]


def split_roles(typed: Sequence[str] | None) -> dict[str, str]:
    """The column of each role, from options as typed.

    Raises:
        SettingsError: an option is no pair, or a role comes twice.
    """
    return split_options(typed or [], "role", "ROLE=COLUMN")


def read_sets(
    names: Sequence[str],
    roles: Mapping[str, str],
    thresholds: Thresholds,
    limit: int | None,
    tasks: Sequence[str] = (),
    header: int | None = None,
) -> list[DataSet]:
    """Read data sets under different names; print what was left out of them.

    Args:
        names: of files, of the sample data, or of data sets on the Hub.
        roles: role to column.
        thresholds: of scores.
        limit: rows that are read.
        tasks: of `TASKS`, each to be made from the texts of each; none for the data as they are.
        header: of the files, as of `Source`.

    Raises:
        NeuralvizError: a data set cannot be read, or a task cannot be made.
    """
    for bound in (thresholds.similar, thresholds.dissimilar):
        if bound is not None and not math.isfinite(bound):
            raise SettingsError("--similar and --dissimilar must be numbers.")
    for task in tasks:
        if task not in TASKS:
            raise SettingsError(f"Unknown task “{task[:40]}”. Choose from: {', '.join(TASKS)}.")
    once = list(dict.fromkeys(names))
    max_rows = MAX_ROWS if limit is None else limit
    if tasks:
        read = [_texts(name, roles, max_rows, header) for name in once]
        called = _names_apart([name for name, _ in read], once)
        task_sets: list[DataSet] = [
            probing_task(task, name, texts)
            for name, (_, texts) in zip(called, read, strict=True)
            for task in dict.fromkeys(tasks)
        ]
        for data_set in task_sets:
            _print_notes(data_set.notes)
        return task_sets
    sets = [_read(name, roles, thresholds, max_rows, header) for name in once]
    called = _names_apart([data_set.name for data_set in sets], once)
    return [replace(data_set, name=name) for data_set, name in zip(sets, called, strict=True)]


def _names_apart(names: Sequence[str], in_full: Sequence[str]) -> Sequence[str]:
    """The names; in full where files in several folders have the same name."""
    return names if len(set(names)) == len(names) else in_full


def _read(
    name: str,
    roles: Mapping[str, str],
    thresholds: Thresholds,
    max_rows: int,
    header: int | None,
) -> DataSet:
    """A data set, from a file, the sample data or the Hub."""
    if name.startswith(PREFIX):
        with status(f"Loading {name} …"):
            data = load_hub_data(name, roles, thresholds=thresholds, max_rows=max_rows)
    else:
        path = _path(name)
        try:
            table = read_table(Source.from_path(path, header), max_rows=max_rows)
            header_note = table.describe_header(path.name)
            if header_note:
                print_message(header_note)
            data = make_data(path.name, table, roles, thresholds=thresholds)
        except OSError as error:
            raise _read_error(path, error) from error
    _print_notes(data.notes)
    return data


def _texts(
    name: str, roles: Mapping[str, str], max_rows: int, header: int | None
) -> tuple[str, Sequence[str]]:
    """The name and the texts of a file, with labels or without, or of a data set on the Hub.

    Raises:
        SettingsError: a role other than that of the text is given.
    """
    if extra_roles := set(roles) - {"text"}:
        raise SettingsError(
            "A task is made from the texts alone. "
            f"Remove the role {', '.join(sorted(extra_roles))}."
        )
    if name.startswith(PREFIX):
        with status(f"Loading {name} …"):
            data = load_hub_data(name, roles, max_rows=max_rows)
        return data.name, data.texts
    path = _path(name)
    try:
        read = read_texts(Source.from_path(path, header), roles.get("text"), max_texts=max_rows)
    except OSError as error:
        raise _read_error(path, error) from error
    _print_notes(list(filter(None, (read.describe_header(path.name), *read.notes))))
    if read.column is not None and len(read.columns) > 1 and "text" not in roles:
        print_message(f"{path.name}: the texts are those of the column “{read.column[:40]}”.")
    return path.name, read.texts


def _path(name: str) -> Path:
    """The file of a name; that of the sample data where no other file has the name."""
    path = Path(name)
    sample = sample_data() / path.name
    return sample if not path.exists() and path.name == name and sample.is_file() else path


def _read_error(path: Path, error: OSError) -> NeuralvizError:
    return NeuralvizError(f"Could not read {path}: {error.strerror or error}.")


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print_message(note)
