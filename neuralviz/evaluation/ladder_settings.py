"""Which rungs of the ladder are climbed, and how; loads no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from neuralviz.errors import SettingsError
from neuralviz.training.similarity.settings import RUNGS, SimilaritySettings

if TYPE_CHECKING:
    from neuralviz.layers.settings import PoolingName
    from neuralviz.training.similarity.settings import Rung

DEFAULT_SEED = 42


@dataclass(frozen=True)
class LadderSettings:
    """The settings of a ladder of similarity models.

    Attributes:
        pooling: of the features.
        rungs: in this order.
        seeds: every rung is trained once with each.
        max_epochs: of a rung; None for the default of `SimilaritySettings`.
    """

    pooling: PoolingName = "mean"
    rungs: tuple[Rung, ...] = RUNGS
    seeds: tuple[int, ...] = (DEFAULT_SEED,)
    max_epochs: int | None = None

    def __post_init__(self) -> None:
        if not self.rungs or not self.seeds:
            raise SettingsError("Choose at least one rung and one seed.")
        self.list_trainings()

    def list_trainings(self) -> list[SimilaritySettings]:
        """The trainings, in their order.

        Raises:
            SettingsError: a setting makes no sense.
        """
        trainings = [
            SimilaritySettings(rung=rung, pooling=self.pooling, seed=seed)
            for rung in self.rungs
            for seed in self.seeds
        ]
        if self.max_epochs is None:
            return trainings
        return [replace(training, max_epochs=self.max_epochs) for training in trainings]
