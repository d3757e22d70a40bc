"""Every layer class of Keras is read, or refused with a reason; the page says which."""

from __future__ import annotations

from pathlib import Path

from microtir.frontend.keras.readers import KERAS_READERS
from microtir.frontend.keras.refusals import REFUSED
from tests.journeys.keras_layers import CLASSES

NO_LAYERS = {"InputSpec", "Layer", "Wrapper"}  # bases, and a description of shapes
WITHIN_OTHERS = {"GRUCell", "InputLayer", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"}

PAGE = Path(__file__).parents[3] / "docs" / "from-keras.md"


def test_every_class_is_read_or_refused() -> None:
    """The list is what Keras exports, as it was recorded with its version."""
    first, *names = CLASSES.read_text(encoding="utf-8").split("\n")
    classes = set(filter(None, names)) - NO_LAYERS - WITHIN_OTHERS
    assert first.startswith("# Keras 3.")
    assert classes - KERAS_READERS.keys() == classes & REFUSED.keys()
    assert KERAS_READERS.keys() <= classes
    assert not KERAS_READERS.keys() & REFUSED.keys()


def test_the_page_lists_every_class() -> None:
    """Those that are read first, then those that are refused, with the reason."""
    page = PAGE.read_text(encoding="utf-8")
    taken, _, refused = page.partition("\n| | ")
    for name in (*KERAS_READERS, *WITHIN_OTHERS):
        assert f"`{name}`" in taken, name
    names = set(CLASSES.read_text(encoding="utf-8").split())
    for name in names & REFUSED.keys():
        assert f"`{name}`" in refused, name
        assert REFUSED[name][0] in refused, name
