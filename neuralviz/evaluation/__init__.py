"""How well embeddings agree with people.

Names that bring torch are resolved when they are first used, so that pages load without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.evaluation.training_lab import fill_table

__all__ = ["fill_table"]

__getattr__ = lazy_names(__name__, {"fill_table": "neuralviz.evaluation.training_lab"})
