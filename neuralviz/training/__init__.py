"""Train an encoder on your own texts with a contrastive loss. Loads torch only when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.training.learner import make_learner as make_learner
    from neuralviz.training.learner import measure_untrained as measure_untrained
    from neuralviz.training.loop import identity as identity
    from neuralviz.training.loop import restore_training as restore_training
    from neuralviz.training.loop import train as train
    from neuralviz.training.record import TrainingEnded as TrainingEnded
    from neuralviz.training.record import TrainingStarted as TrainingStarted
    from neuralviz.training.record import TrainingStep as TrainingStep
    from neuralviz.training.record import Watch as Watch
    from neuralviz.training.saving import check_family_can_be_saved as check_family_can_be_saved
    from neuralviz.training.saving import save_encoder as save_encoder

_NAMES = {
    "learner": "make_learner measure_untrained",
    "loop": "identity restore_training train",
    "record": "TrainingEnded TrainingStarted TrainingStep Watch",
    "saving": "check_family_can_be_saved save_encoder",
}
__all__ = " ".join(_NAMES.values()).split()

__getattr__, __dir__ = lazy_names(__name__, **_NAMES)
