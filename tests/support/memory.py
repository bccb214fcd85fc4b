"""The memory of this process."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")  # which not every kernel fills in


def peak_memory() -> int:
    """Bytes that this process has held at most."""
    try:
        status = STATUS.read_text("utf-8")
    except OSError:
        status = ""
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    if found:
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
