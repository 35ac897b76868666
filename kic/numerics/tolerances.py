"""Tolerances that several packages share; each has a unit and a reason."""

from __future__ import annotations

import numpy as np

# spacing of double precision numbers at 1
EPS = float(np.finfo(float).eps)
# singular values and pivots below this share of the largest are zero: closed configurations are accurate to
# about 1e-13, and a margin of four digits remains for the scaling of rows
RANK_RTOL = 1e-9
# largest condition number of a regular linear system; results lose more than 100 EPS · condition beyond it
CONDITION_MAX = 1e12
# largest condition number of a mass matrix, which is computed to full accuracy
INERTIA_CONDITION_MAX = 1e15
