"""How much memory is left for new work."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

_GROUPS = (  # a container's limit and use, in the second and the first version of control groups
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def spare_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be had without swapping: of the machine, or of the container if less.

    Args:
        groups: where the control groups are mounted.
    """
    spare = psutil.virtual_memory().available
    for limit, usage in _GROUPS:
        with suppress(OSError, ValueError):  # no container, or one without a limit (“max”)
            remaining = int((groups / limit).read_text()) - int((groups / usage).read_text())
            spare = min(spare, max(remaining, 0))
    return spare
