"""The ladder on real pairs; needs the folder that NEURALVIZ_DATA names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from neuralviz.evaluation.ladder import train_ladder
from neuralviz.evaluation.ladder_results import (
    FLOOR,
    Ladder,
    LadderSettings,
    RungResult,
    TestPairs,
    ladder_lines,
)
from neuralviz.models import load_text_model
from neuralviz.plots.ladder import ladder_figure
from neuralviz.reading.pairs import Scale, read_pairs
from neuralviz.reading.source import Source
from neuralviz.store.vectors import MemoryVectors
from neuralviz.training.similarity.data import split_pairs
from neuralviz.training.similarity.settings import SimilarityEnded, SimilaritySettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_encoders_learn_more_than_cosines_tell(data: Path) -> None:
    """From the dev pairs alone, a quarter of what the figures in the docs are learnt from."""
    files = [data / "stsb" / f"{name}.csv" for name in ("dev", "test")]
    if not all(file.is_file() for file in files):
        pytest.skip("needs real data: there is no stsb/dev.csv in NEURALVIZ_DATA")
    dev, test = (read_pairs(Source.from_path(file)) for file in files)
    split = split_pairs(dev, test=test)
    settings = LadderSettings(rungs=("siamese",))
    ladder = Ladder()
    for event in train_ladder(load_text_model(), split, settings, MemoryVectors()):
        ladder = ladder.having([event])
    assert ladder.baselines[FLOOR].spearman == pytest.approx(0.820, abs=0.002)
    (siamese,) = ladder.of_rung("siamese")
    assert siamese.spearman > ladder.baselines[FLOOR].spearman + 0.003


def test_what_was_published_is_shown_on_the_test_pairs_of_the_benchmark_alone(data: Path) -> None:
    file = data / "stsb" / "test.csv"
    if not file.is_file():
        pytest.skip("needs real data: there is no stsb/test.csv in NEURALVIZ_DATA")
    pairs = read_pairs(Source.from_path(file))
    for some, expected in ((pairs, [0.421]), (pairs.first(1000), [])):
        test = TestPairs(
            some.sentences1, some.sentences2, some.scores, Scale(0, 5), 1, 1, (), "abc"
        )
        ended = SimilarityEnded(
            SimilaritySettings(rung="cosines"), 2, 4, b"", None, 3, 5, 0.5, np.array([0.5, 0.5])
        )
        result = RungResult("cosines", 42, ended, some.scores, 1.0, 1.0, 1.0)
        lines = ladder_lines(Ladder(test=test).having([result]))
        drawn = [list(one.x) for one in ladder_figure(lines, ("cosines",)).data]
        assert [one for one in drawn if one == [0.421]] == [expected] * bool(expected)
