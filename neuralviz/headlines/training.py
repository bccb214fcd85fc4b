"""What a training shows: sentences of markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralviz.headlines import (
    UNSURE,
    Entry,
    Headline,
    Measured,
    begin,
    explain_interval,
    predict_labels,
    rank_hits,
    write_values,
)
from neuralviz.maps.neighbours import K
from neuralviz.maps.shares import paired_share_interval, wilson_interval
from neuralviz.training.record import Lesson, kept_neighbours
from neuralviz.training.settings import PAIR_LINES, TrainingSettings
from neuralviz.words import joined, many, number


def trained_part(settings: TrainingSettings, table: str = "the embedding table alone") -> str:
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
    entries = [
        Entry(f"**{lesson.settings.pairs}**", float(lesson.accuracy[-1, -1]))
        for lesson in started
        if lesson.snapshots[-1].step > started[0].snapshots[0].step
    ]
    entries.append(Entry("**no training**", float(started[0].accuracy[0, -1])))
    right = started[0].snapshots[0].right
    n = 0 if right is None else len(right)
    n_texts = many(n, "text") if n else "texts"
    measured = Measured(predict_labels(label, K), n_texts, "of", is_share=True)
    if len(entries) == 1:
        return Headline(measured, entries[0]).write_sentence()
    return begin(_rank_lessons(started, measured, entries).write_sentence())


def describe_untrained(lesson: Lesson) -> str:
    """What the whole model reaches untrained where another part is trained; else empty."""
    if lesson.untrained is None:
        return ""
    (share,) = write_values([lesson.untrained], is_share=True)
    part = trained_part(lesson.settings)
    return f"Training changed {part}; the whole model, untrained, reaches {share}."


def explain_pairs(lessons: Sequence[Lesson], headline: str, label: str) -> str:
    """What is trained, where it starts, and what it learns from its pairs; all markdown."""
    settings = lessons[0].settings
    part = trained_part(settings, "the vectors of tokens (words and parts of words)")
    mean = " A text's vector is the mean of its tokens'." * (settings.part == "table")
    kinds = (lesson.settings.pairs for lesson in lessons)
    lines = " ".join(f"**{kind.capitalize()}**: {PAIR_LINES[kind]}." for kind in kinds)
    hidden = f"Training does not see the **{label}**, a column of the corpus. "
    return (
        f"Each **step** of training changes {part} a little, so that the two chunks (parts of a "
        "text) of a pair get more similar vectors (lists of numbers); **no training** is before "
        f"the first.{mean} **Nearest** texts have the most similar vectors. {hidden * bool(label)}"
        f"{lines} {explain_interval(headline)}"
    ).rstrip()


def _rank_lessons(
    lessons: Sequence[Lesson], measured: Measured, entries: Sequence[Entry]
) -> Headline:
    """The headline of lessons and of no training; nothing is decided before all are over."""
    last = [lesson.snapshots[-1] for lesson in lessons]
    hits = [snapshot.right for snapshot in (*last, lessons[0].snapshots[0])]
    known = [right for right in hits if right is not None]
    are_as_long = len({snapshot.step for snapshot in last}) == 1
    are_over = all(lesson.is_over for lesson in lessons)
    if are_over and are_as_long and len(known) == len(hits):
        return rank_hits(measured, [entry.name for entry in entries], known)
    ranked = sorted(entries, key=lambda entry: -entry.value)
    return Headline.rank(measured, ranked, lambda *_: None, UNSURE if are_over else "")


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
