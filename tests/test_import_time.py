"""What `import hybridlab` brings in: numpy, and nothing that draws or runs a notebook."""

import subprocess
import sys


def loaded_by(statement: str) -> set[str]:
    """Top-level names of the modules that ``statement`` loads in a fresh interpreter."""
    program = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_library_loads_numpy_alone() -> None:
    beyond_numpy = loaded_by("import hybridlab") - loaded_by("import numpy")
    assert "hybridlab" in beyond_numpy
    outside = {name for name in beyond_numpy if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert outside == {"hybridlab"}


def test_simulating_loads_nothing_more() -> None:
    use = "import hybridlab as h; h.simulate(h.build('1f1b', 2, 4), h.Costs.per_device(1, 2)).to_chrome_trace()"
    heavy = {"matplotlib", "ipywidgets", "anywidget", "IPython", "traitlets", "scipy", "pandas"}
    assert not loaded_by(use) & heavy
