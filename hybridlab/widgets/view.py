"""What all views share: `view.js` and `view.css` stand above a widget's own file, and the two are one module, one style sheet."""

from pathlib import Path

HERE = Path(__file__).parent


def with_shared(name: str) -> str:
    """Return the text of a widget's own file below the text that all views share, such as ``with_shared("bet.js")``."""
    own = HERE / name
    return "\n".join(path.read_text(encoding="utf-8") for path in (HERE / f"view{own.suffix}", own))
