"""The start of the command ``hybridlab``, also as ``python -m hybridlab``."""

import sys


def command() -> None:
    """Run the command ``hybridlab``. If the package click is missing, print how to install it."""
    # click is optional, because the library itself needs only numpy
    try:
        import click  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("the command hybridlab needs the package click: pip install 'hybridlab[grade]'")
    from hybridlab.commands import main

    main(prog_name="hybridlab")


if __name__ == "__main__":
    command()
