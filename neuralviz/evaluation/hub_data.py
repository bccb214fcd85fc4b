"""Data sets of the Hugging Face hub, by the package ``datasets``; their code is never run.

``ID[:CONFIG[:SPLIT]]``, where ID is one of `HUB_DATA`, any on the hub, or a folder with a copy; or
``FOLDER:SPLIT`` of ``save_to_disk``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from neuralviz.errors import NeuralvizError, SettingsError, shorten_reason
from neuralviz.evaluation.data import BY_RANGE, DataSet, GroupedData, Thresholds, grouped_data
from neuralviz.evaluation.tables import MAX_ROWS, make_data
from neuralviz.models.hub import NETWORK_SECONDS, ask_hub
from neuralviz.reading.arrow_tables import STATE, is_saved_data_set, read_saved_columns
from neuralviz.reading.lines import tidy
from neuralviz.reading.table import Table, cell_text

PREFIX = "hf:"
_SCORES = ("similarity_score", "score", "similarity", "label")  # of pairs of sentences


class HubData(NamedTuple):
    repo: str
    config: str | None
    split: str


HUB_DATA = {
    "stsb": HubData("PhilipMay/stsb_multi_mt", "en", "test"),
    "mrpc": HubData("nyu-mll/glue", "mrpc", "train"),
    "asset": HubData("facebook/asset", "simplification", "test"),
    "summeval": HubData("mteb/summeval", None, "test"),
}

Columns = Mapping[str, Sequence[Any]]


def load_hub_data(
    name: str,
    roles: Mapping[str, str] | None = None,
    *,
    thresholds: Thresholds = BY_RANGE,
    max_rows: int = MAX_ROWS,
) -> DataSet:
    """Load ``ID[:CONFIG[:SPLIT]]``; NeuralvizError if out of reach, else errors of `read_data`."""
    repo, config, split = [*name.removeprefix(PREFIX).split(":", 2), "", ""][:3]
    if not repo.strip():
        raise SettingsError(
            f"Enter the name of a data set after {PREFIX}, such as {PREFIX}stsb. Short "
            f"names: {', '.join(HUB_DATA)}."
        )
    benchmark = ""  # that was published
    if (known := HUB_DATA.get(repo.lower())) is not None:
        if config in ("", known.config) and split in ("", known.split):
            benchmark = repo.lower()
        repo, config, split = known.repo, config or known.config or "", split or known.split
    split = split or "test"
    columns = _columns(repo, config, split, max_rows)
    n_rows = max(map(len, columns.values()), default=0)
    notes: tuple[str, ...] = ()
    if n_rows > max_rows:
        columns = {column: values[:max_rows] for column, values in columns.items()}
        notes, benchmark = (f"Limited to the first {max_rows:,} rows of {repo}.",), ""
    label = repo if (Path(repo) / STATE).is_file() else f"{repo}:{split}"
    data: DataSet | None = _of_lists(label, columns)
    if data is None:
        roles = dict(roles or {})
        scores = [column for column in _SCORES if column in columns]
        if {"sentence1", "sentence2"} <= columns.keys() and scores:
            roles.setdefault("score", scores[0])
        data = make_data(label, _as_table(columns), roles, thresholds=thresholds)
    return replace(data, notes=notes + data.notes, benchmark=benchmark or data.benchmark)


def _columns(repo: str, config: str, split: str, max_rows: int) -> Columns:
    """Values by column, a few more rows than ``max_rows`` if there are."""
    folder = Path(repo)
    if is_saved_data_set(folder):
        return read_saved_columns(repo, folder, config or split, max_rows)
    rows = _load(repo, config, split)
    rows = rows.select(range(min(len(rows), max_rows + 1)))
    return {column: rows[column] for column in rows.column_names}


def _load(repo: str, config: str, split: str) -> Any:
    try:
        from datasets import load_dataset
        from datasets.exceptions import DatasetNotFoundError
        from datasets.utils.logging import disable_progress_bar
    except ImportError as error:
        raise NeuralvizError(
            "Data sets on the Hub need the package “datasets”. Install it with `pip install "
            "datasets`, or save the data as CSV and use that file."
        ) from error
    if not Path(repo).is_dir():
        _ask_for(repo)
    disable_progress_bar()
    try:
        return load_dataset(repo, config or None, split=split)
    except (DatasetNotFoundError, ConnectionError, FileNotFoundError, OSError) as error:
        raise NeuralvizError(
            f"The data set {repo} is not available: it is not on this machine and could not "
            "be downloaded from the Hub. Use a folder with a copy of it, or a CSV file."
        ) from error
    except Exception as error:  # whatever a format of theirs may run into
        reason = shorten_reason(error)
        raise NeuralvizError(f"Could not read the data set {repo}: {reason}.") from error


def _ask_for(repo: str) -> None:
    """Raise NeuralvizError within seconds, without retries, if the hub cannot be reached."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return  # `datasets` takes what is in its cache
    answer = ask_hub(lambda hub: hub.dataset_info(repo, timeout=NETWORK_SECONDS))
    if isinstance(answer, Exception):
        raise NeuralvizError(
            f"The data set {repo} is not available: there is no network connection, or the "
            "Hub has no such data set. Use a folder with a copy of it, or a CSV file. Set "
            "HF_HUB_OFFLINE=1 to use a copy that was downloaded earlier."
        ) from answer


# --- formats -------------------------------------------------------------------------------------


def _as_table(columns: Columns) -> Table:
    values = [[cell_text(value) for value in column] for column in columns.values()]
    n_rows = len(values[0]) if values else 0
    return Table(tuple(columns), tuple(values), range(1, n_rows + 1), unit="row")


def _of_lists(name: str, columns: Columns) -> GroupedData | None:
    """Rows of a text and a list of texts, each row a group; None for other columns."""
    list_columns = next(((a, b) for a, b in _LISTS if a in columns and b in columns), None)
    if list_columns is None:
        return None
    first, rest = list_columns
    texts, groups, anchors = [], [], []
    for number, (single, listed) in enumerate(zip(columns[first], columns[rest], strict=True)):
        for place, text in enumerate([single, *(listed or ())]):
            readable = tidy(cell_text(text))
            if readable:
                texts.append(readable)
                groups.append(str(number))
                anchors.append(place == 0)
    return grouped_data(name, texts, groups, None if first == "original" else anchors)


_LISTS = (
    ("original", "simplifications"),
    ("text", "machine_summaries"),
    ("text", "human_summaries"),
)
