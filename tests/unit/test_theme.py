"""Colours, ranges and the escaping of what users typed."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from neuralviz.plots.report import (
    About,
    figure_html,
    file_name,
    frame_html,
    page_html,
    plain_text,
    sentence_html,
)
from neuralviz.plots.theme import (
    escape,
    method_colour,
    shorten,
    shorten_text,
    style,
    symmetric_range,
    templates_json,
    unstyled_json,
)
from neuralviz.ui.page import plain


@pytest.mark.parametrize(
    ("values", "largest"),
    [([1, -3], 3.0), ([[0.5], [-0.25]], 0.5), ([], 1.0), ([0, 0], 1.0), ([np.nan, np.inf, 2], 2.0)],
)
def test_the_range_of_signed_values_is_centred_at_0(values: list, largest: float) -> None:
    assert symmetric_range(values) == (-largest, largest)


@pytest.mark.parametrize("dark", [False, True])
def test_a_figure_and_its_template_are_the_styled_figure(dark: bool) -> None:
    figure = go.Figure(go.Heatmap(z=np.eye(3)), layout={"title": "<b>&", "xaxis": {"title": "x"}})
    drawn = json.loads(unstyled_json(figure))
    assert "template" not in drawn["layout"]
    drawn["layout"]["template"] = json.loads(templates_json())["dark" if dark else "light"]
    assert drawn == json.loads(style(figure, dark).to_json(validate=False))


def test_what_users_typed_is_escaped_and_shortened() -> None:
    assert escape('<b>&"') == '&lt;b&gt;&amp;"'
    assert shorten("a  long\ntext", 20) == "a long text"
    assert shorten("a long text", 7) == "a long…"
    assert shorten_text("a longer  text", 12) == "a longer …"
    assert shorten_text("inseparable", 6) == "insep…"


def test_the_page_to_take_away_needs_no_network_and_runs_no_text() -> None:
    figure = go.Figure(go.Scatter(y=[1], text=["</script><script>alert(1)</script>"]))
    page = page_html(About("<b>"), figure_html(style(figure, dark=True), 300))
    assert "<script>alert" not in page
    assert "<script src=" not in page
    assert "default-src 'none'" in page  # nor can anything in it ask for one
    assert "<h1>&lt;b&gt;</h1>" in page
    assert figure.layout.height is figure.layout.paper_bgcolor is None
    frame = pd.DataFrame({"<i>": ["<b>", None], "n": [-0.5, np.nan]})
    assert frame_html(frame, "A & B", {"n": "%.0f%%"}) == (
        "<h3>A &amp; B</h3><div class='results'><table><thead><tr><th class='text'>&lt;i&gt;</th>"
        "<th class='text'>n</th></tr></thead><tbody>"
        "<tr><td class='text'>&lt;b&gt;</td><td class=text data-value='-0.5'>-0%</td></tr>"
        "<tr><td class=text></td><td class=text></td></tr></tbody></table></div>"
    )


def test_a_sentence_is_the_same_on_a_page_that_stands_alone() -> None:
    typed = "a *b* **c** <script> & 1_000 www.x.org"
    sentence = f"**{plain(typed)}** is *first*.\n\nThe **others** follow."
    assert sentence_html(sentence) == (
        "<p class='headline'><strong>a *b* **c** &lt;script&gt; &amp; 1_000 www.x.org</strong> "
        "is <em>first</em>.</p><p class='note'>The <strong>others</strong> follow.</p>"
    )
    assert plain_text("<b>Loss</b><br>a &lt; b") == "Loss a < b"


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (
            ("The river rose.", "10 epochs", "rate 0.02"),
            "losses-the-river-rose-10-epochs-rate-0.02",
        ),
        (("../../etc/passwd\x00..", "."), "losses-etc-passwd"),
        (("Naïve “Café”\nin Łódź",), "losses-naive-cafe-in-odz"),
        (("שלום", "字"), "losses"),
        (("word " * 20,), "losses-word-word-word-word-word-word-word-word"),
        (("w" * 99,), f"losses-{'w' * 40}"),
        ((), "losses"),
    ],
)
def test_files_are_named_by_what_they_are_of(files: tuple[str, ...], named: str) -> None:
    assert file_name("neural+mean, novelty") == "neural+mean-novelty"
    assert file_name("../…/ ") == "neuralviz"
    assert file_name("losses", About(files=files)) == named
    assert file_name(f"{named}.csv") == f"{named}.csv"


def test_a_method_keeps_its_colour_whatever_stands_behind_its_name() -> None:
    for name, label in (("sbert-wk", "sbert-wk, novelty"), ("gradient", "gradient: rank")):
        assert method_colour(label) == method_colour(name) != method_colour("neural")
    assert method_colour("neural, fast") == method_colour("neural")
