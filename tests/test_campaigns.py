"""The command of the campaigns prints counts, and returns an exit code for wrong results."""

from __future__ import annotations

import campaigns
import jumps
import numpy as np
import pytest


@pytest.mark.slow
def test_wrong_results_give_another_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert campaigns.main(["linkages", "near-singular", "--count", "2"]) == 0
    other_branch = jumps.Jump(jumps.START, 1.0, np.full(1, 0.1))
    monkeypatch.setattr(jumps, "jump", lambda *_: other_branch)
    assert campaigns.main(["linkages", "--count", "1"]) == 1
