"""What importing the package loads, and what it exports."""

import subprocess
import sys

import longboat.tools.mcp as package


def test_importing_it_loads_nothing_of_the_sdk() -> None:
    heavy = ["anyio", "httpx2", "jsonschema", "mcp", "mcp_types", "pydantic", "starlette"]
    program = f"import sys, longboat.tools.mcp; print(*sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_exports_are_sorted_and_there() -> None:
    assert package.__all__ == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
