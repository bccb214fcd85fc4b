"""Write the list of texts that the bundled model was trained on, and its short form in the card.

The list is ``licences/TRAINING_TEXTS.md``.

python scripts/list_training_texts.py --passages permissive/
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bundled_model.passages import Source, read_sources

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "licences" / "TRAINING_TEXTS.md"
CARD = ROOT / "neuralviz" / "models" / "bundled" / "MODEL_CARD.md"
IN_CARD = re.compile(r"(?<=<!-- sources -->\n).*?(?=<!-- end of sources -->)", re.DOTALL)
TITLED = ("openstax", "standardebooks")  # whose attributions have titles in lower case
SMALL_WORDS = {"a", "an", "and", "at", "by", "in", "of", "on", "the", "to"}
TITLES = {  # of books whose repositories are called otherwise
    "anatomy-physiology": "Anatomy and Physiology",
    "college-success-bundle": "College Success",
    "introduction-anthropology": "Introduction to Anthropology",
    "introduction-business": "Introduction to Business",
    "introduction-philosophy": "Introduction to Philosophy",
    "introduction-political-science": "Introduction to Political Science",
    "introduction-sociology": "Introduction to Sociology",
    "life-liberty-and-pursuit-happiness": "Life, Liberty, and the Pursuit of Happiness",
    "principles-economics-bundle": "Principles of Economics",
    "principles-marketing": "Principles of Marketing",
    "us-history": "U.S. History",
    "writing-guide": "Writing Guide with Handbook",
}
COPYRIGHT = re.compile(r"Copyright \(c\) [^;|]+")
LINKS = {
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY 2.5": "https://creativecommons.org/licenses/by/2.5/",
    "CC0 1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "MIT": "https://opensource.org/license/mit",
    "OGL (UK Open Government Licence)":
        "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/2/",
}  # fmt: skip

HEAD = """\
# Texts that the bundled model was trained on, and tested on (○)

None of these texts is in the repository or in the package, but for passages of eight textbooks in
`sample_data/textbooks.csv`. Every licence below allows any use; those that ask for attribution or
for a copyright notice get it here. Changes to the texts: markup, links, code, lists and citations
in brackets were removed, of textbooks also exercises, tables, captions, formulas, references and
key terms; quotation marks and dashes were made plain; paragraphs were joined or split; and what
came more than once was dropped. Standard Ebooks believes that the works behind its editions are in
the public domain in the United States; elsewhere some may still be protected.

Texts marked with ○ were not trained on: they measure how well the model reads text of another
kind. Of all others, one passage in a hundred was set aside, to measure the model on. It is
measured on AG News and the STS benchmark, too, which are not in this list.
"""


def attribution_of(source: Source) -> str:
    """Whom to name for a source, titles and names with capitals, without the licence.

    A notice of copyright that its licence asks for comes last.
    """
    whole = source.attribution.replace(f"{source.licence}; ", "")
    parts = [part.strip() for part in whole.split(", ")]
    parts = [part for part in parts if part not in (source.licence, "CC0")]
    if source.repository.split("/")[0] in TITLED:
        parts[1:] = [TITLES.get(source.name) or _titled(part) for part in parts[1:]]
    if notice := COPYRIGHT.search(source.evidence):
        parts.append(notice[0].strip())
    return ", ".join(parts)


def _titled(words: str) -> str:
    out = []
    for at, word in enumerate(words.split()):
        is_first = at == 0 or out[-1] == "by"
        if len(word) == 1 and word != "a":
            word = f"{word.upper()}."  # an initial
        elif is_first or word not in SMALL_WORDS:
            word = word.capitalize()
        out.append(word)
    return " ".join(out)


def _by_licence(sources: list[Source]) -> Iterator[tuple[str, Iterator[Source]]]:
    """Licences in order, each with its sources in theirs."""
    ordered = sorted(sources, key=lambda source: source.licence)
    return groupby(ordered, key=lambda source: source.licence)


def table_of(sources: list[Source]) -> str:
    """The list in markdown, licence by licence."""
    said = [HEAD]
    for licence, group in _by_licence(sources):
        title = licence[0].upper() + licence[1:]
        link = LINKS.get(licence)
        said.append(f"## {f'[{title}]({link})' if link else title}\n")
        said.append("| text | repository | words |")
        said.append("| --- | --- | ---: |")
        for source in group:
            mark = " ○" if source.is_unseen else ""
            where = f"[{source.repository}](https://github.com/{source.repository}/tree/{source.commit})"
            said.append(f"| {attribution_of(source)}{mark} | {where} | {source.words:,} |")
        said.append("")
    return "\n".join(said)


def list_of(sources: list[Source]) -> str:
    """All sources in markdown, an item a licence."""
    said = []
    for licence, group in _by_licence(sources):
        works: dict[str, list[str]] = {}  # by who made them; of most, that is all
        for source in group:
            name = attribution_of(source).partition(", Copyright")[0]
            mark = " ○" if source.is_unseen else ""
            if source.repository.split("/")[0] in TITLED:
                name, _, work = name.partition(", ")
                title, by, author = work.partition(" by ")
                works.setdefault(name, []).append(f"*{title}*{by}{author}{mark}")
            else:
                works.setdefault(name + mark, [])
        named = (f"{name}: {', '.join(each)}" if each else name for name, each in works.items())
        item = f"- **{licence[0].upper()}{licence[1:]}**: {'; '.join(named)}."
        said.append(textwrap.fill(item, 100, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(said) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--passages", type=Path, required=True, help="folder of the passages")
    args = parser.parse_args()
    try:
        sources = read_sources(args.passages)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    TARGET.write_text(table_of(sources), encoding="utf-8")
    card = IN_CARD.sub(lambda _: list_of(sources), CARD.read_text(encoding="utf-8"))
    CARD.write_text(card, encoding="utf-8")
    print(TARGET.relative_to(ROOT), CARD.relative_to(ROOT), sep="\n")


if __name__ == "__main__":
    main()
