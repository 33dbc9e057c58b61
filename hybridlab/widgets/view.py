"""What all views share: `view.js` and `view.css` stand above a widget's own files, and all are one module, one style sheet."""

from pathlib import Path

HERE = Path(__file__).parent


def with_shared(*names: str) -> str:
    """Return the text of a widget's own files, one below the other, below the text that all views share.

    The ending of the first name, ``.js`` or ``.css``, is that of all.

    >>> with_shared("bet.css").startswith(with_shared("timeline_explorer.css")[:1000])
    True
    """
    shared = f"view{Path(names[0]).suffix}"
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in (shared, *names))
