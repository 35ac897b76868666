"""Results and errors do not depend on units: round-off is not motion, and results are finite."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from linkages import resized, serial, shifted

import kic
from kic.kinematics.scaling import composed

SCALES = (1e-6, 1e-3, 1.0, 1e3)
Case = tuple[kic.Mechanism, list[list[str]], list[list[str]], list[str] | None]


def unit(rng) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def body(rng, name: str) -> kic.Body:
    return kic.Body(name, mass=1.0, com=tuple(rng.normal(size=3)), inertia=(0.1,) * 3)


def planar_revolute_ball(rng) -> Case:
    """The revolute joint can never move, so that all it has is round-off."""
    x = unit(rng)
    y = np.cross(x, unit(rng))
    m = kic.Mechanism(
        "planar-revolute-ball",
        [body(rng, "a"), body(rng, "b")],
        [
            kic.Joint("E", "planar", ("ground", "a"), rng.normal(size=3), x, axis2=y / np.linalg.norm(y)),
            kic.Joint("R", "revolute", ("a", "b"), at=rng.normal(size=3), axis=unit(rng)),
            kic.Joint("S", "spherical", ("b", "ground"), at=rng.normal(size=3)),
        ],
    )
    return m, [["R"]], [["b.wx"]], ["E.3"]


def spatial_four_bar(rng) -> Case:
    """The coupler spins between its balls: crank and rocker depend on each other."""
    m = kic.Mechanism(
        "rssr",
        [body(rng, name) for name in ("crank", "coupler", "rocker")],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=rng.normal(size=3), axis=unit(rng)),
            kic.Joint("S", "spherical", ("crank", "coupler"), at=rng.normal(size=3)),
            kic.Joint("T", "spherical", ("coupler", "rocker"), at=rng.normal(size=3)),
            kic.Joint("D", "revolute", ("ground", "rocker"), at=rng.normal(size=3), axis=unit(rng)),
        ],
        points=[
            kic.Point("off", "coupler", at=rng.normal(size=3)),
            kic.Point("end", "rocker", at=rng.normal(size=3)),
        ],
    )
    return m, [["A", "D"], ["end.x", "end.y"]], [["D", "off.x"]], ["A", "off.z"]


def arm(rng) -> Case:
    """A spatial arm with sliders whose tip lies on the last axis; another point does not."""
    p, axis = rng.normal(size=3), unit(rng)
    kinds = [*rng.choice(["revolute", "prismatic"], size=5), "revolute"]
    joints = [
        kic.Joint(
            f"J{k}",
            str(kind),
            ("ground" if k == 0 else f"b{k - 1}", f"b{k}"),
            at=p if k == 5 else rng.normal(size=3),
            axis=axis if k == 5 else unit(rng),
        )
        for k, kind in enumerate(kinds)
    ]
    points = [kic.Point("tip", "b5", at=p + 0.7 * axis), kic.Point("off", "b5", at=rng.normal(size=3))]
    m = kic.Mechanism("arm", [body(rng, f"b{k}") for k in range(6)], joints, points=points)
    rows = [[f"{name}.{x}" for x in "xyz"] + ["J0", "J1", "J2"] for name in ("tip", "off")]
    return m, [rows[0]], [rows[1]], None


def stretched_arm(rng) -> Case:
    """Three collinear links in a plane oblique to the axes."""
    z, p = unit(rng), rng.normal(size=3)
    along = np.cross(z, unit(rng))
    places = [p + r * along for r in np.cumsum(rng.uniform(0.3, 2, size=4))]
    joints = [
        kic.Joint(f"J{k}", "revolute", ("ground" if k == 0 else f"b{k - 1}", f"b{k}"), at=places[k], axis=z)
        for k in range(3)
    ]
    bodies = [body(rng, f"b{k}") for k in range(3)]
    m = kic.Mechanism("stretched", bodies, joints, points=[kic.Point("tip", "b2", at=places[3])])
    return m, [["tip.x", "tip.y", "tip.z"]], [["J2", "J0", "J1"]], None


def parallelogram(rng) -> Case:
    """The coupler does not turn."""
    z, o = unit(rng), rng.normal(size=3)
    e = np.cross(z, unit(rng))
    f, (length, height, aside) = np.cross(z, e), rng.uniform(0.3, 2, size=3)

    def at(a: float, b: float) -> tuple[float, ...]:
        return tuple(o + a * e + b * f)

    m = kic.Mechanism(
        "parallelogram",
        [body(rng, name) for name in ("l", "c", "k")],
        [
            kic.Joint("A", "revolute", ("ground", "l"), at=at(0, 0), axis=z),
            kic.Joint("B", "revolute", ("l", "c"), at=at(aside, height), axis=z),
            kic.Joint("C", "revolute", ("c", "k"), at=at(aside + length, height), axis=z),
            kic.Joint("D", "revolute", ("ground", "k"), at=at(length, 0), axis=z),
        ],
    )
    return m, [["c.wx"], ["c.wz"]], [["D"], ["B"]], ["A"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "make",
    [planar_revolute_ball, spatial_four_bar, arm, stretched_arm, parallelogram],
    ids=lambda f: f.__name__,
)
def test_results_and_errors_are_independent_of_units(make, seed: int) -> None:
    m, singular, regular, wrt = make(np.random.default_rng(seed))
    first: dict[str, np.ndarray] = {}
    for s in (1.0, *SCALES):
        c = resized(m, s).at()
        for rows in singular:
            k, weights = c.coefficients(rows, wrt=wrt), np.ones(len(rows))
            assert k.condition() == np.inf
            with pytest.raises(kic.SingularError):
                k.inverse()
            with pytest.raises(kic.SingularError):
                c.distribute(np.ones(len(k.columns)), actuators=rows, criterion=weights, wrt=wrt)
            with pytest.raises(kic.SingularError):
                c.internal_loads(actuators=rows, criterion=weights, wrt=wrt)
            with pytest.raises(kic.SingularError):
                c.actuator_dynamics(actuators=rows, criterion=weights, wrt=wrt)
        for rows in regular:
            k = c.coefficients(rows, wrt=wrt)
            inverse = k.inverse()
            same = inverse.scaling.scaled(inverse.G)
            tolerance = 64 * float(inverse.scaling.error) * float(k.condition())
            known = first.setdefault(str(rows), same)
            assert np.abs(same - known).max() <= tolerance * np.abs(known).max()
            assert inverse.inverse().condition() == pytest.approx(k.condition(), rel=1e-3)
            T = c.distribute(np.ones(len(k.columns)), actuators=rows, criterion=np.ones(len(rows)), wrt=wrt)
            assert np.allclose(np.swapaxes(k.G, -1, -2) @ T.effort, 1.0, rtol=1e-6)


def test_no_false_errors_far_from_the_origin_and_in_small_loops() -> None:
    rng = np.random.default_rng(5)
    m, singular, regular, wrt = spatial_four_bar(rng)
    far = shifted(m, 1e4).at()
    assert np.isfinite(far.coefficients(regular[0], wrt=wrt).inverse().G).all()
    for rows in singular:
        with pytest.raises(kic.SingularError):
            far.coefficients(rows, wrt=wrt).inverse()
    # a finger of a micrometre on an arm of a metre
    fine = serial([(0, 0, 0), (1, 0, 0)], "ab", points=[kic.Point("tip", "b", at=(1, 1e-6, 0))])
    tip = fine.at().coefficients(["tip.x", "tip.y"])
    assert 1e5 < tip.condition() < 1e8
    assert np.abs((tip @ tip.inverse()).G - np.eye(2)).max() < 1e-9


def test_every_operation_keeps_the_scaling() -> None:
    m, _, _, wrt = planar_revolute_ball(np.random.default_rng(0))
    c = m.at()
    k = c.coefficients(["R", "E.3"], wrt=wrt)
    gear = kic.Coefficients(["motor"], ["R"], [[50.0]], np.zeros((1, 1, 1)))
    other = kic.Coefficients(["E.3"], ["x"], [[1e-3]], np.zeros((1, 1, 1)))
    locked = {
        "index": k["R"],
        "rename": k["R"].renamed({"R": "Q", "E.3": "e"}),
        "match": k.matched(("R",)),
        "columns": k["R"].columns_of("E.3"),
        "pickle": pickle.loads(pickle.dumps(k["R"])),
        "outer by hand": gear @ k["R"],
        "inner by hand": k["R"] @ other,
        "identity": kic.Coefficients.identity(["R"]) @ k["R"],
        "inverse": k["R"] @ k["E.3"].inverse(),
        "row of a stack": k["E.3"].stack(k["R"])["R"],
    }
    for name, one in locked.items():
        assert one.scaling is not None, name
        with pytest.raises(kic.SingularError):
            one.inverse()
    # by hand, numbers are exact
    tiny = kic.Coefficients(["a"], ["b"], [[1e-17]])
    assert tiny.scaling is None
    assert tiny.inverse().G == 1e17
    assert composed(None, tiny.G, None, tiny.G) is None
    free = k["E.3"] @ other
    assert free.inverse().G.item() == pytest.approx(1e3)


def test_a_batch_keeps_the_error_of_each_member() -> None:
    m, _, _, wrt = planar_revolute_ball(np.random.default_rng(1))
    k = m.at({"E.3": [0.1, 0.2]}, near=m.at()).coefficients("R", wrt=wrt)
    assert np.shape(k.scaling.error) == (2,)
    assert k.condition().tolist() == [np.inf, np.inf]


# --- round-off that would be scaled up elsewhere ------------------------------------------------------------


def test_ellipsoids_of_a_row_that_does_not_move_are_flat() -> None:
    m, _, _, wrt = planar_revolute_ball(np.random.default_rng(0))
    for s in SCALES:
        c = resized(m, s).at()
        assert c.ellipsoid("R", wrt=wrt).semi_axes == 0
        assert c.ellipsoid("R", kind="inertia", wrt=wrt).masses == np.inf
        assert c.ellipsoid("R", kind="acceleration", wrt=wrt).semi_axes == 0
        assert c.ellipsoid("R", kind="force", wrt=wrt).semi_axes == np.inf
        with pytest.raises(kic.SingularError):
            c.ellipsoid("R", wrt=wrt).gradient()
        with pytest.raises(kic.SingularError):
            c.operational_space("R", wrt=wrt)


@pytest.mark.parametrize("seed", range(8))
def test_inertia_that_is_round_off_is_none(seed: int) -> None:
    """A thin rod turns about its own axis, at a configuration where its inertia is not exactly zero."""
    rng = np.random.default_rng(seed)
    p, axis = rng.normal(size=3), unit(rng)
    thin = 0.3 * (np.eye(3) - np.outer(axis, axis))
    rod = kic.Body(
        "rod",
        mass=1.5,
        com=tuple(p + axis),
        inertia=tuple(map(tuple, (thin + thin.T) / 2)),
        inertia_exception="thin",
    )
    m = kic.Mechanism(
        "thin",
        [body(rng, "a"), rod],
        [
            kic.Joint("A", "revolute", ("ground", "a"), at=rng.normal(size=3), axis=unit(rng)),
            kic.Joint("B", "revolute", ("a", "rod"), at=p, axis=axis),
        ],
    )
    for s in SCALES:
        c = resized(m, s).at(rng.normal(size=2))
        d = c.dynamics()
        for one in (
            d,
            pickle.loads(pickle.dumps(d)),
            d + d,
            d.transfer(kic.Coefficients.identity(["B", "A"])),
        ):
            with pytest.raises(kic.SingularError) as caught:
                one.forward_dynamics([0, 0], [1, 1])
            assert "B" in caught.value.coordinates
        with pytest.raises(kic.SingularError):
            c.operational_space("B")
        with pytest.raises(kic.SingularError):
            c.resolve_redundancy("A", [1.0], criterion="minimum kinetic energy")
        with pytest.raises(kic.SingularError):
            c.linearize().forward_dynamics()


def test_light_hands_on_heavy_arms_are_not_round_off() -> None:
    arm = kic.Body("arm", mass=1e3, com=(1, 0, 0), inertia=(1, 1, 1))
    hand = kic.Body("hand", mass=1e-6, com=(2, 1e-4, 0), inertia=(1e-15,) * 3)
    m = serial([(0, 0, 0), (2, 0, 0)], [arm, hand])
    assert np.isfinite(m.at().dynamics().forward_dynamics([0, 0], [0, 1e-14])).all()


# --- numbers too large -------------------------------------------------------------------------------------


def test_descriptions_whose_products_overflow_raise() -> None:
    m = kic.load("bevel-wrist")
    for change in ({"mass": 1e200}, {"com": (1e200, 0, 0)}, {"inertia": (1e60,) * 3}):
        with pytest.raises(kic.ModelError) as caught:
            replace(m.bodies[-1], **change)
        assert caught.value.key in change
        assert caught.value.got > 1e50
    for change in ({"at": (0, -1e51, 0)}, {"stiffness": 1e200}, {"damping": 1e51}):
        with pytest.raises(kic.ModelError):
            replace(m.joints[0], **change)


def test_results_that_overflow_raise() -> None:
    m = kic.load("slider-crank")
    bodies = tuple(replace(b, mass=1e49, com=tuple(1e49 * x for x in b.com or (1, 0, 0))) for b in m.bodies)
    slide = kic.Mechanism(
        "slide",
        [
            kic.Body("a", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1)),
            kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1)),
        ],
        [
            kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("X", "prismatic", ("a", "b"), at=(0, 0, 0), axis=(1, 0, 0)),
        ],
        gravity=(0, -9.81, 0),
    )
    c = slide.at([0.3, 1e200])
    f = slide.prepare.dynamics()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (
            c.dynamics,
            c.body_contributions,
            c.linearize,
            lambda: c.operational_space("A"),
            lambda: f(c.state, check=True),
            lambda: slide.at([0.3, 1.0]).dynamics().inverse_dynamics([1e200, 1.0], [0.0, 0.0]),
            lambda: slide.at([0.3, 1.0]).dynamics().forward_dynamics([1e200, 1.0], [0.0, 0.0]),
            lambda: slide.at([0.3, 1.0]).joint_forces([1e200, 1.0]),
        ):
            with pytest.raises(kic.InputError):
                ask()
        with pytest.raises(kic.KicError):
            c.joint_forces()
        large = replace(m, bodies=bodies)
        for ask in (
            lambda: large.summary().text(),
            large.at,
            lambda: large.at().dynamics().P,
            lambda: large.at().joint_forces(),
        ):
            try:
                ask()
            except kic.KicError:
                continue


@pytest.mark.slow_for("rssr", "four-bar")
@pytest.mark.parametrize("name", ["four-bar", "rssr", "slider-crank", "horn-two-link"])
def test_extreme_numbers_raise_only_kic_errors(name: str) -> None:
    """Without a warning of NumPy, and with finite results."""
    rng, m = np.random.default_rng(0), kic.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for big in (1e50, -1e49, 1e30, 1e-50, 1e-200, 5e-324):
            k = int(rng.integers(len(m.bodies)))
            for change in ({"mass": abs(big)}, {"com": (big, 0, 0)}, {"at": (0, big, 0)}):
                try:
                    other = replace(
                        m, bodies=(*m.bodies[:k], replace(m.bodies[k], **change), *m.bodies[k + 1 :])
                    )
                    other.summary().text()
                    c = other.at()
                    c.summary().text()
                    d = c.dynamics()
                    assert all(np.isfinite(x).all() for x in (d.I, d.P, d.load))
                    d.summary().text()
                    c.joint_forces()
                    c.linearize()
                except kic.KicError:
                    pass
