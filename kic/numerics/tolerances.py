"""Tolerances that several packages share; all are dimensionless."""

from __future__ import annotations

import numpy as np

# spacing of double precision numbers at 1
EPS = float(np.finfo(float).eps)
# singular values and pivots below this share of the largest are zero; closed configurations are accurate to
# 1e-13
RANK_RTOL = 1e-9
# bound of the rounding error of a coefficient at a given state, in units of eps times the condition
ROUNDING_FACTOR = 100
# largest relative error of a result
DIGITS_LOST = 1e-4
# largest condition number of a regular linear system; results are accurate to 100 EPS times the condition, so
# fewer than two digits are certain beyond it
CONDITION_MAX = 1e12
# largest condition number of a mass matrix, whose inverse has no correct digit beyond it
INERTIA_CONDITION_MAX = 1e15
# smallest singular values of scaled rows on the motions that the closure leaves are zero below this; closed
# configurations are accurate to 1e-13
MEASURE_ATOL = 1e-9
