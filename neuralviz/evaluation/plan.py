"""What is to be evaluated, as one frozen value: data sets, ways to embed, and how to measure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from neuralviz.errors import SettingsError
from neuralviz.evaluation.bootstrap import FEWEST_RESAMPLES, MOST_RESAMPLES, RESAMPLES
from neuralviz.evaluation.broken import MAX_COMPARED
from neuralviz.maps.neighbourhoods import K

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet, Measure
    from neuralviz.evaluation.experiments import Row

KEY_VERSION = 3  # of `EvaluationPlan.cache_key`: raise it where the same plan gives other results


@dataclass(frozen=True)
class MeasureSettings:
    """What is measured, and how.

    Attributes:
        measures: names; ``all`` for all that the data are made for; empty for all of these but
            what takes long.
        k: neighbours that vote on a label.
        resamples: of the bootstrap intervals; 0 for none.
        seed: of all that is drawn: bootstrap samples, and pairs and texts where there are many.
        max_compared: relations that are compared one by one, for what methods break in common.

    Raises:
        SettingsError: there are too few or too many resamples.
    """

    measures: tuple[Measure | Literal["all"], ...] = ()
    k: int = K
    resamples: int = RESAMPLES
    seed: int = 0
    max_compared: int = MAX_COMPARED

    def __post_init__(self) -> None:
        if self.resamples and not FEWEST_RESAMPLES <= self.resamples <= MOST_RESAMPLES:
            raise SettingsError(
                f"Intervals need {FEWEST_RESAMPLES} to {MOST_RESAMPLES:,} resamples. Use 0 for no "
                "intervals."
            )

    def measures_of(self, data: DataSet) -> tuple[Measure, ...]:
        """The measures to compute on a data set."""
        named = tuple(name for name in self.measures if name != "all")
        return data.measures if len(named) < len(self.measures) else named or data.by_default


DEFAULT_MEASURES = MeasureSettings()


@dataclass(frozen=True, eq=False)
class EvaluationPlan:
    """A table to fill: every row is measured on every data set.

    Plans are equal when their `cache_key` is.

    Attributes:
        data: data sets.
        rows: ways to embed.
        settings: what is measured, and how.
    """

    data: tuple[DataSet, ...]
    rows: tuple[Row, ...]
    settings: MeasureSettings = DEFAULT_MEASURES

    def cache_key(self) -> str:
        """Hash of all that the results depend on: data, rows and settings."""
        content = {
            "version": KEY_VERSION,
            "data": [[data_set.name, data_set.digest] for data_set in self.data],
            "rows": [[row.label, row.spec.to_json()] for row in self.rows],
            "settings": asdict(self.settings),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EvaluationPlan):
            return NotImplemented
        return self.cache_key() == other.cache_key()

    def __hash__(self) -> int:
        return hash(self.cache_key())

    @property
    def n_cells(self) -> int:
        """Results that there will be."""
        return len(self.data) * len(self.rows)

    @property
    def n_tuned(self) -> int:
        """Texts that a model is tuned on, each by its own, of all rows and data sets."""
        n_texts = sum(len(data_set.texts) for data_set in self.data)
        return n_texts * sum(row.spec.learns for row in self.rows)
