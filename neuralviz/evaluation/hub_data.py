"""Data sets of the Hugging Face hub, by the package ``datasets``; their code is never run.

``ID[:CONFIG[:SPLIT]]``, where ID is one of `HUB_DATA`, any on the hub, or a folder with a copy; or
``FOLDER:SPLIT`` of ``save_to_disk``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from neuralviz.errors import NeuralvizError, SettingsError, shorten_reason
from neuralviz.evaluation.data import BY_RANGE, DataSet, GroupedData, Thresholds, grouped_data
from neuralviz.evaluation.tables import MAX_ROWS, make_data
from neuralviz.models.hub import NETWORK_SECONDS, ask_hub
from neuralviz.reading.arrow_tables import (
    STATE,
    find_split,
    is_saved_data_set,
    read_rows,
    read_saved,
)
from neuralviz.reading.columns import parse_nested
from neuralviz.reading.lines import tidy
from neuralviz.reading.table import Table, cell_text, join_tables
from neuralviz.reading.tables import limit_rows

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
    table = _read_rows(repo, config, split, max_rows + 1)
    if len(table) > max_rows:
        benchmark = ""
    table = limit_rows(repo, table, max_rows)
    label = repo if (Path(repo) / STATE).is_file() else f"{repo}:{split}"
    data: DataSet | None = _group_lists(label, table)
    if data is None:
        roles = dict(roles or {})
        scores = [column for column in _SCORES if column in table.columns]
        if {"sentence1", "sentence2"} <= set(table.columns) and scores:
            roles.setdefault("score", scores[0])
        data = make_data(label, table, roles, thresholds=thresholds)
    return replace(data, benchmark=benchmark or data.benchmark)


def _read_rows(repo: str, config: str, split: str, n_wanted: int) -> Table:
    if is_saved_data_set(Path(repo)):
        folder = find_split(repo, Path(repo), config or split)
        return join_tables(repo, read_saved(repo, folder, n_wanted))
    rows = _load(repo, config, split).with_format("arrow")[:n_wanted]
    return join_tables(repo, read_rows(repo, rows))


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


def _group_lists(name: str, table: Table) -> GroupedData | None:
    """Rows of a text and a list of texts, each row a group; None for other columns."""
    titles = next((pair for pair in _LISTS if set(pair) <= set(table.columns)), None)
    if titles is None:
        return None
    texts, groups, anchors = [], [], []
    for number, (single, listed) in enumerate(zip(*map(table.column, titles), strict=True)):
        for place, text in enumerate([single, *(parse_nested(listed) or ())]):
            if readable := tidy(cell_text(text)):
                texts.append(readable)
                groups.append(str(number))
                anchors.append(place == 0)
    return grouped_data(name, texts, groups, None if titles[0] == "original" else anchors)


_LISTS = (
    ("original", "simplifications"),
    ("text", "machine_summaries"),
    ("text", "human_summaries"),
)
