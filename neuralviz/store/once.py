"""What is added to a store once, and stays away when somebody deletes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from neuralviz.errors import StoreError

if TYPE_CHECKING:
    from neuralviz.store.corpora import Corpus, CorpusStore

_adding = threading.Lock()  # for the sessions that open the app together


def once(store: CorpusStore, name: str, add: Callable[[], Corpus]) -> Corpus | None:
    """The corpus that ``add`` makes, unless that has been done before in this store; None then.

    Args:
        store: to be added to.
        name: of the mark that is left in its folder.
        add: makes the corpus.

    Raises:
        StoreError: the mark cannot be written.
    """
    mark = store.folder / f"{name}.json"
    with _adding:
        if mark.exists():
            return None
        corpus = add()
        try:
            mark.write_text(json.dumps({"corpus": corpus.id}), "utf-8")
        except OSError as error:
            raise StoreError(f"Could not write {mark}: {error.strerror or error}.") from error
    return corpus
