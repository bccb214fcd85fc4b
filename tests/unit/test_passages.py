"""Which source each permissive passage is from, and which passages are trained on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from bundled_model.passages import HELD_OUT_SHARE, is_held_out, read_passages, read_sources, split
from bundled_model.train import MaskedBatches, batches_from
from neuralviz.models.bundled.network import load_minilm_tokenizer
from tests.support.passages import write_passages

BOOKS = [f"Chapter {i} is about rivers and their banks." for i in range(1200)]
NEWS = [f"On day {i} the bridge was opened again." for i in range(30)]
TALKS = [BOOKS[0], *(f"Fellow citizens, this is speech {i}." for i in range(50))]

SOURCES = {
    "openstax/osbooks-rivers (rivers)": BOOKS,
    "vanatteveldt/wikinews (wikinews-2019-2020)": NEWS,
    "nltk/nltk_data (inaugural)": TALKS,
}


def test_every_passage_gets_its_source_back(tmp_path: Path) -> None:
    found = {
        source.name: passages
        for source, passages in read_passages(write_passages(tmp_path, SOURCES))
    }
    assert found == {"rivers": BOOKS, "wikinews-2019-2020": NEWS, "inaugural": TALKS}


def test_a_source_that_is_held_out_is_never_trained_on(tmp_path: Path) -> None:
    found = split(read_passages(write_passages(tmp_path, SOURCES)))
    assert found.unseen == {"Wikinews": NEWS}
    assert not set(found.train) & set(NEWS)


def test_a_checksum_holds_passages_out_of_every_other_source(tmp_path: Path) -> None:
    found = split(read_passages(write_passages(tmp_path, SOURCES)))
    held_out = found.all_held_out()
    assert all(map(is_held_out, held_out))
    assert not any(map(is_held_out, found.train))
    assert 0.2 < len(held_out) * HELD_OUT_SHARE / len(BOOKS) < 3
    every = [*found.train, *held_out]
    assert sorted(every) == sorted({*BOOKS, *TALKS})  # the one that comes twice counts once


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"seed": 1}, "are not those that SOURCES.md counts"),
        ({"extra": 100}, "The passages of rivers are not those"),
        ({"lost": 1}, "has 1,280 lines"),
    ],
)
def test_passages_that_the_table_does_not_describe_are_refused(
    tmp_path: Path, how: dict[str, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        read_passages(write_passages(tmp_path, SOURCES, **how))


@pytest.mark.parametrize("content", [b"", b"\xfd7zXZ\x00 and no more", None])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    folder = write_passages(tmp_path, SOURCES)
    packed = folder / "passages.txt.xz"
    packed.write_bytes(packed.read_bytes()[:-40] if content is None else content)
    with pytest.raises(ValueError, match=r"passages\.txt\.xz is damaged"):
        read_passages(folder)
    (folder / "SOURCES.md").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"SOURCES\.md is not UTF-8"):
        read_sources(folder)


def test_a_run_that_resumes_gets_the_batches_that_were_left() -> None:
    sequences = [np.arange(length) for length in range(6, 60)]
    whole = list(islice(batches_from(0, sequences, 128, seed=3), 40))  # more than one pass
    for step in (1, 17, 35):
        rest = list(islice(batches_from(step, sequences, 128, seed=3), 40 - step))
        assert [list(map(len, one)) for one in rest] == [
            list(map(len, one)) for one in whole[step:]
        ]


@pytest.mark.parametrize("processes", [0, 2])
def test_masked_batches_are_the_same_whoever_makes_them(processes: int) -> None:
    tokenizer = load_minilm_tokenizer()
    sequences = [np.r_[101, np.arange(2000, 2000 + length), 102] for length in range(6, 60)]

    def batches(step: int, n: int, processes: int = 0) -> list[tuple[torch.Tensor, ...]]:
        made = MaskedBatches(step, sequences, 128, tokenizer, seed=3)
        return list(islice(DataLoader(made, batch_size=None, num_workers=processes), n))

    whole = batches(0, 30)
    for found, expected in zip(batches(7, 20, processes), whole[7:27], strict=True):
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)
    ids, attention, labels = whole[0]
    assert (ids[labels >= 0] == tokenizer.mask_token_id).all()
    assert (attention[labels >= 0] == 1).all()
