"""Mechanisms in MuJoCo: the spanning tree, with loops closed by the stiffest constraints that are stable.

Constraints of MuJoCo are springs and dampers. Their time constant is at least two steps, so that the error
falls with the step; the integrator is the classical method of Runge and Kutta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kic
from benchmarks.peers import optional

mujoco = optional("mujoco")

MISSING = "MuJoCo is not installed, its table is empty: pip install 'mujoco>=4'"
# shares of the constraint force that constraints may take; the second one of depth zero
IMPEDANCE = [0.9999, 0.9999, 0.001, 0.5, 2.0]


class MujocoPeer:
    """The equal MuJoCo model of a mechanism, with steps of one size, and the motion of one point.

    Parameters
    ----------
    mechanism : kic.Mechanism
        The mechanism. It starts in its drawing.
    qd : (M,) ndarray
        Rates of the mechanism's coordinates at the start.
    point : str
        Point whose motion is recorded.
    step : float
        Length of a step.
    """

    def __init__(self, mechanism: kic.Mechanism, qd: np.ndarray, point: str, step: float) -> None:
        if mujoco is None:
            raise ImportError(MISSING)
        spec = mujoco.MjSpec.from_string(kic.to_mjcf(mechanism))
        spec.option.timestep, spec.option.integrator = step, mujoco.mjtIntegrator.mjINT_RK4
        for one in spec.equalities:
            one.solref, one.solimp = [2 * step, 1.0], IMPEDANCE
        for one in spec.joints:
            one.limited = False
        self.model, self.step = spec.compile(), step
        self.site = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, point)
        start = mechanism.at()
        self._rates = np.zeros(self.model.nv)
        for n in range(self.model.njnt):
            name, place = self.model.joint(n).name, self.model.jnt_dofadr[n]
            rates = start.coefficients(name, order=1).G @ qd
            self._rates[place : place + len(rates)] = rates

    def run(self, times: np.ndarray) -> np.ndarray:
        """Places (T, 3) of the point at multiples of the step."""
        data, places = self._start(), np.empty((len(times), 3))
        for place, steps in zip(
            places, np.diff(np.round(times / self.step).astype(int), prepend=0), strict=True
        ):
            if steps:
                mujoco.mj_step(self.model, data, int(steps))
                mujoco.mj_kinematics(self.model, data)
            place[:] = data.site_xpos[self.site]
        return places

    def _start(self) -> Any:
        """The model at the start of the motion."""
        data = mujoco.MjData(self.model)
        data.qvel[:] = self._rates
        mujoco.mj_forward(self.model, data)
        return data
