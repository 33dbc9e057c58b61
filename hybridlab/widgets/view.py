"""What all views share: `view.js` and `view.css` stand above a widget's own files, and all are one module, one style sheet."""

from pathlib import Path

HERE = Path(__file__).parent


def with_shared(*names: str) -> str:
    """Return the text of a widget's own files below the text that all views share, such as ``with_shared("bet.js")``."""
    shared = f"view{Path(names[0]).suffix}"
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in (shared, *names))
