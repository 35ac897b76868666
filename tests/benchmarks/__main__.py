"""`python tests/benchmarks` or `python -m tests.benchmarks`; with `robots FOLDER…`, the robot files there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import robots, run

if __name__ == "__main__":
    if sys.argv[1:2] == ["robots"]:
        sys.exit(robots.main(sys.argv[2:]))
    run.main()
