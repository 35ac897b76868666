"""``python -m kic`` is the command ``kic``."""

from __future__ import annotations

from kic.cli.main import main

if __name__ == "__main__":
    main(prog_name="kic")
