"""Sentences with blanks, and how micro-tuning changes a model's guesses for them. No torch."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from neuralviz.errors import TextError
from neuralviz.micro_tuning.events import FilledBlank, TextReport
from neuralviz.words import number, write_guess

BLANK = "___"
MAX_BLANKS = 5
MAX_SCALE = 2.0
DEFAULT_LENGTH = 240  # characters of an excerpt from a long text
_BLANKS = re.compile(r"_{3,}|\[MASK\]")
_HAS_LETTER = re.compile(r"[^\W\d_]")


def split_at_blanks(sentence: str) -> list[str]:
    """Split a sentence at its 1 to 5 blanks, ``___`` or ``[MASK]``; else `TextError`."""
    parts = _BLANKS.split(sentence.encode("utf-8", "replace").decode("utf-8"))
    n_blanks = len(parts) - 1
    if not n_blanks:
        raise TextError("The sentence has no blank. Write ___ for the word to be predicted.")
    if n_blanks > MAX_BLANKS:
        raise TextError(f"The sentence has {n_blanks} blanks; the maximum is {MAX_BLANKS}.")
    return parts


def sentence_with_blank(text: str, report: TextReport | None) -> str:
    """A text, or part of a long one, with a blank for the word learnt best, else the longest."""
    # learnt: one token, occurring once, guessed only after tuning, with the largest rise
    if report is not None:
        text = report.text.text
    span = (report and _find_learnt_best(report)) or _find_longest(text)
    if span is None:
        return f"{_hide_blanks(text)[:DEFAULT_LENGTH]} {BLANK}".lstrip()
    start, end = span
    half = DEFAULT_LENGTH // 2
    before, after = _hide_blanks(text[:start]), _hide_blanks(text[end:])
    if len(text) > DEFAULT_LENGTH:
        before = before[-half:].partition(" ")[2] if len(before) > half else before
        after = after[:half].rpartition(" ")[0] if len(after) > half else after
    return f"{before}{BLANK}{after}"


def read_hidden_word(text: str, sentence: str) -> str:
    """The word of a text that is a blank in a sentence of it; empty where that is none."""
    before, _, after = map(re.escape, sentence.partition(BLANK))
    match = re.search(rf"{before}(\w+){after}", text)
    return match.group(1) if match else ""


def _find_longest(text: str) -> tuple[int, int] | None:
    words = (match for match in re.finditer(r"\w+", text) if _HAS_LETTER.search(match.group()))
    longest = max(words, key=lambda match: len(match.group()), default=None)
    return None if longest is None else longest.span()


def _find_learnt_best(report: TextReport) -> tuple[int, int] | None:
    """Start and end of the learnt word; None if no word of one token was masked."""
    text, before, after = report.text, report.before, report.after
    n_tokens = np.bincount(text.words)
    spans = text.word_spans
    spellings = [text.text[slice(*span)].lower() for span in spans]
    rise = after.probability - before.probability
    n_masked = np.bincount(before.input)[before.input]
    ranked: list[tuple[bool, float, tuple[int, int]]] = []
    for token, word in enumerate(text.words.tolist()):
        positions = np.flatnonzero(before.token == token)
        is_word = n_tokens[word] == 1 and not text.unknown[token]
        if not is_word or not len(positions) or not _HAS_LETTER.search(spellings[word]):
            continue
        positions = positions[n_masked[positions] == n_masked[positions].min()]
        was_right, is_right = (
            np.mean([words[i][0] == text.tokens[token] for i in positions]) > 0.5
            for words in (before.words, after.words)
        )
        is_learnt = is_right and not was_right and spellings.count(spellings[word]) == 1
        ranked.append((bool(is_learnt), float(rise[positions].mean()), spans[word]))
    return max(ranked)[2] if ranked else None


def _hide_blanks(text: str) -> str:
    """Put a text on one line and break up anything that would be read as a blank."""
    return _BLANKS.sub("_", text.replace("\n", " "))


def describe_blanks(blanks: Sequence[FilledBlank], action: str) -> str:
    """Say what the deltas changed, one sentence per blank."""
    # Before, the model's best guess for the blank was “sea” (12%); after … it is “river” (41%).
    sentences = []
    for place, blank in enumerate(blanks, 1):
        first, last = blank.before[0], blank.after[0]
        name = f"blank {place}" if len(blanks) > 1 else "the blank"
        still = "still " if last.token == first.token else ""
        sentences.append(
            f"Before, the model's best guess for {name} was “{first.token}” "
            f"({write_guess(first.before)}); after {action} it is {still}“{last.token}” "
            f"({write_guess(last.after)})."
        )
    return " ".join(sentences)


def describe_deltas(scaled: Sequence[tuple[float, int]], n_texts: int) -> str:
    """Name the added deltas, given as (scale, text), to complete a sentence such as *after …*."""
    used = [(scale, text) for scale, text in scaled if scale] or list(scaled[:1])
    if len(used) == 1 and used[0][0] == 1:
        return f"micro-tuning on text {used[0][1] + 1}" if n_texts > 1 else "micro-tuning"
    listed = [
        f"{number(scale)} × the delta" + (f" of text {text + 1}" if n_texts > 1 else "")
        for scale, text in used
    ]
    return f"adding {' and '.join(listed)}"
