"""Teach an encoder on one's own texts: pairs, the contrastive loop, what it leaves behind.

Names are resolved when they are first used, so that pages load without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.training.callback import SnapshotCallback
    from neuralviz.training.checkpoints import identity
    from neuralviz.training.folders import read_folder
    from neuralviz.training.learner import make_learner, measure_untrained
    from neuralviz.training.loop import restore_training, train
    from neuralviz.training.record import TrainingEnded, TrainingStarted, TrainingStep
    from neuralviz.training.saving import check_family_can_be_saved, save_encoder
    from neuralviz.training.snapshots import Watch

_MODULES = {
    "SnapshotCallback": "callback",
    "TrainingEnded": "record",
    "TrainingStarted": "record",
    "TrainingStep": "record",
    "Watch": "snapshots",
    "check_family_can_be_saved": "saving",
    "identity": "checkpoints",
    "make_learner": "learner",
    "measure_untrained": "learner",
    "read_folder": "folders",
    "restore_training": "loop",
    "save_encoder": "saving",
    "train": "loop",
}
__all__ = [
    "SnapshotCallback",
    "TrainingEnded",
    "TrainingStarted",
    "TrainingStep",
    "Watch",
    "check_family_can_be_saved",
    "identity",
    "make_learner",
    "measure_untrained",
    "read_folder",
    "restore_training",
    "save_encoder",
    "train",
]

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
)
