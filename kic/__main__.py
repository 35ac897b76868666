"""Entry point of ``python -m kic``, the command ``kic``."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command; an interrupt during its import ends it as quietly as a later interrupt."""
    try:
        from kic.ui.cli.main import main
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    main(prog_name="kic")


if __name__ == "__main__":
    run()
