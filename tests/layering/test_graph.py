"""No import circle, few modules in the root, nothing that the product does not reach."""

from __future__ import annotations

from tests.layering.graph import cycles, module_graph, reached, unit_graph
from tests.layering.source import package_modules, parse, report

# What users start: the public names, and the command line.
STARTS = ("", "__main__", "cli")
MOST_IN_THE_ROOT = 4  # modules beside `__init__` and `__main__`


def test_no_module_imports_itself_through_others() -> None:
    """Modules can be read in an order in which each knows only what came before it."""
    found = [" and ".join(names) for names in cycles(module_graph(package_modules()))]
    assert not found, report([f"{names} import each other" for names in found])


def test_no_package_imports_itself_through_others() -> None:
    """Top packages and root modules can be read in an order, too."""
    found = [" and ".join(names) for names in cycles(unit_graph(module_graph(package_modules())))]
    assert not found, report([f"{names} import each other" for names in found])


def test_the_root_is_almost_empty() -> None:
    """What lies in no package is what everyone stands on, or what everyone calls."""
    modules = [m.name for m in package_modules() if not m.is_package and "." not in m.name]
    assert len(set(modules) - {"__main__"}) <= MOST_IN_THE_ROOT, modules


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


def test_circle_of_two_packages_is_found() -> None:
    """Two packages import each other although none of their modules do, the one in a function."""
    modules = [
        parse("a/one.py", "from microtir.b import two"),
        parse("b/two.py", ""),
        parse("b/three.py", "def f():\n    from microtir.a.four import x"),
        parse("a/four.py", ""),
        parse("c.py", "from microtir.a import one"),
        parse("a/__init__.py", ""),
        parse("b/__init__.py", ""),
    ]
    graph = module_graph(modules)
    assert list(cycles(graph)) == []
    assert list(cycles(unit_graph(graph))) == [["a", "b"]]
