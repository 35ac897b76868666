"""Every shipped model: prose, units, closure, inertia, coordinates, all orders, dynamics, by complex step.

Configurations take a complex step along each coordinate, by kic's rates of the tree's joints. Points of
the bodies show, without kic's closure rows, that such a step keeps every joint closed. Every order is then
compared with the complex step of the order below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from representative_models import OTHER_MODELS
from sampling import STEP, check_orders, mismatch, stepped, tree_rates

import kic
from kic.description.units import coordinate_units
from kic.description.validation import GROUND
from kic.mechanism.configuration import Configuration
from kic.ui.cli.main import main

EPS = np.finfo(float).eps
MODELS = kic.model_names()
# gravity at sea level in a model's unit of length, as rounded in textbooks
STANDARD = {"m": (9.8, 9.81), "in": (386.0, 386.1)}
every_model = pytest.mark.parametrize("name", MODELS)
every_configuration = pytest.mark.parametrize(
    ("name", "place"), [(name, k) for name in MODELS for k in (0, 1, 2)]
)


class ModelConfiguration:
    """A configuration of a model with four points on each body, and its complex steps."""

    def __init__(self, name: str, place: int) -> None:
        m = kic.load(name)
        corners = np.vstack([np.zeros(3), np.eye(3)])
        frames = [kic.Point(f"{b.name}_at{k}", b.name, at=x) for b in m.bodies for k, x in enumerate(corners)]
        self.names = [
            *(p.name for kind in (m.points, m.distances) for p in kind),
            *(j.name for j in m.joints if j.dof),
            *(row for b in m.bodies for row in ([b.name] if b.reference else turning(b.name))),
        ]
        self.m = replace(m, points=(*m.points, *frames), forces=(), moments=())
        self.drawn = self.m.at()
        self.c = self._moved(place) if place else self.drawn
        # the accuracy of closed configurations depends on the condition number
        self.condition = float(self.m.prepare.coefficients(self.names).check(self.c.state))
        self.limit = max(1e-12, 1000 * EPS * self.condition)
        self.rates, self.steps = tree_rates(self.c), stepped(self.c)

    def _moved(self, place: int) -> Configuration:
        """A configuration beside the drawing, as far off as it closes and its coordinates drive it."""
        m, unit = self.m, coordinate_units(self.m)
        size = max(float(np.ptp([j.at for j in m.joints if j.at], axis=0).max(initial=0.0)), 1e-3)
        way = np.random.default_rng(place).uniform(-1, 1, size=m.dof)
        way *= [1.0 if unit.get(q, m.units.length) == "rad" else 0.3 * size for q in m.coordinates]
        for share in 0.7 ** np.arange(1, 20):
            to = dict(zip(m.coordinates, share * way, strict=True))
            c = m.at({q: self.drawn.value(q) + dx for q, dx in to.items()}, near=self.drawn, failures="mask")
            if c.ok and m.prepare.dynamics().check(c.state) < 1e4:
                return c
        raise AssertionError(f"{m.name} hardly moves")

    def slope(self, answer: Callable[[Configuration], np.ndarray]) -> np.ndarray:
        """Return the derivative of a function along each coordinate, as the first axis."""
        return answer(self.steps).imag / STEP


def turning(body: str) -> list[str]:
    return [f"{body}.{w}" for w in ("wx", "wy", "wz")]


@cache
def model_configuration(name: str, place: int) -> ModelConfiguration:
    return ModelConfiguration(name, place)


def frame(c: Configuration, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Where a body's frame, drawn as the world's, is now: rotation (..., 3, 3) and origin (..., 3)."""
    if body == GROUND:
        return np.eye(3), np.zeros(3)
    p, *ends = (c.value(f"{body}_at{k}") for k in range(4))
    return np.stack(ends, axis=-1) - p[..., None], p


def apart(c: Configuration, joint: kic.Joint) -> list[np.ndarray]:
    """Return the constraint residuals of a joint, (...,) or (..., 3) each, from the poses of its bodies."""
    (R1, p1), (R2, p2) = (frame(c, body) for body in joint.bodies)
    x = np.array(joint.at or (0.0, 0.0, 0.0))
    a, b = (np.array(v) / np.linalg.norm(v) if v else np.zeros(3) for v in (joint.axis, joint.axis2))
    gap = np.einsum("...ji,...j->...i", R1, p2 + R2 @ x - p1 - R1 @ x)
    if joint.axis is None:
        return {"fixed": [R2 - R1, gap], "spherical": [gap], "free": []}[joint.type]
    turned, along = R2 @ a - R1 @ a, R2 - R1
    # a vector across the axis tells the angle that was turned
    u = np.cross(a, np.eye(3)[np.argmin(np.abs(a))])
    sine = np.einsum("...i,...i->...", np.cross(R1 @ u, R2 @ u), R1 @ a) / (u @ u)
    moved = [c.value(q) - drawn for q, drawn in zip(joint.components, joint.value, strict=True)]
    n = np.cross(a, b)
    return {
        "revolute": lambda: [turned, gap, sine - np.sin(moved[0])],
        "prismatic": lambda: [along, gap - moved[0][..., None] * a],
        "cylindrical": lambda: [turned, gap - moved[1][..., None] * a, sine - np.sin(moved[0])],
        "universal": lambda: [gap, np.einsum("...i,...i->...", R1 @ a, R2 @ b)],
        "planar": lambda: [R2 @ n - R1 @ n, gap @ n],
    }[joint.type]()


def gap(c: Configuration, contact: kic.Contact) -> np.ndarray:
    """Return the constraint residuals (..., 3) of a contact with friction, or of a pinned one."""
    assert contact.type in ("friction", "pinned")
    assert contact.closed
    (R1, p1), (R2, p2) = (frame(c, body) for body in contact.bodies)
    return p2 + R2 @ np.array(contact.at) - p1 - R1 @ np.array(contact.at)


@pytest.mark.slow_for("gough-stewart", *OTHER_MODELS)
@every_model
def test_model_is_documented(name: str) -> None:
    """The model has a description, a source, and units consistent with gravity."""
    m = kic.load(name)
    assert 20 < len(m.info.title) < 110
    assert not m.info.title.endswith(".")
    assert len(m.info.about.split()) > 40
    assert len(m.info.source.split()) > 5
    assert len(m.info.drawing.split()) > 5
    assert name == m.name
    assert (m.units.length, m.units.mass, m.units.time, m.units.force) in (
        ("m", "kg", "s", "N"), ("in", "lbf s²/in", "s", "lbf"),
    )  # fmt: skip
    g = float(np.linalg.norm(m.gravity))
    low, high = STANDARD[m.units.length]
    assert g == 0 or low <= g <= high
    run = CliRunner().invoke(main, ["check", name])
    assert run.exit_code == 0
    assert "warning" not in run.output


@pytest.mark.slow_for(*OTHER_MODELS)
@every_model
def test_coordinates_are_independent(name: str) -> None:
    """The coordinates are as many as the degrees of freedom, and well-conditioned in the reference."""
    m, p = kic.load(name), model_configuration(name, 0)
    assert m.dof == len(m.coordinates) >= 1
    assert m.mobility().regular
    assert p.condition < 1e4
    for joint in m.joints:
        if joint.type not in ("spherical", "free"):
            for component, drawn in zip(joint.components, joint.value, strict=True):
                assert p.c.value(component) == pytest.approx(drawn, abs=1e-12)


@every_model
def test_bodies_have_valid_inertia(name: str) -> None:
    """Every body has inertia, and no radius of gyration exceeds the size of the mechanism."""
    m = kic.load(name)
    places = [x.at for x in (*m.joints, *m.points) if x.at] + [b.com for b in m.bodies if b.com]
    span = np.linalg.norm(np.ptp(places, axis=0))
    for body in m.bodies:
        assert body.mass is not None
        assert body.inertia is not None
        if not body.inertia_exception:
            low, middle, high = np.linalg.eigvalsh(np.array(body.inertia))
            assert high <= body.mass * span**2
            assert high <= (low + middle) * (
                1 + 1e-13
            )  # also in printed digits; other programs compare exactly
    assert np.linalg.eigvalsh(m.at().dynamics().I).min() > 0


@pytest.mark.slow
@every_configuration
def test_constraints_hold_to_first_order(name: str, place: int) -> None:
    """Joints, couplings, rods and contacts hold, and to first order along coordinates too."""
    p = model_configuration(name, place)
    size = max(1.0, *(np.abs(j.at).max() for j in p.m.joints if j.at))
    fast = max(1.0, *(np.abs(p.slope(lambda c, b=b: frame(c, b.name)[1])).max() for b in p.m.bodies))

    def holds(left: Callable[[Configuration], np.ndarray]) -> None:
        assert np.abs(left(p.c)).max() < 1e-11 * size
        assert np.abs(p.slope(left)).max() < p.limit * size * fast

    for joint in p.m.joints:
        for k in range(len(apart(p.c, joint))):
            holds(lambda c, joint=joint, k=k: apart(c, joint)[k])
    for terms in p.m._terms.values():
        holds(lambda c, terms=terms: sum(n * (c.value(q) - p.drawn.value(q)) for q, n in terms))
    for contact in p.m.contacts:
        holds(lambda c, contact=contact: gap(c, contact))
    for rod, length in p.m._fixed_distances.items():
        holds(lambda c, rod=rod, length=length: c.value(rod) - length)


@pytest.mark.slow_for("walking-machine-on-feet-1", *OTHER_MODELS)
@every_configuration
def test_orders_agree_with_complex_steps(name: str, place: int) -> None:
    p = model_configuration(name, place)
    check_orders(p.c, p.names, limit=p.limit)


@pytest.mark.slow_for(*OTHER_MODELS)
@every_configuration
def test_angular_velocities_agree_with_orientations(name: str, place: int) -> None:
    p = model_configuration(name, place)
    for body in p.m.bodies:
        G = p.c.coefficients(turning(body.name), order=1).G
        assert np.abs(spin(p, body.name) - G.T).max() < p.limit * max(1.0, np.abs(p.rates).max())


def spin(p: ModelConfiguration, body: str) -> np.ndarray:
    """Return the angular velocity (M, 3) of a body for unit rates, from its orientations."""
    S = p.slope(lambda c: frame(c, body)[0]) @ frame(p.c, body)[0].T
    return np.stack([S[:, 2, 1], S[:, 0, 2], S[:, 1, 0]], axis=-1)


@pytest.mark.slow_for(*OTHER_MODELS)
@every_configuration
def test_dynamics_agrees_with_energies(name: str, place: int) -> None:
    """I* follows from the motion of every body, P* from the derivative of I*, loads from the potential."""
    p = model_configuration(name, place)
    d, I = p.c.dynamics(), 0.0
    for body in p.m.bodies:
        R, w = frame(p.c, body.name)[0], spin(p, body.name)
        moved = p.slope(lambda c, body=body: centre(c, body.name, body.com or np.zeros(3)))
        I = I + (body.mass or 0.0) * moved @ moved.T + w @ R @ np.array(body.inertia) @ R.T @ w.T
    for lump in (x for x in p.m.points if x.mass):
        moved = p.slope(lambda c, lump=lump: c.value(lump.name))
        I = I + lump.mass * moved @ moved.T
    assert mismatch(I, d.I) < p.limit
    both = np.einsum("lnm->nlm", d.P) + np.einsum("mnl->nlm", d.P)
    # P* may vanish by symmetry: relative to I* too
    off = np.abs(p.slope(lambda c: c.dynamics().I) - both).max()
    assert off < p.limit * max(np.abs(both).max(), np.abs(d.I).max())
    if d.holonomic:
        assert mismatch(d.P.swapaxes(-1, -2), d.P) < 1e-13
    assert mismatch(-p.slope(lambda c: potential(p.m, c)), d.load) < p.limit


def centre(c: Configuration, body: str, drawn: object) -> np.ndarray:
    R, x = frame(c, body)
    return x + R @ np.asarray(drawn)


def potential(m: kic.Mechanism, c: Configuration) -> np.ndarray:
    """Return the potential energy (...) of weights and springs."""
    g, U = np.array(m.gravity), np.zeros(c.batch)
    for body in m.bodies:
        if body.mass:
            U = U - body.mass * centre(c, body.name, body.com) @ g
    for point in m.points:
        U = U - point.mass * c.value(point.name) @ g
    for spring in m.springs:
        r = c.value(spring.points[1]) - c.value(spring.points[0])
        length = np.sqrt(np.einsum("...i,...i->...", r, r))
        U = U + spring.stiffness * (length - spring.rest) ** 2 / 2
    for joint in m.joints:
        for q, k, rest in zip(joint.components, joint.stiffness, joint.rest, strict=True):
            U = U + (k * (c.value(q) - rest) ** 2 / 2 if k else 0.0)
    return U


@pytest.mark.slow
@every_model
def test_report_is_complete(name: str) -> None:
    """The report has all sections, fits the width and has no NaN."""
    for width in (100, 80):
        run = CliRunner().invoke(main, ["report", name, "--order", "2"], env={"COLUMNS": str(width)})
        assert run.exit_code == 0
        assert "nan" not in run.output.lower().split()
        assert "mass matrix I*" in run.output
        assert max(map(len, run.output.splitlines())) <= width
