"""The start of the command ``hybridlab``, also as ``python -m hybridlab``."""

import sys


def command() -> None:
    """Run the command ``hybridlab``. If the package click is missing, print how to install it."""
    # click is optional, because the library itself needs only numpy
    try:
        import click  # noqa: F401

        from hybridlab.commands import main
    except ModuleNotFoundError as why:
        if why.name != "click":
            raise
        sys.exit("the command hybridlab needs the package click: pip install 'hybridlab[grade]'")
    except KeyboardInterrupt:  # Ctrl-C before all modules are loaded
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    main(prog_name="hybridlab")


if __name__ == "__main__":
    command()
