"""A Ray on this machine, for all tests of a process but those of faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("ray", reason="needs neuralviz[ray]")
pytest.importorskip("lance", reason="needs neuralviz[ray]")

from neuralviz.cluster.connecting import Cluster, connected


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    with connected(n_cpus=2) as found:
        yield found
