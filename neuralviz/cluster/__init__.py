"""Read, embed and map corpora on a Ray cluster, in the same store; needs ``neuralviz[ray]``.

The addresses of clusters are here, where they load no Ray.
"""

from __future__ import annotations

import re

LOCAL = "local"
_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.-]+)"
_ADDRESS = re.compile(rf"auto|local|{_HOST}:\d+")


def is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None
