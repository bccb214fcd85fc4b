"""What a training shows, as the sentences above its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import joined, many

if TYPE_CHECKING:
    from neuralviz.training.record import Lesson
    from neuralviz.training.settings import TrainingSettings

NOTICED = 0.5  # of the first loss: what it has to fall by to be called learning by itself
LEVEL = 0.005  # shares that differ by less are written alike
TOO_FEW = ": with so few texts, that may be chance."
GAINING = 0.01  # what counts as a gain, in shares


def is_decided(lessons: Sequence[Lesson]) -> bool | None:
    """Whether labels are found differently often beyond chance, on the same texts.

    By two encoders at the end; by one, at the end and before. None where that is not known yet, or
    there are no labels.
    """
    finished = [lesson for lesson in lessons if lesson.is_over and lesson.snapshots]
    if not finished or len(finished) != len(lessons):
        return None
    last = [lesson.snapshots[-1] for lesson in finished]
    if len(last) == 1:
        last.append(finished[0].snapshots[0])
    elif last[0].step != last[1].step:
        return None
    first, second = last[0].right, last[1].right
    if first is None or second is None:
        return None
    low, high = paired_share_interval(first, second)
    return not low <= 0 <= high


def does_harm(lesson: Lesson) -> bool:
    """Whether fewer labels are found at the end than before, beyond chance."""
    if not lesson.is_over or len(lesson.snapshots) < 2:
        return False
    before, after = lesson.snapshots[0].right, lesson.snapshots[-1].right
    return before is not None and after is not None and paired_share_interval(before, after)[0] > 0


def trained_part(settings: TrainingSettings) -> str:
    """What of a model is trained, in words such as “the whole model”."""
    part = "the whole model"
    if settings.part == "table":
        part = "the embedding table alone"
    elif settings.frozen_blocks:
        part = "all but the first block"
        if settings.frozen_blocks > 1:
            part = f"all but the first {settings.frozen_blocks} blocks"
    return f"{part} from random weights" if settings.start == "random" else part


def training_point(
    lessons: Sequence[Lesson], label: str, decided: bool | None = None, *, part: str = ""
) -> str:
    """What is learnt so far, in one or two sentences of markdown.

    Args:
        lessons: one or two, of the same part of a model.
        label: what texts are told apart by, as markdown; empty without labels.
        decided: as of `is_decided`.
        part: what is trained, as of `trained_part`; empty where that is not known.

    Returns:
        Empty before the first step. What is learnt never comes before what the whole model does
        as well untrained.
    """
    started = [lesson for lesson in lessons if lesson.step]
    if not started:
        return ""
    bad = [lesson for lesson in started if lesson.diverged]
    if bad:
        return (
            f"The loss of **{' and '.join(map(_kind, bad))}** diverged: the learning rate is too "
            "high. The encoder has the best weights of the run. Try a tenth of the rate."
        )
    is_measured = all(len(lesson.accuracy) for lesson in started)
    if max(lesson.step for lesson in started) < 2 or (
        label and not is_measured and not any(lesson.is_over for lesson in started)
    ):
        if first := max(lesson.first for lesson in started):
            return f"Training **goes on** after step {first:,}, where it was stopped."
        trained = f" of **{part}**" if part else ""
        return f"Training{trained} has begun: each step pulls the two halves of a pair together."
    if not label or not is_measured:
        trained = f"With **{part}** trained: " if part else ""
        return trained + " ".join(map(_without_labels, started))
    before = started[0].accuracy[0, -1]
    reached = [float(lesson.accuracy[-1, -1]) for lesson in started]
    if all(len(lesson.accuracy) == 1 for lesson in started):
        return (
            f"Before: the ten nearest texts point to the right {label} for **{_percent(before)}** "
            "of texts. The steps since then have not been measured yet."
        )
    whole = started[0].untrained
    if whole is not None and whole >= max(reached):
        return _less_than_whole(started, label, before, reached, whole, part)
    if len(started) == 1:
        return _describe_single(started[0], label, before, reached[0], decided, part)
    return _compare_two(started, label, before, reached, decided, part)


def _less_than_whole(
    lessons: Sequence[Lesson],
    label: str,
    before: float,
    after: Sequence[float],
    whole: float,
    part: str,
) -> str:
    reached = joined(
        [
            f"{_percent(share)} after {_kind(lesson)}"
            for lesson, share in zip(lessons, after, strict=True)
        ]
    )
    return (
        f"**The whole model, untrained, does {'better' if whole > max(after) else 'as well'}**: "
        f"its ten nearest texts point to the right {label} for **{_percent(whole)}** of texts. "
        f"With **{part or 'less than that'}** trained, it is {reached}, and "
        f"{_percent(before)} before."
    )


def _describe_single(
    lesson: Lesson, label: str, before: float, after: float, decided: bool | None, part: str
) -> str:
    beginning = f"After {many(lesson.snapshots[-1].step, 'step')} of {_kind(lesson)}"
    verb = "up from" if after > before + LEVEL else "down from" if after < before - LEVEL else "as"
    was = "before" if verb == "as" else _percent(before)
    trained = f", with **{part}** trained" if part else ""
    return (
        f"{beginning}{trained}, the ten nearest texts point to the right {label} for "
        f"**{_percent(after)}** of texts, {verb} {was}"
        f"{TOO_FEW if decided is False and verb != 'as' else '.'}"
    )


def _compare_two(
    lessons: Sequence[Lesson],
    label: str,
    before: float,
    after: Sequence[float],
    decided: bool | None,
    part: str,
) -> str:
    better, worse = (0, 1) if after[0] >= after[1] else (1, 0)
    trained = f"with **{part}** trained, " if part else ""
    shares = (
        f"{trained}the ten nearest texts point to the right {label} for "
        f"**{_percent(after[better])}** of texts after **{_kind(lessons[better])}**, for "
        f"{_percent(after[worse])} after **{_kind(lessons[worse])}** and for "
        f"{_percent(before)} before"
    )
    harmed = [_kind(lesson) for lesson in lessons if does_harm(lesson)]
    if len(harmed) == len(lessons):
        return f"**Both** do harm: {shares}."
    is_ahead = after[better] >= before + GAINING and after[better] - after[worse] >= LEVEL
    if is_ahead and decided is not False:
        ahead = "teaches more" if all(lesson.is_over for lesson in lessons) else "is ahead so far"
        also = f", **{harmed[0]}** does harm" if harmed else ""
        return f"**{_kind(lessons[better]).capitalize()}** {ahead}{also}: {shares}."
    if harmed:
        return f"**{harmed[0].capitalize()}** does harm: {shares}."
    shares = f"{shares[0].upper()}{shares[1:]}"
    if decided is False:
        kinds = " from ".join(map(_kind, lessons))
        return f"{shares}: too few texts to tell {kinds}."
    return f"{shares}."


def layers_point(lessons: Sequence[Lesson]) -> str:
    """Which layer's accuracy has changed most, in a sentence of markdown.

    Args:
        lessons: with accuracies of several layers and steps; the one that changed a layer most is
            told of.
    """
    moved = max(
        lessons, key=lambda lesson: float(np.abs(lesson.accuracy[-1] - lesson.accuracy[0]).max())
    )
    before, after = moved.accuracy[0], moved.accuracy[-1]
    points = 100 * np.abs(after - before)
    layer = int(points.argmax())
    if points[layer] < 1:
        return "No layer's accuracy has changed by a point."
    took = (
        f"{_kind(moved)} took it from {_percent(before[layer])} to **{_percent(after[layer])}**."
    )  # fmt: skip
    alike = np.flatnonzero(points > points[layer] - 1)
    if len(alike) == len(points):
        return f"**All layers** changed about alike. Layer {layer}: {took}"
    if len(alike) > 1:
        names = joined([str(number) for number in alike])
        return f"**Layers {names}** changed most. Layer {layer}: {took}"
    second_most = float(np.delete(points, layer).max())
    return (
        f"**Layer {layer}** changed most: {took} No other layer changed by more than "
        f"{many(math.ceil(second_most), 'point')}."
    )


def _percent(share: float) -> str:
    """A share 0 … 1 in whole per cent, half a per cent upwards, as figures round."""
    return f"{math.floor(100 * share + 0.5 + 1e-9)}%"


def _without_labels(lesson: Lesson) -> str:
    batch = lesson.settings.batch_size
    kind = _kind(lesson)
    losses = lesson.loss[np.isfinite(lesson.loss)]
    if not len(losses):  # as of a training by another program, which has not told it yet
        return f"{kind[0].upper()}{kind[1:]}: the loss is not known yet."
    first, last = float(losses[0]), float(np.mean(losses[-10:]))
    if last > first * NOTICED:
        return (
            f"{kind[0].upper()}{kind[1:]}: the loss went from {first:.2f} to {last:.2f} nats in "
            f"{many(len(losses), 'step')}."
        )
    return (
        f"{kind[0].upper()}{kind[1:]}: the encoder finds the other half of a text among "
        f"{batch:,} far better than at first: the loss fell from {first:.2f} to {last:.2f} nats."
    )


@dataclass(frozen=True)
class NewNeighbours:
    """A text that has other neighbours than before.

    Attributes:
        text: number among those that are watched.
        kept: of its ten nearest, how many it had before.
        before, after: its nearest text before and after.
    """

    text: int
    kept: int
    before: int
    after: int


def kept_neighbours(lesson: Lesson) -> np.ndarray:
    """[watched text] how many of a text's ten nearest at the end were so before, too."""
    first, last = lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest
    was_near = (first[:, :, None] == last[:, None, :]).any(axis=2)
    return was_near.sum(axis=1)


def new_neighbours(lesson: Lesson, n: int) -> list[NewNeighbours]:
    """The texts whose ten nearest changed most from the first snapshot to the last."""
    if len(lesson.snapshots) < 2 or len(lesson.snapshots[0].nearest) < 3:
        return []
    first, last = lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest
    kept = kept_neighbours(lesson)
    return [
        NewNeighbours(int(i), int(kept[i]), int(first[i, 0]), int(last[i, 0]))
        for i in np.argsort(kept, kind="stable")
        if kept[i] < first.shape[1] and first[i, 0] != last[i, 0]
    ][:n]


def moves_point(lesson: Lesson, changed: Sequence[NewNeighbours]) -> str:
    """How much the neighbourhoods have changed, in a sentence of markdown."""
    if not changed:
        return "No text has another nearest text than before: the training has hardly moved them."
    n = lesson.snapshots[0].nearest.shape[1]
    new = n - float(kept_neighbours(lesson).mean())
    return (
        f"After {_kind(lesson)}, **{new:.0f} of a text's {n}** nearest texts are new, on average. "
        "The lines follow the texts that moved most."
    )


def suggest_next(lessons: Sequence[Lesson]) -> str:
    """What to try next, in a sentence of markdown; empty where nothing suggests itself.

    Still gaining accuracy at the end asks for more epochs; else another part, or other pairs, is
    what has not been seen yet.
    """
    finished = [lesson for lesson in lessons if lesson.is_over and not lesson.diverged]
    if not finished:
        return ""
    best = max(
        finished, key=lambda lesson: lesson.accuracy[-1, -1] if len(lesson.accuracy) else 0.0
    )
    accuracy = best.accuracy
    if len(accuracy) > 2 and accuracy[-1, -1] > accuracy[-2, -1] + GAINING:
        gain = many(round(100 * (accuracy[-1, -1] - accuracy[-2, -1])), "point")
        return (
            f"Try **more epochs**: {_kind(best)} still gained {gain} in the last "
            f"{many(best.snapshots[-1].step - best.snapshots[-2].step, 'step')}."
        )
    if best.settings.part == "table":
        return "Try the **whole model**: it takes longer, and learns what words mean together."
    if len(lessons) == 1 and _kind(best) == "crops":
        return "Try **dropout** beside it: the same texts and steps, and no crops."
    if len(lessons) == 1:
        return "Try **crops** beside it: the same texts and steps, with two parts of a text a pair."
    return "Try the **embedding table** alone, under Settings: without a transformer it is quick."


def _kind(lesson: Lesson) -> str:
    return lesson.settings.pairs.kind
