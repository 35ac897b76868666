"""Order k is the complex step of order k - 1, tensor by tensor, for every kind of row, joint and loop.

A configuration steps along its own first order, which is tangent to the closure. The shipped models in their
own coordinates are in `test_gallery`; couplings, contacts, frames and centres of mass in their modules.
"""

from __future__ import annotations

import numpy as np
import pytest
from closed_models import EVERY, configuration
from sampling import (
    STEP,
    check_inertia,
    check_orders,
    mismatch,
    random_posture,
    random_tree,
    stepped,
    tree_rates,
)

import kic

RP = [
    "R", "P", "RR", "RP", "PR", "PP", "RPR", "RRP", "PRP", "RPRP", "PPRR", "RRRR", "RRPRRR", "PRRPRR",
    "RRRRRRR", "RPRPRPRPR", "R" * 12, "PRRRRRPRRRRP",
]  # fmt: skip
OTHERS = [
    ["spherical"],
    ["free"],
    ["R", "spherical", "R"],
    ["spherical", "spherical"],
    ["free", "R", "P"],
    ["P", "universal", "spherical", "R"],
    ["cylindrical", "planar", "R"],
    ["free", "spherical", "universal", "cylindrical", "fixed", "planar"],
]


def questions(m: kic.Mechanism) -> list[str]:
    """Return outputs of every kind: the last body, a point, distances, an angle and the joints."""
    last = m.bodies[-1].name
    return [last, m.points[-2].name, *m._variable_measures, *(j.name for j in m.joints if j.dof)]


def check_tree(m: kic.Mechanism, c: kic.Configuration) -> None:
    """Require all orders, their symmetry, and that lower orders, which have other kernels, give the same."""
    of = questions(m)
    exact = c.coefficients(of, order=3)
    check_orders(c, of, exact=exact)
    if not c._model.tree.balls:
        valued = c._model.rows(tuple(of), 1).layout.rows.valued
        H, D = exact.H[..., valued, :, :], exact.D[..., valued, :, :, :]
        assert mismatch(H.swapaxes(-1, -2), H) < 1e-14
        for axes in ((-1, -2), (-1, -3), (-2, -3)):
            assert mismatch(D.swapaxes(*axes), D) < 1e-13
    for order in (1, 2):
        lower = c.coefficients(of, order=order)
        assert mismatch(lower.G, exact.G) < 1e-13
        assert order == 1 or np.array_equal(lower.G, exact.G)
        assert lower.D is None
        assert (lower.H is None) == (order == 1)


@pytest.mark.parametrize("branched", [False, True], ids=["serial", "branched"])
@pytest.mark.parametrize("kinds", RP, ids="".join)
def test_revolutes_and_sliders(kinds: str, branched: bool) -> None:
    rng = np.random.default_rng(len(kinds) + 100 * branched)
    m = random_tree(rng, kinds, branched)
    check_tree(m, random_posture(rng, m))


@pytest.mark.parametrize("branched", [False, True], ids=["serial", "branched"])
@pytest.mark.parametrize("kinds", OTHERS, ids="-".join)
def test_every_other_joint(kinds: list[str], branched: bool) -> None:
    for seed in range(3):  # the order of the bodies, and so the direction of walking, is drawn too
        rng = np.random.default_rng(seed)
        m = random_tree(rng, kinds, branched)
        check_tree(m, random_posture(rng, m))


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
def test_batches(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    m = random_tree(rng, ["R", "P", "spherical", "R"], branched=True)
    c = random_posture(rng, m, batch)
    check_tree(m, c)
    exact = c.coefficients(questions(m), order=3)
    size, rows = len(c.coordinates), len(exact.rows)
    assert exact.G.shape == (*batch, rows, size)
    assert exact.H.shape == (*batch, rows, size, size)
    assert exact.D.shape == (*batch, rows, size, size, size)
    for index in np.ndindex(*batch):
        one = m.at(c._phi[index]).coefficients(questions(m), order=3)
        assert mismatch(exact.D[index], one.D) < 1e-13


@pytest.mark.parametrize("kinds", ["RRRR", "RPRR", "RRRRRR"])
@pytest.mark.parametrize("value", [0.0, np.pi, -np.pi, np.pi / 2])
def test_degenerate_configurations(kinds: str, value: float) -> None:
    """Aligned and folded arms, and joints through one point."""
    rng = np.random.default_rng(1)
    m = random_tree(rng, kinds)
    check_tree(m, m.at(np.full(len(kinds), value)))
    flat = kic.Mechanism(
        "stacked",
        [kic.Body(f"b{n}", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1)) for n in range(4)],
        [
            kic.Joint(
                f"j{n}",
                "revolute",
                ("ground" if n == 0 else f"b{n - 1}", f"b{n}"),
                at=(0, 0, 0),
                axis=(0, 0, 1),
            )
            for n in range(4)
        ],
        points=[kic.Point("p3", "b3", at=(0, 0, 0)), kic.Point("post", "ground", at=(1.0, 0, 0))],
        distances=[kic.Distance("gap", ("p3", "post"))],
    )
    check_tree(flat, flat.at(np.full(4, value)))


def test_rotational_rows_are_not_symmetric_by_the_cross_product() -> None:
    """H_mn - H_nm = g_m × g_n for angular velocities, and D_lmn - D_lnm its derivative."""
    rng = np.random.default_rng(8)
    for kinds in ("RRRR", "RPRRPR"):
        m = random_tree(rng, kinds, branched=True)
        c = random_posture(rng, m)
        for body in m.bodies:
            w = c.coefficients([f"{body.name}.wx", f"{body.name}.wy", f"{body.name}.wz"], order=3)
            g, H, D = w.G.T, np.moveaxis(w.H, 0, -1), np.moveaxis(w.D, 0, -1)
            bracket = np.cross(g[:, None], g[None])
            assert np.abs(H - H.swapaxes(0, 1) - bracket).max() < 1e-13
            jacobi = np.cross(H[:, :, None], g[None, None]) + np.cross(g[None, :, None], H[:, None, :])
            assert np.abs(D - D.swapaxes(1, 2) - jacobi).max() < 1e-13


def test_planar_angle_and_component_rows() -> None:
    rng = np.random.default_rng(2)
    z = (0, 0, 1)
    m = kic.Mechanism(
        "planar",
        [kic.Body(f"b{n}", at=tuple(rng.normal(size=3))) for n in range(3)],
        [
            kic.Joint("A", "revolute", ("ground", "b0"), at=(0, 0, 0), axis=z, value=0.3),
            kic.Joint("B", "prismatic", ("b0", "b1"), axis=(1, 2, 0)),
            kic.Joint("C", "revolute", ("b2", "b1"), at=(1, 1, 0), axis=(0, 0, -2), value=-0.2),
        ],
    )
    c = m.at([0.5, 0.1, 0.7])
    angle = c.coefficients("b2.angle", order=3)
    assert angle.rows == ("b2.angle",)
    # joint C is written backwards about -z: the body turns with the coordinate
    assert np.array_equal(angle.G, [[1.0, 0.0, 1.0]])
    assert not angle.H.any()
    assert not angle.D.any()
    assert c.value("b2.angle") == pytest.approx((0.5 - 0.3) + (0.7 + 0.2))
    assert m.at().value("b2.angle") == 0.0
    whole = c.coefficients(["b2", "C"])
    part = c.coefficients(["b2.wz", "b2.x", "C"])
    assert part.rows == ("b2.wz", "b2.x", "C")
    assert np.array_equal(part.H, whole.H[[5, 0, 6]])


SETS = [
    (name, place, names)
    for name, case in EVERY.items()
    for place in (0, 1)
    for names in (*case.wrt, case.quasi)
    if names
]


@pytest.mark.parametrize(("name", "place", "names"), SETS)
def test_closed_mechanisms_in_other_coordinates(name: str, place: int, names: str) -> None:
    """Shipped loops in true coordinates and quasi-velocities of every kind."""
    (_, c), wrt = configuration(name, place), names.split()
    transfer = c._model.transfer(tuple(wrt))
    condition = float(c._model.closure(tuple(wrt)).condition(c._states)[0])
    limit = max(1e-12, 1000 * np.finfo(float).eps * condition)
    # each coordinate goes one ahead, the others rest, and the loops stay closed
    rows = transfer.values_and_rates(stepped(c, wrt)._states)[0].imag / STEP
    want = np.eye(*rows.shape)
    known = np.concatenate([transfer.chosen.valued, np.ones(len(transfer.owners), bool)])
    off = ((rows - want) / transfer.scale)[:, known]
    assert np.abs(off).max(initial=0) < limit * max(1, np.abs(tree_rates(c, wrt)).max() / transfer.length)
    check_orders(c, EVERY[name].of.split(), wrt, limit)
    check_inertia(c, wrt, 10 * limit)
