"""`python tests/benchmarks` or `python -m tests.benchmarks`: the main table, or a part by its first word.

``robots FOLDER…`` reads the robot files of folders; ``ladder [against REV]`` compares with an earlier commit.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import robots, run, versions

if __name__ == "__main__":
    parts = {"robots": robots.main, "ladder": versions.main}
    if sys.argv[1:2] and sys.argv[1] in parts:
        sys.exit(parts[sys.argv[1]](sys.argv[2:]))
    run.main()
