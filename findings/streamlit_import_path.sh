#!/usr/bin/env bash
# streamlit 1.67.0: when a page's run ends, other threads may fail to find an installed package.
#
# One would think that the folder of the script joins `sys.path` for good. It is put in front before
# each run of the script and removed after it, from the list that all threads share. A thread that
# searches the list meanwhile skips an entry: `find_spec` gives None, or an import raises
# ModuleNotFoundError, for a package that is there. Twenty visitors at once met it in one of eight
# lessons. A server can append the folder to `sys.path` before the first run: Streamlit then leaves
# the list alone.
#
# Seen: "found: False, with the folder on the path before: True".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet streamlit==1.67.0
mkdir "$folder/pages" "$folder/site"
touch "$folder/site/there.py"
cat > "$folder/pages/app.py" <<'PAGE'
import threading

import streamlit as st

events = {thread.name: thread for thread in threading.enumerate()}["page"].events
st.write("Hello")
events[0].set()  # the page is drawn
events[1].wait(60)  # until a search is half-way
PAGE
cd "$folder"
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import logging
import sys
import threading
import time
from importlib.util import find_spec

from streamlit.testing.v1 import AppTest

logging.disable()
folder = sys.argv[1]


class Halfway:
    """An entry of the path at which the search lets the page's run go, and waits for its end."""

    page = None

    @classmethod
    def find_spec(cls, name, target=None):
        if cls.page is not None:
            page, cls.page = cls.page, None
            page.events[1].set()
            end = time.monotonic() + 3
            while f"{folder}/pages" in sys.path and time.monotonic() < end:
                time.sleep(0.01)
        return None


def finder_of(entry):
    if entry != "halfway":
        raise ImportError
    return Halfway


sys.path_hooks.insert(0, finder_of)
sys.path += ["halfway", f"{folder}/site"]


def is_found_while_a_run_ends() -> bool:
    page = threading.Thread(
        target=lambda: AppTest.from_file(f"{folder}/pages/app.py").run(timeout=60), name="page"
    )
    page.events = threading.Event(), threading.Event()
    page.start()
    page.events[0].wait(60)
    Halfway.page = page
    is_found = find_spec("there") is not None
    assert Halfway.page is None  # the search met the run's end
    page.join()
    return is_found


alone = is_found_while_a_run_ends()
assert find_spec("there") is not None  # it is there all the time
sys.path.append(f"{folder}/pages")
before = is_found_while_a_run_ends()
print(f"found: {alone}, with the folder on the path before: {before}")
assert (alone, before) == (False, True)
PYTHON
echo "as described"
