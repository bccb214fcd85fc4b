"""Print the tables of docs/models.md: what becomes of every family of models.

python scripts/list_families.py --processes 2
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.families import all_families, text_families, why_left_out
from tests.support.family_checks import Finding, check_apart

HEAD = """\
| Mean, last, SBERT-WK | Neural | Families | Reason |
| --- | --- | --- | --- |"""


def find_all(families: list[str], processes: int) -> list[Finding]:
    """The findings of families, in their order, by so many processes."""

    def find(family: str) -> Finding:
        finding = check_apart(family)
        print(family, finding.vectors, *finding.wrong, file=sys.stderr)
        return finding

    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(find, families))


def tell_reason(finding: Finding) -> str:
    """The first sentence of why something was refused, in words that fit every family alike."""
    reasons = []
    for step, message in finding.reasons.items():
        name = rf"(?<![\w.-]){re.escape(finding.family)}(?![\w-]|\.\w)"
        words = re.sub(rf"(the model )?“?{name}”?( \({name}\))?", "the model", message)
        words = re.sub(r"'\S*/\S*'", "its folder", words)
        words, _, _ = words.partition(". ")
        words = f"{words[:1].upper()}{words[1:]}".rstrip(".") + "."
        reasons.append(words if step in ("model", "neural") else f"{step.capitalize()}: {words}")
    return " ".join([*dict.fromkeys(reasons), *finding.wrong]).replace("|", "\\|")


def list_findings(findings: list[Finding]) -> list[str]:
    """The lines of the table, families with the same result in one."""
    alike: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for finding in findings:
        alike[finding.vectors, finding.neural, tell_reason(finding)].append(finding.family)
    order = sorted(alike, key=lambda row: ("right refused — wrong".split().index(row[0]), *row[1:]))
    return [f"| {row[0]} | {row[1]} | {_quote(alike[row])} | {row[2]} |" for row in order]


def list_left_out() -> list[str]:
    """A line for each reason why families are not checked."""
    alike: dict[str, list[str]] = defaultdict(list)
    for family in all_families():
        if reason := why_left_out(family):
            alike[reason].append(family)
    return [f"- {reason}: {_quote(alike[reason])}" for reason in sorted(alike)]


def _quote(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    findings = find_all(list(text_families()), options.processes)
    packages = ("torch", "transformers", "sentence-transformers")
    print(f"With {', '.join(f'{name} {version(name)}' for name in packages)}:\n")
    print(HEAD)
    print("\n".join(list_findings(findings)))
    print("\nNot checked, because the family\n")
    print("\n".join(list_left_out()))


if __name__ == "__main__":
    main()
