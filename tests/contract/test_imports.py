"""Imports point upwards only, and importing the library is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LAYERS = [
    "errors",
    "yaml_events",
    "document",
    "decoding",
    "table_layout",
    "titled_table",
    "metrics",
    "log",
    "expressions",
    "selection",
    "scoring",
    "tables",
    "matching",
    "policies",
    "statistics",
    "inference",
    "estimators",
    "planning",
    "prereg",
    "report",
    "command_line",
    "reading_options",
    "audit_commands",
    "plot_commands",
    "registration_commands",
    "sealing_commands",
    "cli",
    "__main__",
]
"""Each may import from those before it."""

PLOT_THEMSELVES = {"inference/rows.py", "prereg/report.py"}
"""Files of classes that have a method `plot`, which looks the figures above them up when it is called."""

FIGURES = "kvstats.report.plots"

COLLECTORS_MAY_IMPORT = ["errors", "document", "decoding", "log", "metrics", "statistics", "command_line"]

FILES = sorted((ROOT / "kvstats").rglob("*.py"))
COLLECTOR_FILES = sorted((ROOT / "collectors").rglob("*.py"))

HEAVY = ["typer", "click", "rich", "matplotlib", "torch", "transformers", "pandas", "dask", "sklearn"]


def imported(path: Path) -> Iterator[str]:
    """Yield the full name of everything that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            assert isinstance(node.args[0], ast.Constant), f"{path}: what is imported is written out"
            yield str(node.args[0].value)


def layer(path: Path) -> str:
    return path.relative_to(ROOT / "kvstats").with_suffix("").parts[0]


def test_every_file_is_in_a_layer():
    assert {layer(path) for path in FILES} == {*LAYERS, "__init__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_layers_import_from_those_before_them(path):
    own = layer(path)
    allowed = LAYERS if own == "__init__" else LAYERS[: LAYERS.index(own) + 1]
    for name in imported(path):
        package, _, rest = name.partition(".")
        if name.startswith(FIGURES) and str(path.relative_to(ROOT / "kvstats")) in PLOT_THEMSELVES:
            continue
        if package == "kvstats":
            assert rest.split(".")[0] in allowed, f"{path.relative_to(ROOT)} imports {name}"
        assert package != "collectors", f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize(
    "path", [path for path in FILES if layer(path) == "statistics"], ids=lambda path: path.name
)
def test_statistics_know_arrays_only(path):
    packages = {name.partition(".")[0] for name in imported(path)}
    assert packages <= {*sys.stdlib_module_names, "numpy", "scipy", "array_api_compat", "kvstats"}


@pytest.mark.parametrize("path", COLLECTOR_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_collectors_import_no_more_than_they_may(path):
    for name in imported(path):
        if name.split(".")[0] == "kvstats":
            assert name.split(".")[1] in COLLECTORS_MAY_IMPORT, f"{path.relative_to(ROOT)} imports {name}"


def test_importing_the_library_is_light():
    code = f"""
import sys
import kvstats, kvstats.estimators, kvstats.policies, kvstats.prereg
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
