"""Choose the sample corpus of textbook passages: ``python scripts/make_textbooks.py``.

Reads ``textbooks/passages.csv`` in the folder that NEURALVIZ_DATA names and writes
``sample_data/textbooks.csv``: of eight subjects, the chapters with the most passages.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pandas as pd

SUBJECTS = (
    "Astronomy", "Economics", "Marketing", "Microbiology", "Philosophy", "Psychology", "Sociology",
    "U.S. History",
)  # fmt: skip
PASSAGES = 108  # of each subject, about
MOST_BYTES = 1_000_000
OUTPUT = Path(__file__).parents[1] / "sample_data" / "textbooks.csv"


def choose(passages: pd.DataFrame) -> pd.DataFrame:
    """Whole chapters of each subject, the largest first, in the order of the book."""
    chosen = []
    for subject in SUBJECTS:
        of_subject = passages[passages["subject"] == subject]
        sizes = of_subject["chapter"].value_counts(sort=False)
        sizes = sizes.sort_values(ascending=False, kind="stable")
        chapters = sizes.index[sizes.cumsum() <= PASSAGES]
        chosen.append(of_subject[of_subject["chapter"].isin(chapters)])
    table = pd.concat(chosen)
    table["chapter"] = table["chapter"].str.split(": ", n=1).str[-1]
    return table[["id", "subject", "chapter", "text"]]


def main() -> None:
    """Write the corpus."""
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        sys.exit("Set NEURALVIZ_DATA to the folder of the real data.")
    table = choose(pd.read_csv(Path(folder) / "textbooks" / "passages.csv"))
    content = table.to_csv(index=False).encode()
    if len(content) > MOST_BYTES:
        sys.exit(f"{len(content):,} bytes are too many. Choose fewer passages.")
    OUTPUT.write_bytes(content)
    print(
        f"{len(table):,} passages, {table['chapter'].nunique()} chapters, "
        f"{table['subject'].nunique()} subjects, {len(content):,} bytes"
    )


if __name__ == "__main__":
    main()
