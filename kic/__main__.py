"""``python -m kic`` is the command ``kic``."""

from kic.cli import main

if __name__ == "__main__":
    main(prog_name="kic")
