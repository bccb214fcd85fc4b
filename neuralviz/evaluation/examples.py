"""Sample data to evaluate on, and what was recorded of them, which is shown without computing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neuralviz.evaluation.data import DataSet
from neuralviz.evaluation.plan import EvaluationPlan, method_rows
from neuralviz.evaluation.results import RESULTS_FORMAT, Results
from neuralviz.evaluation.tables import read_data
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source

RECORDED = "recorded_evaluation.npz"
METHODS = ("mean", "sbert-wk", "neural")


@dataclass(frozen=True)
class Example:
    """A file of the sample data, and the question that it asks.

    ``roles`` has columns by role, where their names do not say it.
    """

    name: str
    file: str
    line: str
    roles: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> DataSet:
        source = Source(self.file, (sample_data() / self.file).read_bytes())
        data = read_data(source, self.roles)
        return replace(data, name=f"{self.file}, {self.name.lower()}") if self.roles else data


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            "Forms", "topics.csv",
            "480 texts on ten topics, in six forms such as headlines and complaints. Do a text's "
            "neighbours have the same **form**?",
            {"text": "text", "label": "form"},
        ),
        Example(
            "Topics", "topics.csv",
            "The same 480 texts as in *Forms*. Do a text's neighbours have the same **topic**?",
            {"text": "text", "label": "topic"},
        ),
        Example(
            "Scored pairs", "scored_pairs.csv",
            "300 pairs of sentences, scored by a person from 0 (unrelated) to 5 (same meaning). "
            "Many are hard on purpose.",
        ),
        Example(
            "Texts in groups", "triplet_groups.csv",
            "82 texts. The texts of a group mean the same; other groups have similar topics.",
        ),
    )
}  # fmt: skip


def example_plan() -> EvaluationPlan:
    """The plan of the recorded run: every example by the page's default methods."""
    data = tuple(example.read() for example in EXAMPLES.values())
    return EvaluationPlan(data, method_rows(METHODS, {}))


def record(results: Results) -> bytes:
    """The content of the recorded file: cosines that are only drawn lose digits."""
    small = {
        place: replace(
            cell,
            measured=replace(
                cell.measured,
                same=cell.measured.same.astype(np.float16),
                diff=cell.measured.diff.astype(np.float16),
            ),
        )
        for place, cell in results.cells.items()
        if cell.measured is not None
    }
    return RESULTS_FORMAT.pack(replace(results, cells=small))


def recorded_results() -> tuple[Results, ...]:
    """What ``scripts/record_evaluation.py`` found, by example; nothing without its file.

    Raises:
        ValueError: the file cannot be read.
    """
    path = sample_data() / RECORDED
    if not path.is_file():
        return ()
    results = RESULTS_FORMAT.unpack(path.read_bytes())
    return tuple(results.of_data(number) for number in range(len(results.data)))
