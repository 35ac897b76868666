"""Mobility: closure conditions, redundant conditions and their parts, certainty, and the printed account."""

from __future__ import annotations

from dataclasses import replace

import linkages
import numpy as np
import pytest
from click.testing import CliRunner
from linkages import hinged
from raising import raises
from scipy.spatial.transform import Rotation

import kic
from kic.ui.cli.main import main
from kic.ui.report.report import report_data


def bars(a: float, b: float, ground: float) -> kic.Mechanism:
    """A four-bar drawn flat: a, then b on along x, then back or on to the last hinge."""
    return hinged([(0, 0, 0), (a, 0, 0), (a + b, 0, 0), (ground, 0, 0)])


def slung(places: dict[str, tuple], ends: dict[str, tuple], kind: str = "rods") -> kic.Mechanism:
    """A point on two sliders, tied to posts by fixed distances."""
    posts = [kic.Point(name, "ground", at) for name, at in ends.items()]
    return kic.Mechanism(
        kind,
        [kic.Body("s"), kic.Body("p")],
        [
            kic.Joint("X", "prismatic", ("ground", "s"), axis=(1, 0, 0)),
            kic.Joint("Y", "prismatic", ("s", "p"), axis=(0, 1, 0)),
        ],
        points=[*posts, *(kic.Point(name, "p", at) for name, at in places.items())],
        distances=[
            kic.Distance(f"rod{k}", pair, fixed=True) for k, pair in enumerate(zip(ends, places, strict=True))
        ],
        coordinates=[],
    )


PLANE = "All motion is in one plane, normal (0, 0, 1); other conditions hold identically."
MODELS = {
    "puma560": "mobility 6: 6 tree coordinates, no closure condition.",
    "four-bar": "mobility 1: 3 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them "
    f"redundant (3 of joint 'D'). {PLANE}",
    "gough-stewart": "mobility 6: 21 tree coordinates, 15 closure conditions of 5 loops "
    "(cut at S2, S3, S4, S5, S6), none of them redundant.",
    "geared-five-bar": "mobility 1: 4 tree coordinates, 6 closure conditions of 1 loop (cut at D) and "
    f"1 coupling (mesh), 3 of them redundant (3 of joint 'D'). {PLANE}",
    "five-rod-suspension": "mobility 1: 6 tree coordinates, 5 closure conditions of 5 fixed distances "
    "(camber_rod, pull_rod, cross_rod, thrust_rod, track_rod), none of them redundant.",
}


@pytest.mark.slow_for("gough-stewart")
@pytest.mark.parametrize("name", MODELS)
def test_shipped_models_in_words(name: str) -> None:
    m = kic.load(name)
    assert m.mobility().summary() == repr(m.mobility()) == MODELS[name]


@pytest.mark.parametrize("name", kic.model_names())
def test_mobility_account_is_consistent(name: str) -> None:
    """The mobility of every shipped model is coordinates less conditions plus redundant conditions."""
    m = kic.load(name)
    f = m.mobility()
    assert f.dof == m.dof == f.coordinates - sum(f.conditions.values()) + f.redundant
    assert f.dof == len(m.coordinates)
    assert f.redundant == m.mobility().redundant
    assert (f.regular, f.caveat()) == (True, "")
    assert set(f.nearby) <= {f.first_order} == {f.dof}
    assert list(f.conditions) == [
        *m.mobility().cuts,
        *(c.name for c in m.couplings),
        *m._fixed_distances,
        *(c.name for c in m.contacts),
    ]


def test_messages_are_printed_once() -> None:
    text = MODELS["geared-five-bar"]
    m = kic.load("geared-five-bar")
    assert text in " ".join(m.summary().text().split())
    assert "mesh 20 ΔA + 40 ΔE = 0" in " ".join(m.summary().text().split())
    assert report_data(m, m.at())["mobility"] == text
    run = CliRunner().invoke(main, ["check", "geared-five-bar"])
    assert run.output.startswith(
        "ok: geared-five-bar, 1 degree of freedom, 4 bodies, 5 joints, 1 point, 1 coupling, 1 loop"
    )
    assert f"note: {text}" in " ".join(run.output.split())
    told = " ".join(CliRunner().invoke(main, ["report", "geared-five-bar"]).output.split())
    assert text in told
    assert "mesh 20 ΔA + 40 ΔE = 0" in told
    rods = kic.load("five-rod-suspension")
    assert "thrust_rod 0.38066" in " ".join(rods.summary().text().split())
    told = CliRunner().invoke(main, ["report", "five-rod-suspension"]).output
    assert "5 fixed distances, no loop" in " ".join(told.split())
    assert "thrust_in – thrust_out, fixed" in told
    assert "seat_top – seat_bottom, fixed" not in told
    # an open chain has nothing to explain
    assert "mobility" not in kic.load("puma560").summary().text()
    assert "mobility" not in CliRunner().invoke(main, ["check", "puma560"]).output


def test_redundant_conditions_that_are_shared() -> None:
    m = kic.load("geared-five-bar")
    again = replace(m, couplings=[*m.couplings, kic.Coupling("again", ("E", "A"), ratios=(2, 1))])
    f = again.mobility()
    assert (f.dof, f.redundant) == (1, 4)
    assert (
        "4 of them redundant (3 of joint 'D', 1 among those of coupling 'mesh', coupling 'again')"
        in f.summary()
    )


def test_a_coupling_that_the_loop_has_already() -> None:
    """Opposite cranks of a parallelogram turn alike in any case, as long as it is one."""
    at = [(0, 0, 0), (0.6, 0.8, 0), (2.6, 0.8, 0), (2, 0, 0)]
    m = hinged(at, couplings=[kic.Coupling("belt", ("A", "D"), ratios=(1, 1))])
    f = m.mobility()
    assert (f.dof, f.redundant, f.regular) == (1, 4, True)
    assert "(3 of joint 'C', 1 among those of joint 'C', coupling 'belt')" in f.summary()
    free = replace(m, couplings=())
    c, e = m.at({"A": 0.4}), free.at({"A": 0.4})
    assert pytest.approx(e.coefficients("D", order=3).G, abs=1e-12) == c.coefficients("D", order=3).G
    # another ratio holds it still
    held = replace(m, couplings=[kic.Coupling("belt", ("A", "D"), ratios=(1, 2))], coordinates=[])
    assert (held.dof, held.mobility().redundant, held.mobility().regular) == (0, 3, True)


def bennett(digits: int | None = None, **more) -> kic.Mechanism:
    """A Bennett linkage: one degree of freedom, where counting gives none."""
    places, axes = linkages.bennett()
    if digits is not None:
        places = np.round(places, digits)
    return hinged(places, axes, **more)


def test_an_overconstrained_linkage_in_space() -> None:
    f = bennett().mobility()
    assert (f.dof, f.redundant, f.regular, f.nearby) == (1, 3, True, (1, 1))
    assert (
        "3 of them redundant (3 of joint 'C')." in f.summary()
        or "3 of them redundant (3 of joint 'D')." in f.summary()
    )
    assert "plane" not in f.summary()


def test_rounded_dimensions() -> None:
    """Without a tolerance a rounded Bennett is rigid; within one it moves, and the drawing is regular."""
    assert bennett(3).dof == 0
    f = bennett(3, closure_tolerance=3e-3).mobility()
    assert (f.dof, f.regular, f.finite, f.passive_freedoms) == (1, True, True, ())


@pytest.mark.parametrize(
    "m", [bars(1, 2, 2), bars(1, 2, 1.5), bars(1, 2.5, 2)], ids=["parallelogram", "a", "b"]
)
def test_drawn_folded_flat(m: kic.Mechanism) -> None:
    """To first order a flat four-bar has two degrees of freedom; off the line it has one."""
    f = m.mobility()
    assert (f.first_order, f.dof, f.regular) == (2, 1, False)
    assert set(f.nearby) == {1}
    doubt = (
        "But the reference configuration is singular: it has 2 degrees of freedom to first order, the closed "
        "configurations found near it have 1. Describe the mechanism in another configuration."
    )
    assert doubt in f.summary()
    assert "mobility 1: 3 tree coordinates, 5 closure conditions of 1 loop" in f.summary()
    assert doubt in " ".join(m.summary().text().split())
    with raises(kic.SingularError, dof=2, coordinates=("A",)):
        m.at().coefficients("D")
    with pytest.raises(
        kic.InputError, match=r"has mobility 1; 2 coordinates .* But the reference configuration is singular"
    ):
        m.at({"A": 0.1, "D": 0.1})


def test_drawn_stretched_out() -> None:
    """Three bars as long together as the ground: rigid, though to first order it moves two ways."""
    m = bars(1, 2, 4)
    f = m.mobility()
    assert (f.first_order, f.dof, f.regular, f.nearby) == (2, 0, None, ())
    assert (f.finite, f.extends, f.redundant) == (False, 1, 4)
    assert f.summary().startswith("mobility 0: 3 tree coordinates")
    said = (
        "It is rigid, but infinitesimally mobile: at the reference configuration the closure conditions are "
        "dependent and leave 2 degrees of freedom to first order, and no motion extends to second order."
    )
    assert f.summary().endswith(said)
    with pytest.raises(
        kic.InputError,
        match=r"has mobility 0; 1 coordinate was named: A\. It does not move: name none\. It is rigid, but",
    ):
        m.at({"A": 0.1})


def test_a_shaky_truss(tmp_path) -> None:
    """Two collinear rods have an infinitesimal motion at their joint, but no finite one."""
    m = slung({"q0": (1, 0, 0), "q1": (1, 0, 0)}, {"left": (0, 0, 0), "right": (2, 0, 0)})
    f = m.mobility()
    assert (f.first_order, f.regular, f.redundant, f.finite) == (1, None, 1, False)
    assert "(1 among those of distance 'rod0', distance 'rod1'). It is rigid, but infinit" in f.summary()
    m.save(tmp_path / "rods.toml")
    run = CliRunner().invoke(main, ["check", str(tmp_path / "rods.toml")])
    assert run.output.startswith("ok: rods, 0 degrees of freedom, 2 bodies, 2 joints")
    assert "warning: mobility 0" in run.output
    assert "It is rigid, but infinitesimally mobile" in " ".join(run.output.split())
    replace(m, coordinates=["Y"]).save(tmp_path / "rods.toml")
    run = CliRunner().invoke(main, ["check", str(tmp_path / "rods.toml")])
    assert run.exit_code == 1
    assert "It does not move: name none." in " ".join(run.output.split())
    # off the line the same two rods hold it
    firm = slung({"q0": (1, 0.5, 0), "q1": (1, 0.5, 0)}, {"left": (0, 0, 0), "right": (2, 0, 0)})
    assert (firm.dof, firm.mobility().redundant, firm.mobility().regular) == (0, 0, True)


def test_parallel_rods_one_of_them_superfluous() -> None:
    """A third rod of a parallelogram of rods: redundant in every configuration, so that it moves."""
    feet = {"f0": (0, 0, 0), "f1": (1, 0, 0), "f2": (2.5, 0, 0)}
    m = slung({f"h{k}": (x + 0.3, 0.4, 0) for k, (x, _, _) in enumerate(feet.values())}, feet)
    f = m.mobility()
    assert (f.dof, f.redundant, f.regular) == (1, 2, True)
    assert (
        "2 of them redundant (2 among those of distance 'rod0', distance 'rod1', distance 'rod2')"
        in f.summary()
    )


def test_motions_with_different_dof_meet() -> None:
    """A slider on a swivelling bar, its pin guided along x: it slides, or the bar swivels both ways."""
    at = (0.0, 0.0, 0.0)
    m = kic.Mechanism(
        "fork",
        [kic.Body(name) for name in ("bar", "slider", "guide")],
        [
            kic.Joint("swivel", "universal", ("ground", "bar"), at=at, axis=(0, 1, 0), axis2=(0, 0, 1)),
            kic.Joint("slide", "prismatic", ("bar", "slider"), axis=(1, 0, 0)),
            kic.Joint("pin", "spherical", ("slider", "guide"), at=at),
            kic.Joint("rail", "prismatic", ("ground", "guide"), axis=(1, 0, 0)),
        ],
        coordinates=["swivel"],
    )
    f = m.mobility()
    assert (f.first_order, f.dof, f.regular) == (3, 2, False)
    assert set(f.nearby) == {1, 2}
    assert "found near it have 1 or 2. Motions with different degrees of freedom meet here." in f.summary()


def test_many_parts_are_counted() -> None:
    ladder = kic.load("ladder").mobility().summary()
    assert "(cut at B1, B2, B3)" in ladder
    m = kic.load("geared-five-bar")
    many = [kic.Coupling(f"k{k}", ("A", "E"), ratios=(1, 2)) for k in range(8)]
    text = replace(m, couplings=many).mobility().summary()
    assert "8 couplings (k0, k1, k2, k3, k4, k5, … 2 more)" in text
    assert "7 among those of coupling 'k0'" in text


def table(turned: np.ndarray, unit: float = 1.0) -> kic.Mechanism:
    """A two-link arm whose plate slides on a sled, all in one plane that is turned."""

    def at(*v: float) -> tuple:
        return tuple((turned @ v * unit).tolist())

    def along(*v: float) -> tuple:
        return tuple((turned @ v).tolist())

    z = along(0, 0, 1)
    return kic.Mechanism(
        "table",
        [kic.Body("arm"), kic.Body("plate"), kic.Body("sled")],
        [
            kic.Joint("A", "revolute", ("ground", "arm"), at=at(0, 0, 0), axis=z),
            kic.Joint("B", "revolute", ("arm", "plate"), at=at(1, 0, 0), axis=z),
            kic.Joint("S", "prismatic", ("ground", "sled"), axis=along(0.6, 0.8, 0)),
            kic.Joint(
                "T", "planar", ("plate", "sled"), at=at(1, 1, 0), axis=along(1, 0, 0), axis2=along(0, 1, 0)
            ),
        ],
        coordinates=["A", "B", "S"],
    )


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_conditions_that_are_rounding_alone(unit: float) -> None:
    """Out of a plane oblique to the axes all conditions are about 1e-16 and count as zero."""
    turned = Rotation.from_rotvec([0.3, -0.7, 1.1]).as_matrix()
    upright, tilted = table(np.eye(3)), table(turned, unit)
    closure = tilted._model.closure(())
    assert 0 < np.abs(closure.rows(tilted.at()._states)[1]).max() < 1e-14
    one, other = upright.mobility(), tilted.mobility()
    assert (other.dof, other.redundant, other.regular) == (3, 3, True)
    assert other.shares.max() < 1e-14
    assert (
        [idle.bodies for idle in other.passive_freedoms]
        == [idle.bodies for idle in one.passive_freedoms]
        == [("plate",), ("sled",)]
    )
    assert other.summary().split(". ")[0] == one.summary().split(". ")[0]
    there, here = tilted.at([0.3, 0.2, 0.1 * unit]), upright.at([0.3, 0.2, 0.1])
    size = np.array([unit, unit, 1])
    np.testing.assert_allclose(there.value("T"), here.value("T") * size, atol=1e-12 * unit)
    of_A = [c.coefficients("T", order=3).D[:, 0, 0, 0] for c in (there, here)]
    np.testing.assert_allclose(of_A[0], of_A[1] * size, atol=1e-12 * unit)
