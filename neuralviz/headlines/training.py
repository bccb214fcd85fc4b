"""What a training shows: sentences of markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralviz.headlines import begin, explain_interval, predict_labels, write_lead, write_values
from neuralviz.maps.neighbours import K
from neuralviz.maps.shares import paired_share_interval, wilson_interval
from neuralviz.training.record import Lesson, kept_neighbours
from neuralviz.training.settings import PAIR_LINES, TrainingSettings
from neuralviz.words import joined, many, number


def trained_part(settings: TrainingSettings, table: str = "the embedding table") -> str:
    """The part of a model that is trained, such as “the whole model”."""
    part = table if settings.part == "table" else "the whole model"
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
    sentence += f", {joined(ends)}."
    hits = [start.right, *(lesson.snapshots[-1].right for lesson in active)]
    hits_of_all = [right for right in hits if right is not None]
    ends_of_all = {(lesson.is_over, lesson.snapshots[-1].step) for lesson in lessons}
    if len(hits_of_all) < len(hits) or len(ends_of_all) > 1 or not lessons[0].is_over:
        return begin(sentence)
    bounds = [paired_share_interval(right, hits_of_all[0]) for right in hits_of_all[1:]]
    points = [
        f"{name} {'helped' if low > 0 else 'did harm'}"
        for name, (low, high) in zip(names, bounds, strict=True)
        if not low <= 0 <= high
    ]
    compared = [f"with {name}" for name in names]
    if len(names) == 2:
        compared.append("between the two")
        bounds.append(paired_share_interval(hits_of_all[1], hits_of_all[2]))
    outcomes = [
        f"{'not ' * (low <= 0 <= high)}significant {clause} (95% interval: "
        f"{write_lead(0, (low, high), is_share=True)[1]} percentage points)"
        for clause, (low, high) in zip(compared, bounds, strict=True)
    ]
    point = joined(points) if points else "training made no significant difference"
    return f"{begin(point)}: {sentence}\n\nThe difference is {joined(outcomes)}."


def describe_untrained(lesson: Lesson, table: str = "the embedding table") -> str:
    """What the whole model reaches untrained where another part is trained; else empty."""
    if lesson.untrained is None:
        return ""
    (share,) = write_values([lesson.untrained], is_share=True)
    part = trained_part(lesson.settings, table)
    return f"Training changed only {part}; the whole model, untrained, reaches {share}."


def explain_pairs(lessons: Sequence[Lesson], headline: str, label: str) -> str:
    """What is trained, where it starts, and what it learns from its pairs; all markdown."""
    settings, tokens = lessons[0].settings, "the vectors of tokens (words and parts of words)"
    mean = " A text's vector is the average of its tokens' vectors." * (settings.part == "table")
    kinds = (lesson.settings.pairs for lesson in lessons)
    lines = " ".join(f"**{kind.capitalize()}**: {PAIR_LINES[kind]}." for kind in kinds)
    vote = (
        f"The **nearest** texts have the most similar vectors; the most frequent {label} among "
        "them is their prediction. Training does not see it. "
    )
    short, _, _ = lessons[0].skipped.partition(". ")
    terms = (
        f"Each **step** of training changes {trained_part(settings, tokens)} a little, so that the "
        "two chunks (parts of a text) of a pair get more similar vectors (lists of numbers)."
        f"{mean} {lines} {vote * bool(label)}{short.rstrip('.')}{'. ' * bool(short)}"
        f"{describe_untrained(lessons[0], 'these vectors')} {explain_interval(headline)}"
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
    shares, n = sorted(lesson.accuracy[[0, -1], layer]), len(after)
    lower, upper = (wilson_interval(round(share * n), n) for share in shares)
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
