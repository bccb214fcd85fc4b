"""What the tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_kept_from_another_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))


@pytest.fixture(scope="session", autouse=True)
def _components_are_looked_for_once() -> Iterator[None]:
    """Else each `AppTest` reads what every installed package says of itself: 0.1 s."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        scan = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session", autouse=True)
def _a_selectbox_may_hold_what_was_typed() -> Iterator[None]:
    """In the browser it does, where new options are accepted; `AppTest` knows the given ones."""
    from streamlit.proto.WidgetStates_pb2 import WidgetState
    from streamlit.testing.v1.element_tree import Selectbox

    sent = Selectbox._widget_state

    def state(self: Selectbox) -> WidgetState:
        if self.value is None or not self.proto.accept_new_options or self.value in self.options:
            return sent.fget(self)
        return WidgetState(id=self.id, string_value=self.value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Selectbox, "_widget_state", property(state))
        yield
