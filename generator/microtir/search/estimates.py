"""Estimates what a program costs by planning alone: no compiler, and no board that runs it."""

from __future__ import annotations

from microtir.artifact import Artifact, footprint
from microtir.search.pareto import ProgramCost


def estimated_cost(artifact: Artifact) -> ProgramCost:
    """Return what planning expects of a run, and the RAM and flash of the program."""
    program = artifact.module.require_program("estimates")
    names = [functions[0].name for functions in program.functions_of_operators().values()]
    known = [program.decisions[name] for name in names if name in program.decisions]
    facts = artifact.metadata
    return ProgramCost(
        ram=footprint(facts).of_model,
        instructions=sum(decision.instructions for decision in known),
        cycles=sum(decision.cycles for decision in known),
        flash=facts.weights_bytes + facts.code_bytes_estimate,
        macs_recomputed=sum(layer.macs_recomputed for layer in facts.layers),
    )
