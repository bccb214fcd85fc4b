"""The shares of tokens and weight decay, held to the delta they are parts of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralviz.micro_tuning import TokenShares

ROUNDING = 6e-5  # of a delta of a few hundredths
FLIPPED = 0.1  # at most, where a step has the other sign: a gradient that is nothing but rounding


def check_shares_sum(shares: TokenShares, deltas: Sequence[np.ndarray]) -> None:
    """Assert that tokens and decay sum to one text's deltas, one per layer."""
    wrong = []
    for tokens, decay, delta in zip(shares.tokens, shares.decay, deltas, strict=True):
        wrong.append(np.abs(tokens.sum(axis=0) + decay - delta))
    off = np.concatenate(wrong)
    assert np.count_nonzero(off > ROUNDING) <= 1 + off.size // 1000
    assert off.max() <= FLIPPED
