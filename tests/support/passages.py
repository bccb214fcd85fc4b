"""A folder of passages like that which the bundled model is trained on."""

from __future__ import annotations

import lzma
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from bundled_model.passages import PASSAGES, SOURCES

HEAD = "| source repository | commit | licence | where | passages | words | attribution |\n| --- |"


def row(source: str, passages: Sequence[str], extra: int = 0) -> str:
    """The row of the table for a source, ``owner/repository (name)``."""
    words = sum(len(one.split()) for one in passages) + extra
    return (
        f"| {source} | `abc123def456` | CC BY 4.0 | LICENSE | {len(passages):,} | {words:,} | "
        "Somebody, CC BY 4.0 |"
    )


def write_passages(
    folder: Path,
    sources: Mapping[str, Sequence[str]],
    *,
    extra: int = 0,
    seed: int = 0,
    lost: int = 0,
) -> Path:
    """Write the table and the passages."""
    rows = "\n".join(row(source, texts, extra) for source, texts in sources.items())
    other = row("someone/else (share-alike)", ["Never read."])
    (folder / SOURCES).write_text(
        f"# Sources\n\n## `{PASSAGES}`: free\n\n{HEAD}\n{rows}\n\n"
        f"## `passages_share_alike.txt.xz`: kept apart\n\n{HEAD}\n{other}\n"
    )
    lines = [text for texts in sources.values() for text in texts]
    random.Random(seed).shuffle(lines)
    with lzma.open(folder / PASSAGES, "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines[lost:])
    return folder
