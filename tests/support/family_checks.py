"""Whether the vectors of a family's tiny model are right, held to plain transformers."""

from __future__ import annotations

import copy
import os
import re
import resource
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from neuralviz.models import LanguageModel, TextModel

Result = Literal["right", "refused", "wrong", "—"]
Vectors = Sequence[np.ndarray] | np.ndarray

_WORDS = "the old harbour lies quiet in the morning and only the gulls are awake".split() * 6
TEXTS = ("dog ran", " ".join(_WORDS[:14]), "a", " ".join(_WORDS[:74]))
"""Shorter and longer than the windows and blocks of the tiny models."""
EPOCHS = 2
SECONDS = 120
MEMORY = 12 << 30  # bytes of address space
LARGEST_ANGLE = 1e-5  # 1 − cosine
LARGEST_GAP = {"mean": 1e-4, "last": 1e-4, "sbert-wk": 1e-2, "neural": 0.05}
"""Of the largest value of a vector: sums in another order. SBERT-WK divides by small differences,
and AdamW makes steps of one size wherever a gradient is not zero, so they enlarge rounding."""

PRELOADED = ["sentence_transformers", "neuralviz.embedders.neural", "neuralviz.embedders.pooled",
             "neuralviz.training.loop", "tests.support.families"]  # fmt: skip


@dataclass
class Finding:
    """What was found of a family."""

    family: str
    vectors: Result = "right"  # by mean, last and SBERT-WK
    neural: Result = "—"  # a dash where nothing predicts masked tokens
    reasons: dict[str, str] = field(default_factory=dict)  # sentences of refusals, by method
    wrong: list[str] = field(default_factory=list)  # what was neither right nor refused


def check_apart(family: str, *, is_trained: bool = True) -> Finding:
    """`check_family` in a process that is forked from one which has loaded what all need."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    finding = Finding(family, "wrong", "wrong", wrong=["no answer in time"])
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="neuralviz-family-") as folder:
        process = context.Process(target=_answer, args=(sender, family, Path(folder), is_trained))
        process.start()
        sender.close()
        try:
            if receiver.poll(SECONDS):
                finding = receiver.recv()
        except EOFError:
            finding.wrong = ["the process ended"]
        process.kill()
        process.join()
    return finding


def _answer(sender: Connection, family: str, folder: Path, is_trained: bool) -> None:
    import torch
    from transformers.utils import logging

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    try:
        finding = check_family(family, folder, is_trained=is_trained)
    except BaseException:
        finding = Finding(family, "wrong", "wrong", wrong=[traceback.format_exc()])
    sender.send(finding)


def check_family(family: str, folder: Path, *, is_trained: bool = True) -> Finding:
    """Make a family's tiny model in an empty folder and look at it from all sides."""
    from tests.support.families import NotBuiltError, all_families, save_family

    try:
        save_family(family, folder / "model")
    except NotBuiltError as error:
        return Finding(family, "—", reasons={"model": f"{error}"})
    finding = Finding(family)
    VectorChecks(finding, folder).run(
        has_head=all_families()[family] == "masked", is_trained=is_trained
    )
    finding.reasons = {
        step: re.sub(rf"{folder}/model\b", family, reason).replace(f"{folder}", "…")
        for step, reason in finding.reasons.items()
    }
    return finding


class VectorChecks:
    """The steps of `check_family`, each of which is right, refused or wrong."""

    def __init__(self, finding: Finding, folder: Path) -> None:
        self.finding, self.folder, self.source = finding, folder, folder / "model"

    def run(self, *, has_head: bool, is_trained: bool) -> None:
        from neuralviz.models import LanguageModel, load_text_model

        expected = self._expect()
        model = self._attempt("model", lambda: load_text_model(self.source, device="cpu"))
        if model is not None:
            before = _everything(model.network)
            right = self.compare_all(model, expected)
            if right:
                if expected is not None and not _knows_its_neighbours(model.network.base_model):
                    self.finding.wrong.append("no token knows of another")
                if isinstance(model, LanguageModel):
                    self._attempt("export", lambda: self._export(model, right))
                if is_trained:
                    self._attempt("training", lambda: self._train(model))
            self._unchanged(model, before)
        self.finding.vectors = self._result("model", "mean", "last", "sbert-wk")
        if has_head:
            self._attempt("neural", self._neural)
            self.finding.neural = self._result("neural")

    def _result(self, *steps: str) -> Result:
        if self.finding.wrong:
            return "wrong"
        return "refused" if any(step in self.finding.reasons for step in steps) else "right"

    def _attempt(self, step: str, act: Callable[[], Any]) -> Any:
        """What comes of a step; None where it is refused or fails, which is noted."""
        from neuralviz.errors import NeuralvizError

        try:
            return act()
        except NeuralvizError as error:
            self.finding.reasons[step] = str(error)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(at.filename).name}:{at.lineno}"
            self.finding.wrong.append(f"{step}: {type(error).__name__} at {place}: {error}"[:400])
        return None

    def _compare(self, step: str, method: str, vectors: Vectors, expected: Vectors) -> None:
        angle, gap = _difference(vectors, expected)
        if not (angle <= LARGEST_ANGLE and gap <= LARGEST_GAP[method]):
            self.finding.wrong.append(
                f"{method}, {step}: 1 − cosine {angle:.1g}, {gap:.1g} of the largest value"
            )

    def _expect(self) -> dict[str, Vectors] | None:
        """Vectors by plain transformers, one text at a time; None where it reads no plain text."""
        try:
            expected = plain_vectors(self.source)
            (again,) = plain_vectors(self.source, TEXTS[1:2])["mean"]
        except Exception:  # whatever an architecture wants besides tokens
            return None
        is_random = _difference([again], expected["mean"][1:2])[0] > LARGEST_ANGLE
        return {} if is_random else expected

    def compare_all(
        self, model: TextModel, expected: dict[str, Vectors] | None
    ) -> dict[str, Vectors]:
        """Note where the vectors of a text depend on others, or are not as expected."""
        fresh = [replace(model, network=copy.deepcopy(model.network)) for _ in TEXTS]
        right: dict[str, Vectors] = {}
        for method in ("mean", "last", "sbert-wk"):
            compare = partial(self._compare_method, method, model, fresh, expected)
            vectors = self._attempt(method, compare)
            if vectors is not None:
                right[method] = vectors
        if right and expected is None:
            self.finding.wrong.append("plain transformers reads no plain text")
        return right

    def _compare_method(
        self,
        method: str,
        model: TextModel,
        fresh: Sequence[TextModel],
        expected: Mapping[str, Vectors] | None,
    ) -> Vectors:
        alone = [_embed(new, method, [text])[0] for new, text in zip(fresh, TEXTS, strict=True)]
        wanted = expected.get(method, alone) if expected else alone
        self._compare("alone", method, alone, wanted)
        after_others = {at: _embed(model, method, [TEXTS[at]])[0] for at in (1, 0, 3, 2)}
        self._compare("after others", method, [after_others[at] for at in range(4)], wanted)
        self._compare("in a batch", method, _embed(model, method, TEXTS), wanted)
        return wanted

    def _export(self, model: LanguageModel, expected: Mapping[str, Vectors]) -> None:
        from neuralviz.models import export_model, load_text_model

        again = load_text_model(export_model(model, self.folder / "exported"), device="cpu")
        for method, vectors in expected.items():
            self._compare("after saving and loading", method, _embed(again, method, TEXTS), vectors)

    def _train(self, model: TextModel) -> None:
        """Live vectors of a trained encoder, those of its folder, and of sentence-transformers."""
        import torch
        from sentence_transformers import SentenceTransformer

        from neuralviz.models import load_text_model
        from neuralviz.training import check_family_can_be_saved, save_encoder, train
        from neuralviz.training.record import TrainingEnded
        from neuralviz.training.settings import TrainingSettings
        from tests.support.trained import CORPUS, SHORT_SENTENCES

        check_family_can_be_saved(model, TrainingSettings())
        options: dict[str, Any] = {"batch_size": 2, "max_steps": 1, "learning_rate": 0.01}
        (*_, ended) = train(model, CORPUS[:4], **SHORT_SENTENCES | options)
        assert isinstance(ended, TrainingEnded)
        learner = ended.result.learner.eval()
        with torch.no_grad():
            live = [learner.vectors([text])[0].numpy() for text in TEXTS]
        target = self.folder / "trained"
        save_encoder(ended.result, model, target)
        again = load_text_model(target, device="cpu")
        found = [_embed(again, "mean", [text])[0] for text in TEXTS]
        self._compare("trained, saved and loaded", "mean", found, live)
        outside = SentenceTransformer(str(target), device="cpu")
        others = [outside.encode(text) for text in TEXTS]
        self._compare("trained, in sentence-transformers", "mean", others, live)

    def _neural(self) -> None:
        import torch
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        from neuralviz.embedders.neural import NeuralEmbedder
        from neuralviz.models import load_model
        from tests.support.plain_loop import plain_embedding, plain_micro_tune

        model = load_model(self.source, device="cpu")
        before = _everything(model.network)
        embedder = NeuralEmbedder(model, epochs=EPOCHS)
        texts = TEXTS[:3]
        together = embedder.encode(texts)
        alone = [embedder.encode(text) for text in texts]
        self._unchanged(model, before)
        network = AutoModelForMaskedLM.from_pretrained(self.source, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(self.source)
        expected = []
        for text in texts:
            chunk = tokenizer(text, add_special_tokens=False)["input_ids"]
            layers = embedder.settings.layers
            deltas, _ = plain_micro_tune(network, tokenizer, [chunk], layers, epochs=EPOCHS)
            expected.append(plain_embedding(deltas))
        self._compare("alone", "neural", alone, expected)
        self._compare("in a batch", "neural", together, expected)

    def _unchanged(self, model: TextModel, before: Mapping[str, Any]) -> None:
        after = _everything(model.network)
        changed = sorted(
            name
            for name in before.keys() | after.keys()
            if name not in before or name not in after or before[name] != after[name]
        )
        if changed:
            self.finding.wrong.append(f"changed by use: {', '.join(changed[:4])}")


def plain_vectors(folder: Path, texts: Sequence[str] = TEXTS) -> dict[str, Vectors]:
    """Vectors of texts by method: plain transformers, a new model for each, nothing padded."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from tests.support.plain_sbert_wk import sentence_vector

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    vectors: dict[str, list[np.ndarray]] = {"mean": [], "last": [], "sbert-wk": []}
    for text in texts:
        read = tokenizer(text, return_special_tokens_mask=True)
        special = read["special_tokens_mask"]
        n_own = len(special) - special[::-1].index(0)  # up to the text's last token
        last, states = _plain_states(copy.deepcopy(network), read["input_ids"])
        vectors["mean"].append(last.mean(axis=0))
        vectors["last"].append(last[n_own - 1])
        layers = np.stack([*(state[:n_own] for state in states[:-1]), last[:n_own]])
        start = round((len(layers) - 1) / 3)  # as the authors, from the fourth of twelve blocks on
        vectors["sbert-wk"].append(sentence_vector(layers, start, window=2))
    return dict(vectors)


def _plain_states(
    network: PreTrainedModel, ids: Sequence[int]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """[token, d_model] last hidden states of an input, and those of every layer."""
    import torch

    row = torch.tensor([ids])
    inputs = {"input_ids": row, "attention_mask": torch.ones_like(row)}
    with torch.no_grad():
        try:
            out = network(**inputs, output_hidden_states=True)
        except Exception:  # of a cache that cannot be made, though nothing is generated here
            out = network(**inputs, output_hidden_states=True, use_cache=False)
    states = [state[0].numpy() for state in out.hidden_states]
    return out.last_hidden_state[0, : len(ids)].numpy(), states


def _knows_its_neighbours(network: PreTrainedModel) -> bool:
    """Whether the last token's vector depends on the first token."""
    import torch

    ends = []
    for first in (7, 8):
        torch.manual_seed(0)
        ends.append(_plain_states(copy.deepcopy(network), [first, *range(9, 20)])[0][-1])
    return bool(np.abs(ends[0] - ends[1]).max() > 1e-6 * np.abs(ends[0]).max())


def _embed(model: TextModel, method: str, texts: Sequence[str]) -> np.ndarray:
    from neuralviz.embedders import METHODS

    return np.asarray(METHODS[method].find_maker()(model).encode(texts, normalize_embeddings=False))


def _difference(vectors: Vectors, expected: Vectors) -> tuple[float, float]:
    """The largest 1 − cosine, and the largest gap between values beside the largest value."""
    angle = gap = 0.0
    for found, wanted in zip(vectors, expected, strict=True):
        if np.shape(found) != np.shape(wanted):
            return np.inf, np.inf
        a, b = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        angle = max(angle, float(1 - a @ b / lengths) if lengths else np.inf)
        gap = max(gap, float(np.abs(a - b).max() / np.abs(b).max()))
    return angle, gap


def _everything(network: PreTrainedModel) -> dict[str, Any]:
    """A network's parameters, buffers and configuration, bit by bit."""
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    held: dict[str, Any] = {
        name: (tensor.dtype, tensor.shape, tensor.detach().numpy().tobytes())
        for name, tensor in tensors.items()
    }
    return held | {f"config.{name}": value for name, value in network.config.to_dict().items()}
