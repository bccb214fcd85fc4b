"""Masking blueprints: which tokens each masked input of a text hides (neural paper, Figure 10)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralviz.errors import SettingsError

MAX_PERIOD = 512
MAX_BLUEPRINTS = 32
MAX_INPUTS = 2048  # per chunk; a long chunk has as many inputs as the periods sum to


class Blueprint(NamedTuple):
    """A masking pattern: keep ``keep`` tokens, mask the next ``mask``, and repeat."""

    keep: int
    mask: int

    @property
    def period(self) -> int:
        return self.keep + self.mask

    def __str__(self) -> str:
        return f"({self.keep}, {self.mask})"


# The paper's mix (section 2): 3 + 2 + 3 + 4 = 12 inputs for a text of four tokens or more.
DEFAULT_BLUEPRINTS = (Blueprint(2, 1), Blueprint(1, 1), Blueprint(1, 2), Blueprint(1, 3))


@dataclass(frozen=True, eq=False)
class MaskedInputs:
    masked: np.ndarray  # [input, token] bool, true where the token is masked
    blueprint: np.ndarray  # [input] index into the list of blueprints
    shift: np.ndarray  # [input] tokens by which the pattern is shifted

    @property
    def times_masked(self) -> np.ndarray:
        return self.masked.sum(axis=0)


def check_blueprints(blueprints: Iterable[Sequence[int]]) -> tuple[Blueprint, ...]:
    """Check 1 to 32 (keep, mask) pairs; `SettingsError` if not positive or with long periods."""
    # a period may be 512, all together 2,048
    checked = []
    for entry in blueprints:
        pair = tuple(entry) if isinstance(entry, Iterable) and not isinstance(entry, str) else ()
        if len(pair) != 2 or not all(
            isinstance(value, int | np.integer) and not isinstance(value, bool) for value in pair
        ):
            raise SettingsError(
                f"A blueprint must be a pair of whole numbers (keep, mask), not {entry!r}."
            )
        blueprint = Blueprint(*map(int, pair))
        if min(blueprint) < 1 or blueprint.period > MAX_PERIOD:
            raise SettingsError(
                f"The blueprint {blueprint} must keep at least 1 token, mask at least 1, and have "
                f"a period of at most {MAX_PERIOD} tokens."
            )
        checked.append(blueprint)
    if not 1 <= len(checked) <= MAX_BLUEPRINTS:
        raise SettingsError(
            f"Enter 1 to {MAX_BLUEPRINTS} blueprints, such as (2, 1), not {len(checked)}."
        )
    n_inputs = sum(blueprint.period for blueprint in checked)
    if n_inputs > MAX_INPUTS:
        raise SettingsError(
            f"These blueprints give up to {n_inputs:,} masked inputs (the sum of their "
            f"periods); the maximum is {MAX_INPUTS:,}."
        )
    return tuple(checked)


def parse_blueprints(text: str) -> tuple[Blueprint, ...]:
    """Parse ``(2,1), (1,1)`` or ``2 1; 1 1``; `SettingsError` for anything but valid blueprints."""
    body = text.strip().removeprefix("[").removesuffix("]")
    has_brackets = "(" in body or ")" in body
    pattern = r"\(([^()]*)\)" if has_brackets else r"([^;\n]*[^\s;][^;\n]*)"
    pieces = re.findall(pattern, body)
    pieces += re.findall(r"[^\s,;]+", re.sub(pattern, "", body))  # what is no blueprint
    pairs = []
    for piece in pieces:
        numbers = re.fullmatch(r"\s*([+-]?\d{1,20})\s*(?:,|\s)\s*([+-]?\d{1,20})\s*", piece)
        if not numbers:
            raise SettingsError(
                f"“{piece.strip()[:40]}” is not a blueprint. Write pairs such as (2, 1), (1, 3)."
            )
        pairs.append((int(numbers[1]), int(numbers[2])))
    return check_blueprints(pairs)


def mask_inputs(n_tokens: int, blueprints: Iterable[Sequence[int]]) -> MaskedInputs:
    """Make a chunk's masked inputs (neural paper, Figure 10); `SettingsError` without a token."""
    # shift s of blueprint (k, m) masks token j where (j - s) mod (k + m) >= k, for s in 0 … min(k +
    # m, n_tokens) - 1; inputs that mask nothing are dropped, and a single token gets all k + m
    # shifts
    blueprints = check_blueprints(blueprints)
    if n_tokens < 1:
        raise SettingsError("A text needs at least one token.")
    position = np.arange(n_tokens)
    inputs = []
    for index, blueprint in enumerate(blueprints):
        n_shifts = blueprint.period if n_tokens == 1 else min(blueprint.period, n_tokens)
        shift = np.arange(n_shifts)
        masked = (position[None, :] - shift[:, None]) % blueprint.period >= blueprint.keep
        shift = shift[masked.any(axis=1)]
        inputs.append((masked[shift], np.full(len(shift), index), shift))
    return MaskedInputs(*map(np.concatenate, zip(*inputs, strict=True)))
