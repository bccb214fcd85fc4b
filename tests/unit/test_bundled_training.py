"""The training of the bundled model, and its optimiser where there is no bfloat16."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bundled_model import muon, output_layer, train
from neuralviz.models import load_sentence_transformer
from neuralviz.models.bundled import FACTORS, MAP
from neuralviz.models.bundled.network import build, load_minilm_tokenizer, output_weight
from tests.support.passages import write_passages


def test_it_steps_as_pytorchs_own_does() -> None:
    torch.manual_seed(0)
    starts = [torch.randn(s) for s in ((8, 8), (8, 24), (24, 8), (8, 8))]
    ours = [torch.nn.Parameter(s.clone()) for s in starts]
    theirs = [torch.nn.Parameter(s.clone()) for s in starts]
    given = {"lr": 0.01, "weight_decay": 0.01, "adjust_lr_fn": "match_rms_adamw"}
    optimizers = muon.Muon(ours, **given), torch.optim.Muon(theirs, **given)
    for _ in range(3):
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            other.grad = mine.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for start, mine, other in zip(starts, ours, theirs, strict=True):
        moved, as_far = mine - start, other - start
        assert (moved - as_far).norm() < 0.03 * as_far.norm()  # theirs is rounded to bfloat16


TEXTS = [f"On day {i} the river rose, and bridge {i % 7} was closed." for i in range(100)]
NEWS = [f"In year {i} nobody crossed the river." for i in range(20)]


def test_what_is_kept_is_the_vector_of_the_sentence_encoder() -> None:
    tokenizer, model = load_minilm_tokenizer(), build(None)
    encoder, _ = load_sentence_transformer("all-MiniLM-L6-v2")
    texts = [*TEXTS[:3], NEWS[0]]
    weight = model.bert.embeddings.word_embeddings.weight.detach()
    masked = train.mask_batch(
        train.windows(texts, tokenizer, 32), tokenizer, np.random.default_rng(0)
    )
    ids, attention, labels = masked

    def own(ids: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            states = train.predict(model, weight, ids, attention, labels, autocast=False)[2]
        return train.sentence_vectors(states, attention).numpy()

    published = encoder.encode(texts, normalize_embeddings=True)
    teachers = train.teachers_vectors(model.bert, *masked, autocast=False).numpy()
    np.testing.assert_allclose(teachers, published, atol=1e-5)
    np.testing.assert_allclose(own(torch.where(labels >= 0, labels, ids)), published, atol=1e-5)
    assert np.sum(own(ids) * published, axis=1).max() < 0.99


def test_what_a_text_teaches_is_led_to_its_goal() -> None:
    """Loss, distance and their gradients are those that autograd finds on whole logits."""
    draw = torch.Generator().manual_seed(0)
    n, d_model, vocabulary, n_texts, share = 400, 16, 300, 7, 3.0
    hidden = torch.randn(n, d_model, generator=draw, requires_grad=True)
    bias = torch.randn(vocabulary, generator=draw, requires_grad=True)
    weight = torch.randn(vocabulary, d_model, generator=draw)
    labels = torch.randint(vocabulary, (n,), generator=draw)
    texts = torch.randint(n_texts, (n,), generator=draw)
    goals = torch.randn(n_texts, d_model, generator=draw)
    loss, _, distance = train.FrozenOutputCrossEntropy.apply(
        hidden, weight, bias, labels, texts, goals, share
    )
    found = torch.autograd.grad(loss, (hidden, bias))

    logits = hidden @ weight.T + bias
    plain = torch.nn.functional.cross_entropy(logits, labels)
    missed = torch.nn.functional.one_hot(labels, vocabulary) - logits.softmax(dim=1)
    lessons = torch.zeros_like(goals).index_add(0, texts, missed @ weight)
    apart = 1 - torch.nn.functional.cosine_similarity(lessons, goals).mean()
    expected = torch.autograd.grad(plain + share * apart, (hidden, bias))
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(distance, apart.detach())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-7, rtol=1e-4)


def test_rows_are_fitted_to_where_texts_should_lead() -> None:
    """Sums of rows by a hidden map and hidden factors are found again."""
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(50, 8, generator=draw)
    hidden = torch.linalg.qr(torch.randn(8, 8, generator=draw))[0]
    factors = torch.rand(50, generator=draw) + 0.2
    bags = list(torch.randint(1, 50, (3000, 6), generator=draw))
    goals = torch.stack([(rows[bag] * factors[bag, None]).sum(dim=0) for bag in bags]) @ hidden

    def distance(of: torch.Tensor, mapping: torch.Tensor) -> float:
        sums = torch.stack([(rows[bag] * of[bag, None]).sum(dim=0) for bag in bags]) @ mapping
        return float(1 - torch.cosine_similarity(sums, goals).mean())

    start = torch.ones(50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_layer, "BATCH", 100)
        patch.setattr(output_layer, "EPOCHS", 30)
        found, mapping = output_layer.fit(rows, bags, goals, start)
    assert distance(start, torch.eye(8)) > 0.5
    assert distance(found, mapping) < 0.02
    assert found[0] == 1  # a token of no text
    assert np.corrcoef(found[1:], factors[1:])[0, 1] > 0.95


@pytest.mark.slow
def test_tokens_that_mean_alike_have_rows_that_are_alike() -> None:
    tokenizer, model = load_minilm_tokenizer(), build(None)
    table = model.get_input_embeddings().weight.detach()
    with (Path(__file__).parents[2] / "sample_data/textbooks.csv").open(newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    sequences = train.windows(texts, tokenizer, 128)
    made = output_layer.make_output_layer(texts[::8], sequences, model.bert, tokenizer)
    assert {tensor.dtype for tensor in made.values()} == {torch.float16}
    rows = output_weight(table, made[FACTORS].float(), made[MAP].float())
    assert rows.norm(dim=1).median() == pytest.approx(float(table.norm(dim=1).mean()), rel=0.1)
    the, of, river = tokenizer.convert_tokens_to_ids(["the", "of", "river"])
    assert rows[[the, of]].norm(dim=1).max() < 0.5 * rows[river].norm()
    words = ["guitar", "violin", "river", "lake", "monday", "tuesday", "doctor", "nurse"]
    units = torch.nn.functional.normalize(rows[tokenizer.convert_tokens_to_ids(words)])
    others = units @ units.T - 2 * torch.eye(len(words))
    assert (others.argmax(dim=1) == torch.arange(len(words)) ^ 1).all()  # each one's partner


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--length", "2"], "must be at least 8"),
        (["--start", __file__], "eader"),  # no weights
        ([], "No such file"),  # of passages
    ],
)
def test_what_cannot_be_trained_is_said_at_once(asked, said, tmp_path, capsys) -> None:
    here = ["--passages", str(tmp_path / "none"), "--run", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as ended:
        train.main([*here, *asked])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_that_was_killed_ends_with_the_same_weights(tmp_path: Path, monkeypatch) -> None:
    sources = {"openstax/rivers (rivers)": TEXTS, "x/wikinews (wikinews-2019-2020)": NEWS}
    folder = write_passages(tmp_path, sources)

    def run(
        name: str, steps: int, decay_steps: int = 0, tokens: int = 64, last_dense_scale: float = 1
    ) -> None:
        asked = {
            "passages": folder, "run": tmp_path / name, "steps": steps, "tokens": tokens,
            "decay-steps": decay_steps, "warmup": 2, "every": 1, "threads": 1, "length": 16,
            "keep-meaning": 1.0, "lessons": 1.0, "last-dense-scale": last_dense_scale,
        }  # fmt: skip
        train.main([part for key, value in asked.items() for part in (f"--{key}", str(value))])

    threads = torch.get_num_threads()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # sums differ there
    monkeypatch.setattr(muon, "nearest_orthogonal", lambda x, *_: x / x.norm())  # it takes long
    rows, append = iter(range(2)), train.append_row

    def killed_after_two_rows(path: Path, row: object) -> None:
        if next(rows, None) is None:
            raise KeyboardInterrupt
        append(path, row)

    try:
        run("whole", 2, 2)
        with monkeypatch.context() as patch:
            patch.setattr(train, "append_row", killed_after_two_rows)
            with pytest.raises(KeyboardInterrupt):
                run("killed", 2, 2)
        run("killed", 2, 2)
        with pytest.raises(SystemExit):
            run("killed", 4, tokens=128)
        with pytest.raises(SystemExit):
            run("constant", 2, last_dense_scale=1.5)  # there would be nothing to multiply
        with pytest.raises(SystemExit):
            run("whole", 1, 2)  # it has gone on to 2
        shutil.copytree(tmp_path / "whole", tmp_path / "longer")
        run("longer", 2, 4)
    finally:
        torch.set_num_threads(threads)
    whole, killed = (
        load_file(tmp_path / name / "encoder_and_head.safetensors") for name in ("whole", "killed")
    )
    for name, tensor in whole.items():
        assert torch.equal(tensor, killed[name]), name
    network = build(whole)
    table = network.get_input_embeddings().weight
    expected = output_weight(table, whole[FACTORS].float(), whole[MAP].float())
    torch.testing.assert_close(network.get_output_embeddings().weight, expected)
    run("killed", 2, 2, last_dense_scale=1.5)  # finished long ago: only the weights are written
    again = load_file(tmp_path / "killed/encoder_and_head.safetensors")
    for name, tensor in whole.items():
        if "transform.dense" in name:
            torch.testing.assert_close(again[name], 1.5 * tensor, rtol=2e-3, atol=1e-6)
        else:
            assert torch.equal(again[name], tensor), name
    factors = [row.split(",")[2] for row in (tmp_path / "longer/log.csv").read_text().split()[-4:]]
    assert factors == ["1.000", "0.750", "0.500", "0.250"]  # from where the decay began
    steps = [row.split(",")[0] for row in (tmp_path / "killed/log.csv").read_text().split()[1:]]
    assert steps == ["1", "3", "4"]  # killed between the second checkpoint and its row
