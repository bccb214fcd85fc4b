"""What an address leaves empty is chosen as if it were not in it."""

from __future__ import annotations

import pytest

from tests.support.pages import page_at


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize(
    ("name", "key", "chosen"),
    [
        ("micro_tuning", "layers", "Head"),
        ("corpus_map", "map-a-dimensions", 2),
        ("corpus_map", "corpus-how", "By words"),
        ("corpus_map", "corpus-list", "Where the maps disagree"),
        ("evaluation", "example", "Forms"),
        ("how_it_works", "step", 1),
        ("layers", "layers-view", "A text"),
    ],
)
def test_the_first_choice_of_a_page(name: str, key: str, chosen: object) -> None:
    page = page_at(name, **{key: ""}).run()
    assert not page.exception
    assert page.button_group(key=key).value == chosen
    assert key not in page.query_params
