"""Shipped models that stand for the others in fast tests of every model."""

from __future__ import annotations

import kic

# together they have every table and key of a shipped model, and every type of joint
REPRESENTATIVE_MODELS = (
    "bevel-wrist", "bricard", "five-bar", "five-rod-suspension", "four-bar", "four-bar-motor",
    "geared-five-bar", "gough-stewart", "horn-two-link", "leg-offsets", "puma560", "rssr", "scara",
    "scotch-yoke", "three-finger-hand", "twin-arm", "two-arms", "walking-machine-on-feet",
)  # fmt: skip
# those whose tests are slow: `@pytest.mark.slow_for(*OTHER_MODELS)`
OTHER_MODELS = sorted(set(kic.model_names()) - set(REPRESENTATIVE_MODELS))
