"""The neural embedding of texts, batch by batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import LossWarning, SettingsError
from neuralviz.micro_tuning import DEFAULT_BLUEPRINTS, check_settings, finished
from neuralviz.models import tokenize

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.models import LanguageModel


class NeuralEmbedder:
    """Embeds a text by the change of weights that learning it causes (neural paper, Equation 1).

    Args:
        model: from `neuralviz.load_model`.
        layers: names of 1-D parameters, ``"head"`` (default) or ``"last_block"``.
        blueprints: pairs (keep, mask).
        epochs: passes over each text's inputs, 1 … 1000.
        learning_rate: of AdamW, above 0.
        weight_decay: of AdamW.
        predict_unmasked: mask nothing and predict every token.

    Raises:
        SettingsError: a setting makes no sense.
    """

    def __init__(
        self,
        model: LanguageModel,
        layers: Iterable[str] | str | None = None,
        blueprints: Iterable[Sequence[int]] = DEFAULT_BLUEPRINTS,
        epochs: int = 10,
        learning_rate: float = 0.01,
        weight_decay: float = 0.01,
        predict_unmasked: bool = False,
    ) -> None:
        self.model = model
        self.settings = check_settings(
            model,
            layers=layers,
            blueprints=blueprints,
            epochs=epochs,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            predict_unmasked=predict_unmasked,
        )

    @property
    def dim(self) -> int:
        """Values of one embedding: the sizes of the layers, summed."""
        sizes = {layer.name: layer.size for layer in self.model.layers}
        return sum(sizes[name] for name in self.settings.layers)

    def get_sentence_embedding_dimension(self) -> int:
        """Values of one embedding, by the name that sentence encoders use."""
        return self.dim

    def encode(
        self,
        sentences: str | Iterable[str],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = True,
    ) -> np.ndarray | Tensor:
        """Embed texts.

        Args:
            sentences: a text, or several: a list, an array, a column of a table.
            batch_size: texts that are tuned on together; it does not change the vectors.
            show_progress_bar: a bar on standard error.
            convert_to_numpy: a numpy array; ``False`` gives a torch tensor, on the CPU.
            convert_to_tensor: a torch tensor, whatever ``convert_to_numpy`` says.
            normalize_embeddings: accepted for the interface's sake: a neural embedding has length
                1 by definition.

        Returns:
            [text, dim] float32 in the order given, or [dim] for a single string.

        Raises:
            TextError: a text is empty; the message says which one.
            SettingsError: the batch size is not a whole number of at least 1.

        Warns:
            LossWarning: the loss of a text rose, or ceased to be a number, in place of falling.
        """
        from tqdm.auto import tqdm

        from neuralviz.micro_tuning.run import tune

        single = isinstance(sentences, str)
        texts = [sentences] if isinstance(sentences, str) else list(sentences)
        if not isinstance(batch_size, Integral) or batch_size < 1:
            raise SettingsError("The batch size has to be a whole number of at least 1.")
        tokenized = tokenize(self.model, texts)
        lengths = np.array([len(text) for text in tokenized], dtype=np.int64)
        order = np.argsort(-lengths, kind="stable")  # the longest first: memory shows early
        out = np.empty((len(texts), self.dim), dtype=np.float32)
        n_rose = 0
        with tqdm(total=len(texts), unit="text", disable=not show_progress_bar) as bar:
            for start in range(0, len(texts), batch_size):
                at = order[start : start + batch_size]
                events = tune(self.model, [tokenized[i] for i in at], self.settings)
                result = finished(events)
                out[at] = result.embeddings
                n_rose += int((result.diverged | result.loss_rose).sum())
                bar.update(len(at))
        if n_rose:
            warnings.warn(LossWarning(n_rose, len(texts)), stacklevel=2)
        vectors = out[0] if single else out
        if convert_to_numpy and not convert_to_tensor:
            return vectors
        import torch

        return torch.from_numpy(vectors)
