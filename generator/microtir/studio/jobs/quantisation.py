"""Makes a float model one of integers by samples, and tells what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.errors import MicrotirError
from microtir.host.quantised import quantised_by
from microtir.quantise import QuantiseOptions, Width
from microtir.report.html import to_cost
from microtir.studio.events import Emit, progress
from microtir.studio.models import ModelFile
from microtir.writers.tflite import write_tflite


@dataclass(frozen=True, slots=True)
class Quantisation:
    """A float model with its samples.

    Args:
        model: of floats.
        samples: a file with an array for each input.
        width: of all layers.
        number: of the file that is written, as the page will name it.
        target: that file, which is not there yet.
    """

    model: ModelFile
    samples: ModelFile
    width: Width
    number: int
    target: ModelFile

    def run(self, emit: Emit) -> None:
        """Write the file of integers, with what it cost beside it, and tell that it is there."""

        def tell(text: str) -> None:
            emit(progress(text))

        tell("reading the model")
        graph = self.model.read().graph
        assert graph is not None, "a frontend read the graph"
        options = QuantiseOptions(self.width, rounding_work=0.0)
        try:
            by = quantised_by(graph, self.samples.path, options, None, tell)
        except MicrotirError as error:
            if error.where == str(self.samples.path):
                error.where = self.samples.label  # the person knows no other
            raise
        tell("measuring what it costs")
        page = to_cost(by.summary())
        tell("writing the file")
        write_tflite(by.result.graph, self.target.path, int4=by.result.weights4)
        self.target.cost.write_text(page, "utf-8")
        emit({"event": "quantised"})
