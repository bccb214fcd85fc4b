"""Data sets of the Hugging Face hub, for people who are online; needs the package ``datasets``.

``ID[:CONFIG[:SPLIT]]``, where the id is one of the names in `KNOWN`, or any on the hub, or a folder
with a copy in the same format. The formats that are understood: pairs with a score (the STS
benchmark), pairs with a label 1 or 0 (MRPC), originals with lists of simplifications (ASSET),
documents with lists of summaries (SummEval), texts with a label, texts with a group.
No code of a data set is ever run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuralviz.corpus.lines import count, tidy
from neuralviz.errors import NeuralvizError, TextError
from neuralviz.evaluation.data import (
    MAX_ROWS,
    DataSet,
    LabelledData,
    distinct,
    grouped_data,
    scored_data,
)
from neuralviz.models.hub import NETWORK_SECONDS, ask_hub

PREFIX = "hf:"


@dataclass(frozen=True)
class HubData:
    """Where a known data set is, and the split that the paper measures."""

    repo: str
    config: str | None
    split: str


KNOWN = {
    "stsb": HubData("PhilipMay/stsb_multi_mt", "en", "test"),
    "mrpc": HubData("nyu-mll/glue", "mrpc", "train"),
    "asset": HubData("facebook/asset", "simplification", "test"),
    "summeval": HubData("mteb/summeval", None, "test"),
}

Columns = Mapping[str, Sequence[Any]]


def load_hub_data(
    name: str,
    *,
    similar: float | None = None,
    dissimilar: float | None = None,
    max_rows: int = MAX_ROWS,
) -> DataSet:
    """Load a data set from the hub, or from a folder in its format.

    Args:
        name: ``ID[:CONFIG[:SPLIT]]``, with or without ``hf:`` before it.
        similar, dissimilar: as of `read_data`.
        max_rows: those behind are left out, with a note.

    Raises:
        NeuralvizError: ``datasets`` is not installed, or there is no network, or no such data set.
        TextError: its format is none of those understood.
    """
    repo, config, split = _parts(name.removeprefix(PREFIX))
    rows = _load(repo, config, split)
    notes: tuple[str, ...] = ()
    if len(rows) > max_rows:
        rows = rows.select(range(max_rows))
        notes = (f"Only the first {max_rows:,} rows of {repo} are taken.",)
    columns = {column: rows[column] for column in rows.column_names}
    read = _reader(columns)
    if read is None:
        found = ", ".join(f"“{column}”" for column in columns)
        raise TextError(
            f"{repo} has the columns {found}, of which nothing can be measured; save what you need "
            "as a CSV with sentence1, sentence2 and score, or text and group."
        )
    return read(f"{repo}:{split}", columns, similar, dissimilar, notes)


def _parts(name: str) -> tuple[str, str | None, str]:
    repo, _, rest = name.partition(":")
    config, _, split = rest.partition(":")
    known = KNOWN.get(repo.lower())
    if known is not None:
        return known.repo, config or known.config, split or known.split
    return repo, config or None, split or "test"


def _load(repo: str, config: str | None, split: str) -> Any:
    try:
        from datasets import load_dataset
        from datasets.exceptions import DatasetNotFoundError
    except ImportError as error:
        raise NeuralvizError(
            "Data sets of the hub need the package “datasets”: pip install "
            "'neuralviz[datasets]'. Or save the data as a CSV and give that file."
        ) from error
    if not Path(repo).is_dir():
        _ask_for(repo)
    try:
        return load_dataset(repo, config, split=split)
    except (DatasetNotFoundError, ConnectionError, FileNotFoundError, OSError) as error:
        raise NeuralvizError(
            f"The data set {repo} cannot be had: it is not on this machine, or not on the hub, or "
            "the hub was lost on the way. Give a folder with a copy of it, or a CSV."
        ) from error
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else "no reason"
        raise NeuralvizError(f"The data set {repo} cannot be read: {reason}.") from error


def _ask_for(repo: str) -> None:
    """Find out in seconds, not in a row of retries, whether the hub can be reached.

    Raises:
        NeuralvizError: it cannot, and nobody said that a copy in the cache will do.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return  # `datasets` takes what is in its cache
    found = ask_hub(lambda hub: hub.dataset_info(repo, timeout=NETWORK_SECONDS))
    if isinstance(found, Exception):
        raise NeuralvizError(
            f"The data set {repo} cannot be had: there is no network, or no such data set on the "
            "hub. Give a folder with a copy of it, or a CSV; with HF_HUB_OFFLINE=1 a copy that was "
            "downloaded before is taken."
        ) from found


# --- formats: name, columns, similar, dissimilar, notes -> data -----------------------------------

_Read = Callable[[str, Columns, float | None, float | None, tuple[str, ...]], DataSet]


def _reader(columns: Columns) -> _Read | None:
    """What reads such columns; None when nothing does."""
    has = {name.lower() for name in columns}
    if {"sentence1", "sentence2"} <= has and has & _SCORES:
        return _pairs
    if {"original", "simplifications"} <= has:
        return _simplifications
    if "text" in has and has & {"human_summaries", "machine_summaries"}:
        return _summaries
    if {"text", "group"} <= has:
        return _groups
    if {"text", "label"} <= has:
        return _labels
    return None


_SCORES = {"score", "similarity_score", "similarity", "label"}


def _pairs(
    name: str,
    columns: Columns,
    similar: float | None,
    dissimilar: float | None,
    notes: tuple[str, ...],
) -> DataSet:
    score = next(
        one for one in ("similarity_score", "score", "similarity", "label") if one in columns
    )
    first, second = (_texts(columns[one]) for one in ("sentence1", "sentence2"))
    scores = np.array(columns[score], dtype=np.float64)
    good = np.array([bool(a and b) for a, b in zip(first, second, strict=True)]) & np.isfinite(
        scores
    )
    at = np.flatnonzero(good)
    return scored_data(
        name,
        [first[i] for i in at],
        [second[i] for i in at],
        scores[at],
        similar=similar,
        dissimilar=dissimilar,
        notes=notes + _left_out(len(scores) - len(at)),
    )


def _simplifications(
    name: str,
    columns: Columns,
    similar: float | None,
    dissimilar: float | None,
    notes: tuple[str, ...],
) -> DataSet:
    texts, groups = [], []
    for number, (original, simple) in enumerate(
        zip(columns["original"], columns["simplifications"], strict=True)
    ):
        of_group = [text for text in _texts([original, *simple]) if text]
        texts += of_group
        groups += [str(number)] * len(of_group)
    return grouped_data(name, texts, groups, notes=notes)


def _summaries(
    name: str,
    columns: Columns,
    similar: float | None,
    dissimilar: float | None,
    notes: tuple[str, ...],
) -> DataSet:
    """Documents are the anchors; the machine's summaries, or people's, are the rest."""
    which = "machine_summaries" if "machine_summaries" in columns else "human_summaries"
    texts, groups, anchors = [], [], []
    for number, (document, summaries) in enumerate(
        zip(columns["text"], columns[which], strict=True)
    ):
        for place, text in enumerate(_texts([document, *summaries])):
            if text:
                texts.append(text)
                groups.append(str(number))
                anchors.append(place == 0)
    return grouped_data(name, texts, groups, anchors, notes=notes)


def _groups(
    name: str,
    columns: Columns,
    similar: float | None,
    dissimilar: float | None,
    notes: tuple[str, ...],
) -> DataSet:
    texts = _texts(columns["text"])
    at = [i for i, text in enumerate(texts) if text]
    groups = [str(columns["group"][i]) for i in at]
    left_out = _left_out(len(texts) - len(at))
    return grouped_data(name, [texts[i] for i in at], groups, notes=notes + left_out)


def _labels(
    name: str,
    columns: Columns,
    similar: float | None,
    dissimilar: float | None,
    notes: tuple[str, ...],
) -> DataSet:
    texts = _texts(columns["text"])
    at = [i for i, text in enumerate(texts) if text]
    if len(at) < 2:
        raise TextError(f"{name} has {len(at)} texts with a label; at least 2 are needed.")
    different, places = distinct([texts[i] for i in at])
    labels = tuple(str(columns["label"][i]) for i in at)
    return LabelledData(
        name, different, places, labels, notes=notes + _left_out(len(texts) - len(at))
    )


def _texts(values: Sequence[Any]) -> list[str]:
    return [tidy(str(value)) if value is not None else "" for value in values]


def _left_out(n: int) -> tuple[str, ...]:
    return (f"{count(n, 'row')} left out because a text or a score is missing.",) if n else ()
