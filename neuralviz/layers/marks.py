"""Where in the network a text leaves its mark: delta lengths by block and kind of parameter."""

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
    """Kinds of 1-D block parameters, in the order of the block."""
    kinds = dict.fromkeys(layer.kind for layer in layers if layer.block is not None)
    place = {kind: i for i, kind in enumerate(_BERT_ORDER)}
    return tuple(sorted(kinds, key=lambda kind: place.get(kind, len(place))))


def is_noise(kind: str) -> bool:
    """Whether a kind is the attention's key bias, which softmax cancels: its delta is noise."""
    return bool(_KEY_BIAS.search(kind))


def kind_in_words(kind: str) -> str:
    parts = [part for part in kind.split(".") if part not in _FILLERS and not part.isdigit()]
    words = ["norm" if re.fullmatch(r"layer_?norm", p, re.IGNORECASE) else p for p in parts]
    return " ".join(words).replace("_", " ")


@dataclass(frozen=True)
class MarkGrid:
    """The chosen parameters of all blocks in a grid of kind × block."""

    kinds: tuple[str, ...]  # [kind] in the order of the block
    blocks: tuple[int, ...]  # [block] their numbers
    names: tuple[str, ...]  # [parameter] full names, in tuning order
    rows: tuple[int, ...]  # [parameter] row in the grid, an index into the kinds
    columns: tuple[int, ...]  # [parameter] column in the grid
    sizes: tuple[int, ...]  # [parameter] number of values

    def norms(self, delta_norm: np.ndarray, *, per_value: bool) -> np.ndarray:
        """[…, kind, block] from […, parameter] delta lengths; NaN where a block has no such kind.

        With ``per_value``, they are divided by √size: the root mean square change per value.
        """
        values = delta_norm / np.sqrt(self.sizes) if per_value else np.asarray(delta_norm)
        grid = np.full((*values.shape[:-1], len(self.kinds), len(self.blocks)), np.nan)
        grid[..., self.rows, self.columns] = values
        return grid

    def totals(self, delta_norm: np.ndarray, *, per_value: bool) -> np.ndarray:
        """[…, block] length of each block's whole delta; see `norms`."""
        groups = np.eye(len(self.blocks))[list(self.columns)]  # [parameter, block]
        squares = np.square(delta_norm) @ groups
        return np.sqrt(squares / (np.array(self.sizes) @ groups) if per_value else squares)


def mark_grid(layers: Sequence[Layer], kinds: Collection[str]) -> MarkGrid:
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
