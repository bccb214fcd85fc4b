"""The ladder on real pairs; needs the folder that NEURALVIZ_DATA names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from neuralviz.evaluation.ladder import climb
from neuralviz.evaluation.ladder_events import FLOOR, Ladder
from neuralviz.evaluation.ladder_settings import LadderSettings
from neuralviz.models import load_text_model
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.store.memory import MemoryVectors
from neuralviz.training.similarity.data import split_pairs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_encoders_learn_more_than_cosines_tell(data: Path) -> None:
    """From the dev pairs alone, a quarter of what the figures in the docs are learnt from."""
    files = [data / "stsb" / f"{name}.csv" for name in ("dev", "test")]
    if not all(file.is_file() for file in files):
        pytest.skip("needs real data: there is no stsb/dev.csv in NEURALVIZ_DATA")
    dev, test = (read_pairs(Source.at(file)) for file in files)
    split = split_pairs(dev, test=test)
    settings = LadderSettings(rungs=("siamese",))
    ladder = Ladder()
    for event in climb(load_text_model(), split, settings, MemoryVectors()):
        ladder = ladder.having([event])
    assert ladder.baselines[FLOOR].spearman == pytest.approx(0.820, abs=0.002)
    (siamese,) = ladder.of_rung("siamese")
    assert siamese.spearman > ladder.baselines[FLOOR].spearman + 0.003
