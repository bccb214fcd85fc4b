"""What an address leaves empty is chosen as if it were not in it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.ui.layers import pairs
from tests.support.pages import page_at


@pytest.fixture(autouse=True)
def _little_to_do(bundled, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    monkeypatch.setattr(pairs, "MAX_PAIRS", 12)


def check(page: AppTest, key: str, chosen: object) -> None:
    assert not page.exception
    assert page.button_group(key=key).value == chosen
    assert key not in page.query_params


@pytest.mark.parametrize(
    ("name", "key", "chosen"),
    [
        ("micro_tuning", "layers", "Head"),
        ("micro_tuning", "micro-tuning-example", "Two banks"),
        ("compare", "compare-example", "Style and content"),
        ("corpus_map", "map-a-dimensions", 2),
        ("how_it_works", "step", 1),
        ("layers", "layers-view", "A text"),
    ],
)
def test_the_first_choice_of_a_page(name: str, key: str, chosen: object) -> None:
    check(page_at(name, **{key: ""}).run(), key, chosen)
