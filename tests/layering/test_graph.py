"""No import circle, and nothing in the package that the product does not reach."""

from __future__ import annotations

from tests.layering.graph import cycles, module_graph, reached
from tests.layering.source import package_modules, parse, report

# What users start: the public names, and the command line.
STARTS = ("", "__main__", "cli")


def test_no_module_imports_itself_through_others() -> None:
    """Modules can be read in an order in which each knows only what came before it."""
    found = [" and ".join(names) for names in cycles(module_graph(package_modules()))]
    assert not found, report([f"{names} import each other" for names in found])


def test_every_module_belongs_to_the_product() -> None:
    """Each module is reached from the public names or from the command line.

    What tests alone use stands in tests, what scripts and benchmarks share in scripts.
    """
    graph = module_graph(package_modules())
    found = sorted(graph.keys() - reached(graph, STARTS))
    assert not found, report([f"{name} is reached from no product module" for name in found])


def test_cycle_is_found() -> None:
    """Three modules in a ring are one circle, also where one imports under TYPE_CHECKING."""
    modules = [
        parse("a/one.py", "from microtir.a import two"),
        parse("a/two.py", "def f():\n    from microtir.b.three import x"),
        parse("b/three.py", "if TYPE_CHECKING:\n    from microtir.a.one import y"),
        parse("b/four.py", "from microtir.a.one import y"),
        parse("a/__init__.py", ""),
        parse("b/__init__.py", ""),
    ]
    graph = module_graph(modules)
    assert list(cycles(graph)) == [["a.one", "a.two", "b.three"]]
    assert reached(graph, ["b.four"]) >= {"b", "a", "a.one", "a.two", "b.three"}
    assert "b.four" not in reached(graph, ["a.one"])
