"""The whole way from a text to its products with others, as a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from neuralviz.jobs.task import LatestTask
from neuralviz.models.shared import shared_model

if TYPE_CHECKING:
    from collections.abc import Generator

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.walkthrough import Walkthrough
    from neuralviz.models.shared import ModelRef


@dataclass(frozen=True)
class WalkThrough(LatestTask["Walkthrough"]):
    """Micro-tune on short texts and keep every number.

    Attributes:
        texts: the one that is followed, and those that it is compared with.
    """

    is_short: ClassVar[bool] = True

    model: ModelRef
    texts: tuple[str, ...]

    def events(self, should_stop: ShouldStop) -> Generator[Walkthrough, None, None]:
        from neuralviz.micro_tuning import walkthrough

        model = shared_model(self.model.id)
        yield walkthrough.walk_through(model, self.texts, should_stop=should_stop)
