"""What the app knows about the browser session that is being served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlit import config, runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

if TYPE_CHECKING:
    from collections.abc import Callable


def is_served() -> bool:
    """Whether a server with browsers runs the script, rather than a test or plain Python."""
    return runtime.exists() and not config.get_option("global.appTest")


def session_id() -> str:
    """Id of the browser session that runs the script; empty outside a script run."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def connection_check(session: str) -> Callable[[], bool]:
    """A function, for any thread, that says whether this browser session is still connected.

    Outside a server (tests, plain Python) nobody can leave: the answer is always yes.
    """
    if not is_served():
        return lambda: True
    server = runtime.get_instance()
    return lambda: server.is_active_session(session)
