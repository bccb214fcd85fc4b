"""How a Ray cluster is named; loads no Ray."""

from __future__ import annotations

import re

LOCAL = "local"
_ADDRESS = re.compile(r"auto|local|(ray://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):(?P<port>\d+)")


def is_like_address(text: str) -> bool:
    """Whether this is meant to name a cluster, and no file; its port may be none."""
    return _ADDRESS.fullmatch(text) is not None


def is_address(text: str) -> bool:
    """Whether a cluster can have this address."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found["port"] or 1) < 1 << 16
