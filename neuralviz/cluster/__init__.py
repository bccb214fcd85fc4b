"""Read, embed and map corpora on a Ray cluster, in the same store; needs ``neuralviz[ray]``.

The addresses of clusters are here, where they load no Ray.
"""

from __future__ import annotations

import re

LOCAL = "local"
_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.-]+)"
_ADDRESS = re.compile(rf"auto|local|{_HOST}:\d+")
_MEANT_FOR_ONE = re.compile(rf"localhost|{_HOST}:\w*|\d+(\.\d+){{3}}|ray://.*")


def is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None


def is_like_address(text: str) -> bool:
    """Whether this is an attempt at an address rather than a file."""
    return _MEANT_FOR_ONE.fullmatch(text) is not None
