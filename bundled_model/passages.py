"""The permissive passages: which source each is from, and which are trained on.

The folder has ``passages.txt.xz``, a passage a line, and ``SOURCES.md``, a table of the sources
with their licences. The lines are the table's sources in order, shuffled by `random.Random(0)`;
undoing the shuffle says where each passage is from. The table's word counts are compared with what
comes out, so a folder of another make is refused.
"""

from __future__ import annotations

import lzma
import random
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PASSAGES = "passages.txt.xz"
SOURCES = "SOURCES.md"
HELD_OUT_SHARE = 100  # one passage in so many is never trained on
UNSEEN = {  # sources that are never trained on, and what each is
    "wikinews-2019-2020": "Wikinews",
    "gum-news-interview": "Wikinews",
    "f-scott-fitzgerald_the-great-gatsby": "The Great Gatsby",
}
WORDS_APART = 0.001  # of the words of a source: what "a word" is differs a little

KINDS = {  # kind of text, by the owner of its repository
    "openstax": "textbooks",
    "standardebooks": "novels, stories, essays",
    "nltk": "speeches",
    "abachaa": "questions on health",
    "mozilla": "sentences, dialogues, sums",
    "lil-lab": "sentences, dialogues, sums",
    "google-research-datasets": "sentences, dialogues, sums",
    "openai": "sentences, dialogues, sums",
}
OTHER_KIND = "public web pages and guides"

# Columns: owner/repository (name), commit, licence, where it says so, passages, words, attribution.
ROW = re.compile(
    r"^\| (?P<repository>[^ |]+/[^ |]+) \((?P<name>[^|]+)\) \| `(?P<commit>[0-9a-f]+)` "
    r"\| (?P<licence>[^|]+) \| (?P<evidence>[^|]+) \| (?P<passages>[\d,]+) \| (?P<words>[\d,]+) "
    r"\| (?P<attribution>[^|]+) \|$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Source:
    """A row of the table of sources.

    Attributes:
        repository: ``owner/name`` on GitHub.
        name: what the source is called; a repository can have several.
        commit: first digits of the commit that was read.
        licence: the licence of the text.
        evidence: where the source says so.
        attribution: whom to name.
        passages, words: how many there are.
    """

    repository: str
    name: str
    commit: str
    licence: str
    evidence: str
    attribution: str
    passages: int
    words: int

    @property
    def kind(self) -> str:
        """What sort of text it is: figures are given by kind."""
        return UNSEEN.get(self.name) or KINDS.get(self.repository.split("/")[0], OTHER_KIND)

    @property
    def is_unseen(self) -> bool:
        """Whether nothing of it is trained on."""
        return self.name in UNSEEN


@dataclass(frozen=True)
class Split:
    """What is trained on, and what is not.

    Attributes:
        train: passages that are trained on.
        held_out: by kind of text, the passages of the same sources that the checksum left out.
        unseen: by kind, all passages of the sources of which nothing is trained on.
    """

    train: list[str]
    held_out: dict[str, list[str]]
    unseen: dict[str, list[str]]

    def all_held_out(self) -> list[str]:
        """The passages that the checksum left out, of every kind."""
        return [passage for passages in self.held_out.values() for passage in passages]


def read_sources(folder: Path) -> list[Source]:
    """The sources of ``passages.txt.xz``, in the table's order.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has no table, or a row that cannot be read.
    """
    try:
        text = (folder / SOURCES).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{folder / SOURCES} is not UTF-8.") from error
    section = text.split(f"## `{PASSAGES}`")[-1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]  # after the head
    for row in rows:
        if not ROW.match(row):
            raise ValueError(f"{folder / SOURCES} has a row that cannot be read: {row}")
    sources = [
        Source(
            row["repository"],
            row["name"],
            row["commit"],
            row["licence"].strip(),
            row["evidence"].strip(),
            row["attribution"].strip(),
            int(row["passages"].replace(",", "")),
            int(row["words"].replace(",", "")),
        )
        for row in ROW.finditer(section)
    ]
    if not sources:
        raise ValueError(f"{folder / SOURCES} has no table of the sources of {PASSAGES}.")
    return sources


def read_passages(folder: Path) -> list[tuple[Source, list[str]]]:
    """Each source with its passages.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is damaged, or the passages are not those that the table describes.
    """
    sources = read_sources(folder)
    try:
        with lzma.open(folder / PASSAGES, "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file]
    except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{folder / PASSAGES} is damaged: {error}") from error
    n = sum(source.passages for source in sources)
    if len(lines) != n:
        raise ValueError(
            f"{folder / PASSAGES} has {len(lines):,} lines, but {SOURCES} counts {n:,}."
        )
    order = list(range(len(lines)))
    random.Random(0).shuffle(order)
    ordered = [""] * len(lines)
    for line, at in zip(lines, order, strict=True):
        ordered[at] = line
    out, start = [], 0
    for source in sources:
        passages = ordered[start : start + source.passages]
        start += source.passages
        words = sum(len(passage.split()) for passage in passages)
        if abs(words - source.words) > max(2, WORDS_APART * source.words):
            raise ValueError(f"The passages of {source.name} are not those that {SOURCES} counts.")
        out.append((source, passages))
    return out


def is_held_out(passage: str) -> bool:
    """Whether a passage is never trained on, decided by its own text."""
    return zlib.crc32(passage.encode()) % HELD_OUT_SHARE == 0


def split(sources: Iterable[tuple[Source, list[str]]]) -> Split:
    """What is trained on and what is not; a passage that occurs again counts once."""
    seen: set[str] = set()
    out = Split([], {}, {})
    for source, passages in sorted(sources, key=lambda pair: not pair[0].is_unseen):
        for passage in passages:
            if passage in seen:
                continue
            seen.add(passage)
            if source.is_unseen:
                out.unseen.setdefault(source.kind, []).append(passage)
            elif is_held_out(passage):
                out.held_out.setdefault(source.kind, []).append(passage)
            else:
                out.train.append(passage)
    return out
