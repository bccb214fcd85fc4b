"""What a training shows: sentences of markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralviz.headlines import (
    begin,
    explain_interval,
    explain_prediction,
    predict_labels,
    write_lead,
    write_values,
)
from neuralviz.maps.neighbours import K
from neuralviz.maps.shares import paired_share_interval, wilson_interval
from neuralviz.training.record import Lesson, kept_neighbours
from neuralviz.training.settings import PAIR_LINES, TrainingSettings
from neuralviz.words import joined, many, number


def trained_part(settings: TrainingSettings) -> str:
    """The part of a model that is trained, such as “the whole model”."""
    part = "the embedding table" if settings.part == "table" else "the whole model"
    if settings.frozen_blocks:
        part = f"all but the first {many(settings.frozen_blocks, 'block')}"
    return f"{part} from random weights" if settings.start == "random" else part


def describe_lessons(
    lessons: Sequence[Lesson],
    label: str,  # markdown: the column that tells texts apart; empty without labels
) -> str:
    """What one or two lessons have learnt so far; empty before their first step."""
    started = [lesson for lesson in lessons if lesson.step]
    if not started:
        return ""
    bad = [lesson.settings.pairs for lesson in started if lesson.diverged]
    if bad:
        return (
            f"The loss of **{joined(bad)}** diverged: the learning rate is too high. Try a tenth "
            "of it. The encoder has the best weights from before that."
        )
    if not label or not all(len(lesson.accuracy) for lesson in started):
        return " ".join(map(_describe_loss, started))
    return _describe_change(started, label)


def _describe_change(lessons: Sequence[Lesson], label: str) -> str:
    """The shares of texts before and after, and once all is over, what helped, and how sure."""
    start = lessons[0].snapshots[0]
    active = [lesson for lesson in lessons if lesson.snapshots[-1].step]
    shares = [lessons[0].accuracy[0, -1], *(lesson.accuracy[-1, -1] for lesson in active)]
    start_share, *end_shares = write_values([float(share) for share in shares], is_share=True)
    sample = "texts" if start.right is None else many(len(start.right), "text")
    names = [f"**{lesson.settings.pairs}**" for lesson in active]
    sentence = f"{predict_labels(label, K)} {start_share} of {sample} before training"
    if not active:
        return begin(f"{sentence}.")
    ends = [f"{share} after {name}" for share, name in zip(end_shares, names, strict=True)]
    last = [lesson.snapshots[-1] for lesson in lessons]
    hits = [shot.right for shot in (start, *last) if shot.right is not None]
    is_over = all(lesson.is_over for lesson in lessons) and len({shot.step for shot in last}) == 1
    if len(hits) <= len(lessons) or not is_over:
        return begin(f"{sentence}, {joined(ends)}.")
    bounds = [paired_share_interval(right, hits[0]) for right in hits[1:]]
    clauses, n = [f"with {name}" for name in names], len(names)
    if n == 2:
        clauses.append("between the two")
        bounds.append(paired_share_interval(hits[1], hits[2]))
    verdicts = ["helped" if low > 0 else "did harm" if high < 0 else "" for low, high in bounds]
    intervals = [write_lead(0, interval, is_share=True)[1] for interval in bounds]
    intervals[0] = f"95% interval: {intervals[0]} percentage points"
    outcomes = [
        f"{'not ' * (not verdict)}significant {clause} ({interval})"
        for clause, verdict, interval in zip(clauses, verdicts, intervals, strict=True)
    ]
    points = [f"{name} {v}" for name, v in zip(names, verdicts, strict=False) if v]
    ends = [end for end, v in zip(ends, verdicts, strict=False) if v or not points]
    point = joined(points) if points else "training made no significant difference"
    doubts = [f"The difference is {joined(outcomes[:n])}.", *(f"It is {o}." for o in outcomes[n:])]
    doubts = doubts if points else [" ".join(doubts)]  # the stage leaves out the last of three
    return "\n\n".join([f"{begin(point)}: {sentence}, {joined(ends)}.", *doubts])


def describe_untrained(lessons: Sequence[Lesson]) -> str:
    """What the whole model reaches untrained where another part is trained; else empty."""
    whole = lessons[0].untrained
    if whole is None:
        return ""
    (share,) = write_values([whole], is_share=True)
    rivals = [lesson for lesson in lessons if len(lesson.accuracy)]
    is_better = bool(rivals) and all(
        _exceeds(whole, lesson.accuracy[-1, -1], lesson) for lesson in rivals
    )
    subject = f"Trained: {trained_part(lessons[0].settings)}; the whole model"
    return f"{subject}, untrained, reaches {share}{', which is better' * is_better}."


def explain_pairs(lessons: Sequence[Lesson], headline: str, label: str, texts: str) -> str:
    """What is trained on which texts, and what it learns from its pairs; all markdown."""
    kinds = (lesson.settings.pairs for lesson in lessons)
    lines = " ".join(f"**{kind.capitalize()}**: {PAIR_LINES[kind]}." for kind in kinds)
    vote = f"{explain_prediction(label)} Training does not see the {label}. "
    terms = (
        f"Texts: {texts}. A model makes vectors (lists of numbers) of them; each **step** of "
        f"training makes those of two chunks (parts) a little more alike. {lines} "
        f"{vote * bool(label)}{describe_untrained(lessons)} "
        f"{explain_interval(headline)}"
    )
    return terms.rstrip()


def _describe_loss(lesson: Lesson) -> str:
    """How far a loss has fallen, from the first step to the mean of the last ten."""
    losses = lesson.loss[np.isfinite(lesson.loss)]
    if len(losses) == 1:
        return (
            f"Training with {lesson.settings.pairs}: the loss of one step is {losses[0]:.2f} nats."
        )
    if not len(losses):  # as of a training by another program, which has not told it yet
        return f"Training with {lesson.settings.pairs} has begun."
    first, last = float(losses[0]), float(np.mean(losses[-10:]))
    return (
        f"Training with {lesson.settings.pairs}: the loss went from {first:.2f} to {last:.2f} nats "
        f"in {many(len(losses), 'step')}."
    )


def describe_trained_layers(lessons: Sequence[Lesson]) -> str:
    """Which layer's accuracy has changed most in any of the lessons, if that is significant."""
    changes = [np.abs(lesson.accuracy[-1] - lesson.accuracy[0]) for lesson in lessons]
    n = int(np.argmax([change.max() for change in changes]))
    layer, accuracy = int(changes[n].argmax()), lessons[n].accuracy
    if not _has_changed(lessons[n], layer):
        return "No layer's accuracy has changed significantly."
    return (
        f"**{lessons[n].settings.pairs.capitalize()}** changed layer {layer} most: its accuracy "
        f"went from {accuracy[0, layer]:.1%} to **{accuracy[-1, layer]:.1%}**."
    )


def _has_changed(lesson: Lesson, layer: int) -> bool:
    """Whether a layer's accuracy has changed significantly; of inner layers, by two intervals."""
    before, after = lesson.snapshots[0].right, lesson.snapshots[-1].right
    if before is None or after is None:
        return False
    if layer == lesson.accuracy.shape[1] - 1:
        low, high = paired_share_interval(after, before)
        return low > 0 or high < 0
    shares = lesson.accuracy[[0, -1], layer]
    return _exceeds(max(shares), min(shares), lesson)


def _exceeds(share: float, rival: float, lesson: Lesson) -> bool:
    """Whether the interval of a share of a lesson's texts is above that of a smaller one."""
    right = lesson.snapshots[-1].right
    n = 1 if right is None else len(right)
    lower, upper = (wilson_interval(round(n * s), n) for s in (rival, share))
    return lower[1] < upper[0]


def describe_moves(lesson: Lesson) -> str:
    """How many nearest texts are new."""
    n = lesson.snapshots[0].nearest.shape[1]
    new = n - float(kept_neighbours(lesson).mean())
    if not new:
        return "Every text has the same nearest texts as before."
    written = number(new, ".2g") if new >= 0.1 else "fewer than 0.1"
    pairs = lesson.settings.pairs
    return (
        f"After training with {pairs} ({PAIR_LINES[pairs]}), **{written} of a text's {n}** nearest "
        "texts are new, on average."
    )
