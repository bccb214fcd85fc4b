"""Families of text models that transformers can build: right vectors, or a sentence.

Here a fifth of those that predict masked tokens and some others, a sixth of them trained;
``scripts/list_families.py`` checks and trains them all.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.families import all_families, save_family, text_families, why_left_out
from tests.support.family_checks import Finding, VectorChecks, check_apart, plain_vectors

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"


def documented_results() -> dict[str, tuple[str, str]]:
    """By family what docs/models.md says of its vectors, and of neural."""
    results = {}
    for line in DOCUMENT.read_text("utf-8").splitlines():
        vectors, neural, families = (f"{line} | | |".split("|")[at].strip() for at in (1, 2, 3))
        if vectors in ("right", "refused", "—"):
            for family in re.findall(r"`([^`]+)`", families):
                assert family not in results, f"{family} is documented twice"
                results[family] = (vectors, neural)
    return results


RESULTS = documented_results()
MASKED = sorted(family for family, (_, neural) in RESULTS.items() if neural != "—")
RARE = {"clip_text_model", "mpt", "tipsv2_text_model", "xlnet"}  # each reads in its own way
OTHERS = sorted(RESULTS.keys() - set(MASKED))
SAMPLE = sorted({*MASKED[::5], *OTHERS[::24], *RARE})


def test_every_family_is_documented() -> None:
    assert sorted(RESULTS) == sorted(text_families())
    _, _, listed = DOCUMENT.read_text("utf-8").partition("Not checked")
    left_out = {family for family in all_families() if why_left_out(family)}
    assert set(re.findall(r"`([^`]+)`", listed)) - {"AutoModel"} == left_out


@pytest.mark.parametrize("family", SAMPLE)
def test_vectors_are_right_or_refused(family: str) -> None:
    finding = check_apart(family, is_trained=family in SAMPLE[::6])
    assert finding.wrong == []
    assert (finding.vectors, finding.neural) == RESULTS[family]


def test_padding_that_leaks_would_be_seen(tmp_path: Path) -> None:
    """What is compared differs where FNet's texts are padded, which they must not be."""
    from neuralviz.models import load_text_model

    folder = save_family("fnet", tmp_path)
    model = load_text_model(folder, device="cpu")
    padded = replace(model, behaviour=replace(model.behaviour, batching="padded"))
    finding = Finding("fnet")
    VectorChecks(finding, tmp_path).compare_all(padded, plain_vectors(folder))
    assert finding.wrong
    assert all("in a batch" in line for line in finding.wrong)
