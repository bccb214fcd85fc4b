"""SBERT-WK written out slowly: one token, one layer, one neighbour at a time (Wang & Kuo, 2020).

It serves as the second opinion in the tests. A token has one vector per layer; only the layers
from the starting layer on are used, and they are counted from 0 there.

Rules where the text leaves a choice
------------------------------------
Windows
 1. "paper": the neighbours are the layers at most `window` away that exist (clipped).
 2. "authors": the same to the right; to the left there are none at all for layers k < window
    (also when there are fewer layers than `window`).

Alignment
 3. β is the mean cosine over the neighbours present. "paper": the cosine with the vector itself,
    weight 1 / β. "authors": the cosine with the vector's projection on the span of its
    neighbours, weight 1 / (β · 2 · (number of neighbours + 1)).
 4. A cosine with a vector of length zero is 0, and that neighbour still counts in the mean.
    A projection shorter than 1e-10 of the vector is taken as zero.
 5. β may be negative, and so may the weight 1 / β. A layer whose β is exactly zero has no
    weight 1 / β; rule 9 gives it one.

Novelty
 6. The length of the part outside the span of the neighbours over the length of the vector.
 7. A neighbour that lies in the span of those before it (what is left of it is at most 1e-10 of
    its length, or it is zero) adds no direction and is left out of the factorisation; it still
    counts in β and in the number of neighbours. Neighbours that span the whole space leave a
    novelty of 0.
 8. A novelty of at most 1e-10 is rounding and becomes 0.

Weights
 9. A layer without neighbours, or whose own vector is zero, has neither weight. It is given the
    mean of the weights that the other layers have, that is 1 / layers once normalised.
10. If the weights of a kind are all missing or have a sum of zero, they are equal.
11. The combined weight, in both variants, is ω · alignment + (1 − ω) · novelty of the normalised
    weights, normalised again.

Tokens
12. The importance of a token is the variance (divided by the count) of the cosines of consecutive
    layers, from the starting layer on. A variance of at most 1e-24 is rounding and becomes 0; so
    does that of a single value or of none (two layers, one layer).
13. If the importance of all tokens is zero, they are equal.
14. The sentence vector is not scaled to length 1.

No tokens, no layer left from the starting layer on, a negative window or starting layer, ω
outside 0 … 1 and an unknown variant are errors.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

ROUNDING = 1e-10
ROUNDING_OF_VARIANCE = 1e-24


def sentence_vector(
    states: NDArray[np.floating],
    layer_start: int,
    window: int,
    omega: float = 0.5,
    variant: str = "authors",
) -> Vector:
    """The vector of a sentence from `states`, [layer, token, d_model], tokens that count only."""
    if not 0.0 <= omega <= 1.0:
        raise ValueError("omega must lie between 0 and 1")
    if not 0 <= layer_start < len(states):
        raise ValueError("no layer is left from the starting layer on")
    used = np.asarray(states[layer_start:], dtype=np.float64)
    importance = token_importance(used)
    total = np.zeros(used.shape[2])
    for token in range(used.shape[1]):
        alignment, novelty = word_weights(used[:, token], window, variant)
        combined = []
        for layer in range(len(used)):
            combined.append(omega * alignment[layer] + (1.0 - omega) * novelty[layer])
        weights = _normalised(combined)
        word = np.zeros(used.shape[2])
        for layer in range(len(used)):
            word = word + weights[layer] * used[layer, token]
        total = total + importance[token] * word
    return total


def word_weights(
    token_states: NDArray[np.floating], window: int, variant: str
) -> tuple[Vector, Vector]:
    """Alignment and novelty weights of one token's layers, [layer, d_model], each of sum 1."""
    if variant not in ("paper", "authors"):
        raise ValueError(f"unknown variant: {variant}")
    if window < 0:
        raise ValueError("the window must not be negative")
    layers = [np.asarray(state, dtype=np.float64) for state in token_states]
    if not layers:
        raise ValueError("a token needs at least one layer")
    alignment: list[float | None] = []
    novelty: list[float | None] = []
    for k, centre in enumerate(layers):
        neighbours = [layers[i] for i in _neighbours(k, len(layers), window, variant)]
        if not neighbours or _length(centre) == 0.0:
            alignment.append(None)
            novelty.append(None)
            continue
        inside, outside = _split(_independent(neighbours), centre)
        compared_with = inside if variant == "authors" else centre
        cosines = [_cosine(neighbour, compared_with) for neighbour in neighbours]
        beta = sum(cosines) / len(cosines)
        if variant == "authors":
            beta = beta * 2 * (len(neighbours) + 1)
        alignment.append(1.0 / beta if abs(beta) > ROUNDING else None)
        share = outside / _length(centre)
        novelty.append(share if share > ROUNDING else 0.0)
    return _normalised(alignment), _normalised(novelty)


def token_importance(states_from_start: NDArray[np.floating]) -> Vector:
    """The importance of each token of [layer, token, d_model], of sum 1 over the sentence."""
    used = np.asarray(states_from_start, dtype=np.float64)
    if len(used) == 0 or used.shape[1] == 0:
        raise ValueError("a sentence needs at least one layer and one token")
    variances = []
    for token in range(used.shape[1]):
        cosines = []
        for layer in range(len(used) - 1):
            cosines.append(_cosine(used[layer, token], used[layer + 1, token]))
        variance = 0.0
        if cosines:
            mean = sum(cosines) / len(cosines)
            for cosine in cosines:
                variance += (cosine - mean) ** 2 / len(cosines)
        variances.append(variance if variance > ROUNDING_OF_VARIANCE else 0.0)
    return _normalised(variances)


def _neighbours(k: int, layers: int, window: int, variant: str) -> list[int]:
    """The layers in the window of layer `k`, left before right, without `k` itself."""
    found = []
    for i in range(k - window, k + window + 1):
        if i == k or i < 0 or i >= layers:
            continue
        if variant == "authors" and i < k and k < window:
            continue
        found.append(i)
    return found


def _independent(columns: list[Vector]) -> list[Vector]:
    """The columns without those that lie in the span of the ones before them."""
    kept: list[Vector] = []
    for column in columns:
        _, outside = _split(kept, column)
        if outside > ROUNDING * _length(column):
            kept.append(column)
    return kept


def _split(span: list[Vector], centre: Vector) -> tuple[Vector, float]:
    """`centre` projected on independent columns, and the length of what is left of it."""
    if len(span) >= len(centre):
        return centre, 0.0
    q, r = np.linalg.qr(np.stack([*span, centre], axis=1))
    inside = np.zeros(len(centre))
    for i in range(len(span)):
        inside = inside + r[i, -1] * q[:, i]
    if _length(inside) <= ROUNDING * _length(centre):
        inside = np.zeros(len(centre))
    return inside, abs(float(r[-1, -1]))


def _length(vector: Vector) -> float:
    """The Euclidean length."""
    return math.sqrt(float(np.dot(vector, vector)))


def _cosine(a: Vector, b: Vector) -> float:
    """The cosine of two vectors, 0 when one of them is zero."""
    lengths = _length(a) * _length(b)
    return float(np.dot(a, b)) / lengths if lengths > 0.0 else 0.0


def _normalised(weights: list[float] | list[float | None]) -> Vector:
    """Weights of sum 1: a missing one is the mean of the others; without a sum, all are equal."""
    known = [weight for weight in weights if weight is not None]
    total = sum(known)
    if total == 0.0:
        return np.full(len(weights), 1.0 / len(weights))
    mean = total / len(known)
    filled = [mean if weight is None else weight for weight in weights]
    return np.array([weight / sum(filled) for weight in filled])
