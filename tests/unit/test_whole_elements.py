"""Elements that are sent whole while a run goes on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from neuralviz.ui import runs


def test_nothing_is_taken_for_what_the_browser_has(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(cached_message_hashes=frozenset({"a figure"}))
    monkeypatch.setattr(runs, "get_script_run_ctx", lambda **_: context)
    with pytest.raises(KeyError), runs.send_whole_elements():
        assert not context.cached_message_hashes
        raise KeyError
    assert context.cached_message_hashes == {"a figure"}


def test_streamlit_knows_what_the_browser_has_by_that_name() -> None:
    """Else nothing would be sent whole."""
    assert "cached_message_hashes" in ScriptRunContext.__dataclass_fields__
