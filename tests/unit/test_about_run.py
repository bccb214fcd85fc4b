"""What downloads say of the run that they are of."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.micro_tuning.record import RunRecord, load_record
from neuralviz.paths import sample_data
from neuralviz.plots.micro_tuning import describe_run


@pytest.fixture
def three() -> RunRecord:
    """The recorded run, of three texts."""
    return load_record(sample_data() / "recorded_run.npz")


def of_one(record: RunRecord, **changes) -> RunRecord:
    """The first text of a run, as if it had been alone."""
    alone = RunRecord(record.model_id, replace(record.settings, **changes), record.texts[:1])
    alone.loss, alone.delta_norm = record.loss[:, :1].copy(), record.delta_norm[:, :1].copy()
    alone.last = [last[:1] for last in record.last]
    alone.reports = {0: record.reports[0]}
    alone.texts_done = 1
    return alone


def unfinished(record: RunRecord, epochs: int) -> RunRecord:
    """As it was after so many epochs, and the first step of one more."""
    live = copy(record)
    live.loss, live.delta_norm = record.loss.copy(), record.delta_norm.copy()
    live.loss[epochs + 1 :], live.delta_norm[epochs + 1 :] = np.nan, np.nan
    live.reports, live.texts_done = {}, 0
    return live


def test_downloads_say_which_run_they_are_of_and_how_far_it_came(three: RunRecord) -> None:
    whole = describe_run(three)
    assert whole.files == (three.texts[0], "10 epochs")
    assert describe_run(three, 2).files == (three.texts[2], "10 epochs")
    assert "so far" not in whole.settings
    alone = of_one(three, epochs=1, learning_rate=0.02, precision="fast", predict_unmasked=True)
    assert describe_run(alone).files[1:] == ("1 epoch", "rate 0.02", "fast", "no masks")
    assert (
        describe_run(unfinished(three, 4))
        .settings["so far"]
        .startswith("Texts 1 to 3 have reached")
    )
