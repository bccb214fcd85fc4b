"""Where in the network a text leaves its mark: lengths of deltas by block and parameter kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from neuralviz.models.language_model import Layer

_KEY_BIAS = re.compile(r"(?:^|\.)(?:key|k_lin|k)\.bias$")
_BERT_ORDER = (
    "attention.self.query.bias",
    "attention.self.key.bias",
    "attention.self.value.bias",
    "attention.output.dense.bias",
    "attention.output.LayerNorm.weight",
    "attention.output.LayerNorm.bias",
    "intermediate.dense.bias",
    "output.dense.bias",
    "output.LayerNorm.weight",
    "output.LayerNorm.bias",
)
_FILLERS = {"self", "dense", "lin", "proj"}


def kinds_of_blocks(layers: Iterable[Layer]) -> tuple[str, ...]:
    """Kinds of 1-D parameters inside the blocks, in the order of the block."""
    kinds = dict.fromkeys(layer.kind for layer in layers if layer.block is not None)
    place = {kind: i for i, kind in enumerate(_BERT_ORDER)}
    return tuple(sorted(kinds, key=lambda kind: place.get(kind, len(place))))


def is_noise(kind: str) -> bool:
    """Whether a kind is the attention's key bias.

    It adds the same to all scores of a query, which softmax takes away again. Its gradient is
    rounding, and AdamW makes steps of full size of it.
    """
    return bool(_KEY_BIAS.search(kind))


def kind_in_words(kind: str) -> str:
    """``attention.output.LayerNorm.weight`` as ``attention output norm weight``."""
    parts = [part for part in kind.split(".") if part not in _FILLERS and not part.isdigit()]
    words = ["norm" if re.fullmatch(r"layer_?norm", p, re.IGNORECASE) else p for p in parts]
    return " ".join(words).replace("_", " ")


@dataclass(frozen=True)
class MarkGrid:
    """The chosen parameters of all blocks, as rows of kinds and columns of blocks."""

    kinds: tuple[str, ...]  # [kind] in the order of the block
    blocks: tuple[int, ...]  # [block] their numbers
    names: tuple[str, ...]  # the parameters' full names, in the order in which they are tuned
    rows: tuple[int, ...]  # [parameter] the row of each, an index into the kinds
    columns: tuple[int, ...]  # [parameter] and its column
    sizes: tuple[int, ...]  # [parameter] how many values each has

    def norms(self, delta_norm: np.ndarray, *, per_value: bool) -> np.ndarray:
        """[…, kind, block] lengths of the deltas; NaN where a block has no such parameter.

        ``delta_norm`` is […, parameter] lengths; ``per_value`` divides them by the square root of
        the number of values: the root mean square of a value's move.
        """
        values = delta_norm / np.sqrt(self.sizes) if per_value else np.asarray(delta_norm)
        grid = np.full((*values.shape[:-1], len(self.kinds), len(self.blocks)), np.nan)
        grid[..., self.rows, self.columns] = values
        return grid

    def totals(self, delta_norm: np.ndarray, *, per_value: bool) -> np.ndarray:
        """[…, block] length of a block's whole delta; arguments as of `norms`."""
        groups = np.eye(len(self.blocks))[list(self.columns)]  # [parameter, block]
        squares = np.square(delta_norm) @ groups
        return np.sqrt(squares / (np.array(self.sizes) @ groups) if per_value else squares)


def mark_grid(layers: Sequence[Layer], kinds: Collection[str]) -> MarkGrid:
    """The grid of a model's parameters of the given kinds, in all of its blocks."""
    chosen = [layer for layer in layers if layer.block is not None and layer.kind in kinds]
    rows = tuple(kind for kind in kinds_of_blocks(layers) if kind in kinds)
    blocks = tuple(sorted({layer.block for layer in chosen if layer.block is not None}))
    return MarkGrid(
        kinds=rows,
        blocks=blocks,
        names=tuple(layer.name for layer in chosen),
        rows=tuple(rows.index(layer.kind) for layer in chosen),
        columns=tuple(blocks.index(layer.block) for layer in chosen if layer.block is not None),
        sizes=tuple(layer.size for layer in chosen),
    )
