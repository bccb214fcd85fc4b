"""The micro-tuning page below its title."""

from __future__ import annotations

from neuralviz.errors import NeuralvizError
from neuralviz.ui.micro_tuning.choose import ask_settings
from neuralviz.ui.micro_tuning.runs import recorded_run, show_runs, start_run
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.texts import put_texts_in_address, texts_input

EXAMPLES = {
    "One sentence": [
        "The old lighthouse keeper climbed the stairs every evening to light the lamp."
    ],
    "Word order": ["The dog chased the cat.", "The cat chased the dog.", "The cat was chased."],
    "A short story": [
        "Mina planted a seed in a cracked pot. Nothing happened for weeks, and her brother "
        "laughed at her. Then one morning a green tip broke the soil, and nobody laughed any more."
    ],
}


def show() -> None:
    """Texts, settings, *Tune*, and the runs."""
    examples = {"Two banks": recorded_run().texts, **EXAMPLES}
    texts = texts_input("micro-tuning", examples, max_texts=1000).texts
    model_id = chosen_model_id()
    asked = ask_settings(model_id, texts)
    if asked is not None:
        settings = asked.settings
        ready = bool(texts) and settings is not None
        pressed = asked.button.button(
            "Tune",
            type="primary",
            icon=":material/play_arrow:",
            disabled=not ready,
            width="stretch",
            help=plain(asked.why_not) or None,
        )
        if pressed and texts and settings is not None:
            try:
                start_run(model_id, texts, settings)
                put_texts_in_address("micro-tuning", texts)
            except NeuralvizError as error:
                show_error(error)
    show_runs()
