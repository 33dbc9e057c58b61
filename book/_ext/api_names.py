"""Lets a docstring say ``Schedule`` where Sphinx wants ``hybridlab.Schedule``: a name is looked up in the whole library.

Fields of named tuples are left out of the API page: Python describes them as "Alias for field number 0".
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def look_everywhere(app: Sphinx, env: BuildEnvironment, node: Any, content: Any) -> nodes.reference | None:
    """Return the reference to the one object whose full name ends in the name that ``node`` gives, None if there is none."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, content)


def is_bare_field(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Return True, which leaves the member out, for a named tuple's field; None leaves the choice to Sphinx."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", look_everywhere)
    app.connect("autodoc-skip-member", is_bare_field)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
