"""The command ``hybridlab``, and ``python -m hybridlab``."""

import sys


def main() -> None:
    """Run the command. Without the extra that it needs, say how to install it."""
    try:
        import click  # noqa: F401
        import nbformat  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"the command hybridlab needs {missing.name}: pip install 'hybridlab[grade]'")
    from hybridlab.course.grading.cli import main as commands

    commands(prog_name="hybridlab")


if __name__ == "__main__":
    main()
