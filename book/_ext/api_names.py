"""Docstrings on the API page: NumPy sections become lists, and short names become links.

``Schedule`` becomes a link to ``hybridlab.Schedule``, wherever it is in the library.

The API page leaves out fields of named tuples, which Python describes as "Alias for field number 0".
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, NumpyDocstring

# The types of parameters are words, such as "array of int", so they are shown as text and not as links.
SECTIONS = Config(napoleon_use_param=False, napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")])


def look_everywhere(app: Sphinx, env: BuildEnvironment, node: Any, content: Any) -> nodes.reference | None:
    """Return a reference to the only object whose full name ends in the name in ``node``; None if there is no such object."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, content)


def is_bare_field(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Return True for a field of a named tuple, so that Sphinx leaves it out; None leaves the choice to Sphinx."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def read_sections(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring by those that Sphinx understands.

    Properties count as methods: for them napoleon would read the words before a colon as a type.
    """
    lines[:] = NumpyDocstring(lines, SECTIONS, app, "method" if what in ("attribute", "property") else what, name, obj, options).lines()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", read_sections)
    app.connect("missing-reference", look_everywhere)
    app.connect("autodoc-skip-member", is_bare_field)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
