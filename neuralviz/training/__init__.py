"""Teach an encoder on one's own texts: pairs, the contrastive loop, what it leaves behind.

Names are resolved when they are first used, so that pages load without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.training.learner import make_learner
    from neuralviz.training.loop import restored, train
    from neuralviz.training.saving import check_can_be_saved, save_encoder

__all__ = ["check_can_be_saved", "make_learner", "restored", "save_encoder", "train"]

__getattr__ = lazy_names(
    __name__,
    {
        "check_can_be_saved": "neuralviz.training.saving",
        "make_learner": "neuralviz.training.learner",
        "restored": "neuralviz.training.loop",
        "save_encoder": "neuralviz.training.saving",
        "train": "neuralviz.training.loop",
    },
)
