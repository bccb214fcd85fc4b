"""The training page as a person meets it: zoom while it runs, Stop, go on, compare two, save."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from neuralviz.jobs.training import textbooks
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from tests.support.app import looks, problems
from tests.support.downloads import assert_pictures_are_whole
from tests.support.models import save_family

MINUTE = 60_000
WHOLE = "training-part=Whole+model&pairs=Crops&pairs=Dropout"  # in an address
LOSS = "[aria-label^='Loss']"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model."""
    return save_family("bert", tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def corpus(home: Path) -> str:
    """The id of a corpus of every twelfth text of the example, read in a moment."""
    read = textbooks()
    labels = {name: values[::12] for name, values in read.labels.items()}
    return CorpusStore(home / "corpora").add("few", ReadTexts(read.texts[::12], labels=labels)).id


def wait_for_steps(page: Page, n: int) -> None:
    page.wait_for_function(
        f"n => (document.querySelector(`{LOSS}`)?._fullData?.[0]?.x?.length ?? 0) >= n", arg=n
    )


def test_a_training_is_watched_stopped_resumed_and_its_encoder_saved(
    page: Page, address: str, encoder: Path, corpus: str
) -> None:
    link = f"{address}/training?encoder={encoder}&training-corpus={corpus}&{WHOLE}"
    start = page.get_by_role("button", name="Train", exact=True)
    stop = page.get_by_role("button", name="Stop", exact=True)
    page.goto(f"{link}&training-epochs-model=200")
    page.get_by_text("Recorded run.").wait_for()
    assert_pictures_are_whole(page)
    start.click()
    stop.wait_for()  # in place of the recorded run
    wait_for_steps(page, 2)
    stop.click()
    stopped = page.get_by_text(re.compile(r"Stopped: step \d+ of \d+\. “Run again” resumes."))
    stopped.wait_for()
    made = page.evaluate(f"document.querySelector(`{LOSS}`)._fullData[0].x.length")
    page.get_by_role("button", name="Run again").click()
    wait_for_steps(page, made + 1)
    stop.click()
    stopped.wait_for()

    page.goto(f"{address}/training?training-corpus={corpus}&training-shortest=200&stage")
    alone = page.locator("html[data-stage=st-key-slide-training-problem]")
    reason = alone.get_by_text("Too few of the")
    reason.wait_for(timeout=MINUTE)
    page.keyboard.press("ArrowRight")  # to nothing else
    expect(reason).to_be_visible()
    page.keyboard.press("Escape")

    page.goto(f"{link}&training-epochs-model=2")
    start.click()
    page.get_by_text(re.compile("Done in|Result of")).wait_for(timeout=2 * MINUTE)
    page.get_by_text(re.compile(r"new, on average|same nearest text")).first.wait_for()
    for seen in looks(page):
        assert problems(page) == [], seen
    name = f"crops-{secrets.token_hex(2)}"  # another one where the test is tried again
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text(f"Saved as “{name}”").wait_for(timeout=MINUTE)
    page.get_by_role("button", name="Map the corpus with it").click()
    expect(page.get_by_role("button", name="Make both maps")).to_be_visible(timeout=MINUTE)
    expect(page).to_have_url(re.compile(f"map-a-mean-model={name}"))
