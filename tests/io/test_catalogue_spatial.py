"""Shipped mechanisms, each against the closed form of its motion; Freeman's Appendix D by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from exact import exact
from lagrange import (
    M,
    Motion,
    back,
    circles,
    dynamics,
    frame,
    place,
    remembered,
    shift,
    tensors,
    turn,
    turning,
    unit,
)
from raising import refuses
from sampling import mismatch

import kic

PAGES = json.loads((Path(__file__).parents[1] / "data" / "appendix_d.json").read_text(encoding="utf-8"))
SLIDER, BRICARD = PAGES["slider_crank"], PAGES["bricard_trihedral_equal"]
X, Y, Z = np.eye(3)
ORIGIN = (0, 0, 0)
TWIST = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])  # a quarter about x

# --------------------------------------------------------------------------------------- closed forms


def rz(angle: object) -> np.ndarray:
    return turn(ORIGIN, Z, angle)[:3, :3]


def slider_frames(q: np.ndarray) -> dict[str, np.ndarray]:
    """Crank, coupler and slider: the height closes a triangle, the coupler's axes follow from its line."""
    crank, spin = q
    pin = mp.mpf("1.2") * exact([mp.cos(crank), mp.sin(crank), 0])
    line = exact([mp.mpf("0.5"), mp.mpf("0.9"), 0]) - pin
    line[2] = mp.sqrt(9 - line @ line)
    slider = rz(mp.mpf("0.3")) @ turn(ORIGIN, X, mp.mpf("0.5"))[:3, :3] @ rz(mp.mpf("-0.4"))
    # the coupler's line in the slider's axes is (s6 c7, −s6 s7, −c6)
    along = slider.T @ line / 3
    s6 = mp.sqrt(1 - along[2] ** 2)
    fifth = slider @ rz(mp.atan2(along[1], along[0])) @ TWIST.T @ rz(-mp.atan2(s6, -along[2])) @ TWIST.T
    return {
        "crank": frame(rz(crank), ORIGIN),
        "coupler": frame(fifth @ rz(-spin) @ TWIST.T, pin),
        "slider": frame(slider, pin + line),
    }


def other_angle(a: object) -> object:
    """cos a + cos b + cos a cos b = 0, b positive."""
    return mp.acos(-mp.cos(a) / (1 + mp.cos(a)))


def bricard_frames(q: np.ndarray) -> dict[str, np.ndarray]:
    """Links of the source's rows, a = 1 and α = ±90°, θ1 = θ3 = θ5 from θ6."""
    T, frames = exact(np.eye(4)), {}
    for k, angle in enumerate((other_angle(q[0]), q[0]) * 3):
        if k:
            T = T @ frame(TWIST if k % 2 else TWIST.T, X)
        T = T @ frame(rz(angle), ORIGIN)
        frames[f"link{k + 1}{(k + 1) % 6 + 1}"] = T
    last = frames.pop("link61") @ frame(TWIST.T, X)
    assert max(abs(x) for x in (last - np.eye(4)).flat) < mp.mpf(10) ** -30
    return frames


def from_drawing(frames: Motion, at: np.ndarray) -> Motion:
    """Displacements from the drawing, from frames in the bodies."""
    start = {name: back(T) for name, T in frames(exact(at)).items()}
    return lambda q: {name: T @ start[name] for name, T in frames(q).items()}


def bennett(m: kic.Mechanism) -> Motion:
    """tan(A/2) tan(B/2) is constant; C is A, D is B."""
    A, B, _, D = m.joints
    drawn = [mp.mpf(j.value[0]) for j in m.joints]
    product = mp.tan(drawn[0] / 2) * mp.tan(drawn[1] / 2)

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        b = 2 * mp.atan2(product * mp.cos(q[0] / 2), mp.sin(q[0] / 2))
        first = turn(A.at, A.axis, q[0] - drawn[0])
        return {
            "bar1": first,
            "bar2": first @ turn(B.at, B.axis, b - drawn[1]),
            "bar3": turn(D.at, D.axis, drawn[3] - b),
        }

    return motion


def sarrus(m: kic.Mechanism) -> Motion:
    """Both legs, with leaves of 0.25, fold alike, and the plate rises by 0.5 sin A1."""
    joints = {j.name: j for j in m.joints}
    drawn = mp.mpf(joints["A1"].value[0])

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        found = {"plate": shift([0, 0, (mp.sin(q[0]) - mp.sin(drawn)) / 2])}
        for leg in "12":
            A, B = joints[f"A{leg}"], joints[f"B{leg}"]
            found[f"lower{leg}"] = turn(A.at, A.axis, q[0] - drawn)
            found[f"upper{leg}"] = found[f"lower{leg}"] @ turn(B.at, B.axis, -2 * (q[0] - drawn))
        return found

    return motion


THIRDS = [(mp.mpf(1), mp.mpf(0)), (-mp.mpf(1) / 2, mp.sqrt(3) / 2), (-mp.mpf(1) / 2, -mp.sqrt(3) / 2)]
OUT = [exact([c, s, 0]) for c, s in THIRDS]
ALONG = [exact([-s, c, 0]) for c, s in THIRDS]


def tilted(z: object, a: object, b: object) -> np.ndarray:
    """Displacement of the 3-RPS plate's frame: a turn about (a, b, 0), with its parasitic shift.

    A ball stays in its leg's plane where R_xy = R_yx, x = r/2 (R_xx − R_yy), y = −r R_yx, with r = 0.2.
    """
    s2 = a * a + b * b
    s = mp.sqrt(s2) if s2 else mp.mpf(0)
    R = turn(ORIGIN, (a, b, 0), s)[:3, :3] if s else exact(np.eye(3))
    return frame(R, [(R[0, 0] - R[1, 1]) / 10, -R[1, 0] / 5, z])


def legs_of(plate: np.ndarray) -> np.ndarray:
    """Vectors (3, 3) of the 3-RPS legs, from hinge to ball."""
    balls = [plate[:3, 3] + plate[:3, :3] @ (e / 5) for e in OUT]
    return np.array([p - mp.mpf("0.35") * e for p, e in zip(balls, OUT, strict=True)])


def three_rps(m: kic.Mechanism) -> Motion:
    """The plate's height and tilt solved for the legs' lengths to 60 digits; hinges and sliders follow."""
    height, last = mp.mpf("0.36"), [mp.mpf("0.36"), mp.mpf("0.001"), mp.mpf("0.002")]

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        def gap(*x: object) -> list:
            return [v @ v - length**2 for v, length in zip(legs_of(tilted(*x)), q, strict=True)]

        x = last[:] = mp.findroot(gap, last, tol=mp.mpf(10) ** -100)
        plate = tilted(*x)
        found = {"plate": plate @ shift([0, 0, -height])}
        drawn = mp.atan2(height, mp.mpf("-0.15"))
        for k, (v, e, t) in enumerate(zip(legs_of(plate), OUT, ALONG, strict=True)):
            hinge = turn(mp.mpf("0.35") * e, -t, mp.atan2(v[2], v @ e) - drawn)
            slide = shift(
                (mp.sqrt(v @ v) - mp.mpf("0.39")) * (height * Z - mp.mpf("0.15") * e) / mp.mpf("0.39")
            )
            found[f"cylinder{k + 1}"], found[f"piston{k + 1}"] = hinge, hinge @ slide
        return found

    return motion


def sphere_centres(q: np.ndarray) -> list[np.ndarray]:
    """Where the ends of the Delta's arms would be with all rods brought to the middle of the plate."""
    reach = [(mp.mpf("0.15") + mp.mpf("0.26") * mp.cos(a), -mp.mpf("0.26") * mp.sin(a)) for a in q]
    return [r * e + z * exact(Z) for (r, z), e in zip(reach, OUT, strict=True)]


def lower_meeting(centres: list[np.ndarray], radius: object) -> np.ndarray:
    """The lower of the two points at one distance from three others."""
    a, b, c = centres
    u, v = b - a, c - a
    n = np.cross(u, v)
    middle = np.cross((u @ u) * v - (v @ v) * u, n) / (2 * (n @ n))
    high = mp.sqrt((radius**2 - middle @ middle) / (n @ n))
    return a + middle - (high if n[2] > 0 else -high) * n


def axes_of_rod(d: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Axes (3, 3) of a rod along d in a universal joint whose first axis is t."""
    o = np.cross(t, d)
    o = o / mp.sqrt(o @ o)
    return np.array([d, o, np.cross(d, o)]).T


def delta(m: kic.Mechanism) -> Motion:
    """Three spheres meet at the plate's middle; a rod's two angles follow from its line."""
    joints = {j.name: j for j in m.joints}
    drawn = mp.atan2(mp.mpf("0.1"), mp.mpf("0.24"))

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        middle = lower_meeting(sphere_centres(q), mp.mpf("0.65"))
        found = {"plate": shift(middle - [0, 0, mp.mpf("-0.62")])}
        for k, (e, t, c) in enumerate(zip(OUT, ALONG, sphere_centres(q), strict=True)):
            arm = turn(mp.mpf("0.2") * e, t, q[k] - drawn)
            found[f"arm{k + 1}"] = arm
            # the rod's line as its arm sees it, now and as drawn
            now = arm[:3, :3].T @ (middle - c) / mp.mpf("0.65")
            before = exact([mp.mpf("-0.6") * e[0], mp.mpf("-0.6") * e[1], mp.mpf("-0.8")])
            R = axes_of_rod(now, t) @ axes_of_rod(before, t).T
            for side in "ab":
                at = exact(joints[f"U{k + 1}{side}"].at)
                found[f"rod{k + 1}{side}"] = arm @ frame(R, at - R @ at)
        return found

    return motion


def scara(m: kic.Mechanism) -> Motion:
    """Belts 30 : 45 to the elbow, 1 : 3 and 2 : 5 to the nuts; a screw of 20 mm lead."""
    start, at = mp.mpf(float(m.at().value("motor2"))), {j.name: j.at for j in m.joints}

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        one, two, three, four = q
        elbow = 2 * (two - start - one) / 3
        nut, sleeve = three / 3, 2 * four / 5
        upper = turn(ORIGIN, Z, one)
        fore = upper @ turn(at["elbow"], Z, elbow)
        lifted = shift([0, 0, mp.mpf("0.02") * (sleeve - nut) / (2 * mp.pi)])
        return {
            "upper": upper,
            "drum": turn(ORIGIN, Z, two - start),
            "forearm": fore,
            "rotor3": fore @ turn(at["motor3"], Z, three),
            "screw_nut": fore @ turn(at["nut"], Z, nut),
            "rotor4": fore @ turn(at["motor4"], Z, four),
            "spline_nut": fore @ turn(at["sleeve"], Z, sleeve),
            "spindle": fore @ turn(at["quill"], Z, sleeve) @ lifted,
        }

    return motion


def wrist(m: kic.Mechanism) -> Motion:
    """Rx Ry Rx of roll, pitch and roll, from teeth 30 : 24 and 20 : 25 : 20."""

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        one, two, three = q
        pitch = 5 * (two - one) / 4
        idler = -4 * (three - one) / 5
        roll = 5 * (idler - pitch) / 4
        yoke = turn(ORIGIN, X, one)
        housing = yoke @ turn(ORIGIN, Y, pitch)
        return {
            "yoke": yoke,
            "shaft2": turn(ORIGIN, X, two),
            "shaft3": turn(ORIGIN, X, three),
            "housing": housing,
            "idler": yoke @ turn(ORIGIN, Y, idler),
            "hand": housing @ turn(ORIGIN, X, roll),
        }

    return motion


def drawn(m: kic.Mechanism) -> np.ndarray:
    """Values of the coordinates in the reference configuration."""
    return np.array([m.at().value(q) for q in m.coordinates])


class Form(NamedTuple):
    """A closed form and the configurations of its comparison, as changes from the reference configuration."""

    motion: Callable[[kic.Mechanism], Motion]
    moves: tuple[tuple[float, ...], ...]
    places: Callable[[mp.mpf], dict[str, mp.mpc]] | None = None


def watt(angle: mp.mpf) -> dict[str, mp.mpc]:
    B, C = M("1.8") * unit(angle), 3 * unit(angle)
    F = mp.mpc("4.5", "-0.9")
    E = circles(B, "0.9", F, "2.7", -1)
    return {"A": mp.mpc(0), "B": B, "C": C, "D": E + C - B, "E": E, "F": F, "P": (2 * B + 3 * E) / 5}


def stephenson(angle: mp.mpf) -> dict[str, mp.mpc]:
    B, D, O = unit(angle) / 10, mp.mpc("0.2"), mp.mpc("-0.041", "-0.034")
    C = circles(B, "0.25", D, "0.25", 1)
    E = C + (B - C) * unit(-mp.pi / 3)
    return {"A": mp.mpc(0), "B": B, "C": C, "D": D, "E": E, "F": circles(O, "0.15", E, "0.272", -1), "O": O}


def peaucellier(angle: mp.mpf) -> dict[str, mp.mpc]:
    C = mp.mpc("0.1625")
    P = C + C * unit(angle)
    A, B = (circles(mp.mpc(0), "0.37", P, "0.15", side) for side in (1, -1))
    return {"O": mp.mpc(0), "C": C, "P": P, "A": A, "B": B, "Q": A + B - P}


def jansen(angle: mp.mpf) -> dict[str, mp.mpc]:
    P, B = mp.mpc("-0.38", "-0.078"), M("0.15") * unit(angle)
    X = circles(P, "0.415", B, "0.5", 1)
    Y = circles(P, "0.401", X, "0.558", 1)
    Z = circles(P, "0.393", B, "0.619", -1)
    W = circles(Z, "0.367", Y, "0.394", 1)
    foot = circles(Z, "0.49", W, "0.657", 1)
    return {"A": mp.mpc(0), "P": P, "B": B, "X": X, "Y": Y, "Z": Z, "W": W, "foot": foot}


def planar(places: Callable[[mp.mpf], dict[str, mp.mpc]], bodies: str, *moves: float) -> Form:
    """Return the form of a linkage from the places of its hinges, and the two that each body joins."""
    ends = [word.split(":") for word in bodies.split()]

    def frames(q: np.ndarray) -> dict[str, np.ndarray]:
        at = places(q[0])
        return {body: frame(rz(mp.arg(at[b] - at[a])), [at[a].real, at[a].imag, 0]) for body, (a, b) in ends}

    return Form(lambda m: from_drawing(frames, drawn(m)), tuple((x,) for x in moves), places)


# fmt: off
FORMS = {
    "spatial-slider-crank": Form(lambda m: from_drawing(slider_frames, drawn(m)),
        ((0.0, 0.0), (1.1, -0.7), (-2.0, 2.5))),
    "bricard": Form(lambda m: from_drawing(bricard_frames, drawn(m)), ((0.0,), (-0.4,), (0.35,))),
    "bennett": Form(bennett, ((0.0,), (1.3,), (-2.4,))),
    "sarrus": Form(sarrus, ((0.0,), (-0.6,), (0.4,))),
    "three-rps": Form(three_rps, ((0.0, 0.0, 0.0), (0.04, -0.03, 0.06), (-0.05, 0.02, 0.01))),
    "delta": Form(delta, ((0.0, 0.0, 0.0), (0.5, -0.3, 0.2), (-0.4, 0.6, 0.7))),
    "scara": Form(scara, ((0.0, 0.0, 0.0, 0.0), (0.6, -0.9, 20.0, -7.0))),
    "bevel-wrist": Form(wrist, ((0.0, 0.0, 0.0), (0.7, -0.4, 1.9))),
}
PLANAR = {
    "watt-parallel-motion": planar(watt, "beam:AC back_link:BE main_link:CD parallel_bar:ED radius_bar:EF",
        0.0, 0.3, -0.27),
    "stephenson-six-bar": planar(stephenson, "crank:AB coupler:BC rocker:DC link:EF output:OF",
        0.0, -0.5, 1.1, 2.2, 3.0, 4.6),
    "peaucellier": planar(peaucellier, "OA:OA OB:OB AP:AP BP:BP AQ:AQ BQ:BQ crank:CP",
        0.0, -1.3, -0.1, -2.0, -2.9),
    "jansen-leg": planar(jansen, "crank:AB upper:PX rod_j:BX rod_k:BZ rod_c:PZ rod_f:YW shank:ZW",
        0.0, -0.5, 0.7, 2.0, 3.0, 4.6),
}
# fmt: on
ALL = FORMS | PLANAR
cases = pytest.mark.parametrize(
    ("name", "k"), [(name, k) for name in ALL for k in range(len(ALL[name].moves))]
)


@cache
def known(name: str) -> tuple[kic.Mechanism, Motion]:
    m = kic.load(name)
    return m, remembered(ALL[name].motion(m))


@pytest.mark.slow_for(*FORMS)
@cases
def test_motion_and_dynamics_against_the_closed_form(name: str, k: int) -> None:
    """Every place, G, H, D of points and bodies, I*, P* and the load."""
    m, motion = known(name)
    q = drawn(m) + ALL[name].moves[k]
    c = m.at(q)
    found = motion(exact(q))
    assert set(found) == {b.name for b in m.bodies if b.mass}
    for body, T in found.items():
        assert np.abs(c.pose(body).as_matrix() - T.astype(float)).max() < 1e-12, body
    wanted = {p.name: tensors(place(motion, p.body, p.at), q) for p in m.points if p.body in found}
    for body in (b for b in m.bodies if b.name in found):
        line, spin = place(motion, body.name, body.reference), turning(motion, body.name)
        both = zip(tensors(line, q), tensors(spin, q, first=True), strict=True)
        wanted[body.name] = [np.concatenate(rows) for rows in both]
    for part, T in wanted.items():
        for a, b in zip(c.coefficients(part, order=3).tensors, T, strict=True):
            assert np.abs(a - b).max() < 1e-11 * max(1.0, np.abs(b).max()), part
    d = c.dynamics()
    for letter, T in zip(("I", "P", "load"), dynamics(m, motion, q), strict=True):
        # P* may vanish by symmetry, and then only round-off is left
        size = max(np.abs(T).max(), np.abs(d.I).max() if letter == "P" else 0.0)
        assert np.abs(getattr(d, letter) - T).max() <= 1e-11 * size, letter


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(name: str, batch: tuple[int, ...]) -> None:
    m = kic.load(name)
    q = drawn(m) + 0.02 * np.random.default_rng(1).normal(size=(*batch, m.dof))
    c, of = m.at(q), m.points[-1].name
    u, d = c.coefficients(of, order=3), c.dynamics()
    assert (u.D.shape, d.P.shape) == ((*batch, 3, *(m.dof,) * 3), (*batch, *(m.dof,) * 3))
    for index in np.ndindex(batch):
        alone = m.at(q[index])
        assert mismatch(u.D[index], alone.coefficients(of, order=3).D) < 1e-12
        assert mismatch(d.P[index], alone.dynamics().P) < 1e-12


@pytest.mark.parametrize("name", PLANAR)
def test_hinges_are_drawn_where_the_lengths_put_them(name: str) -> None:
    """To the last digit but one."""
    m = kic.load(name)
    places = PLANAR[name].places(mp.mpf(drawn(m)[0]))
    for joint in m.joints:
        p = places[joint.name if joint.name in places else joint.name[0]]
        assert np.abs(np.array(joint.at) - [float(p.real), float(p.imag), 0]).max() < 1e-14 * max(1, abs(p))


def test_every_model_is_closed_and_whole() -> None:
    """Loops close in the reference configuration without tolerance; every body has a mass or is massless."""
    for name in FORMS:
        m = kic.load(name)
        f = m.mobility()
        assert (f.regular, f.caveat(), m.closure_tolerance) == (True, "", 0.0)
        assert all(b.mass is not None and b.inertia is not None for b in m.bodies)
    redundant = {name: n for name in FORMS if (n := kic.load(name).mobility().redundant)}
    assert redundant == {"bricard": 1, "bennett": 3, "sarrus": 1}


# --------------------------------------------------------------------------------------- Appendix D


def near(found: object, wanted: object, limit: float = 1e-12) -> bool:
    a, b = np.asarray(found), np.asarray(wanted)
    return a.shape == b.shape and mismatch(a, b) < limit


def even(P: np.ndarray) -> np.ndarray:
    return (P + P.swapaxes(-1, -2)) / 2


THETAS = [f"theta{k}" for k in range(1, 8)]


def as_in_the_source() -> kic.Configuration:
    return kic.load("spatial-slider-crank").at({"theta1": 0.6, "theta5": 0.35})


def test_slider_crank_of_appendix_d() -> None:
    """Figure D-1's mechanism: everything in (theta1, theta5), and in (theta5, z_p)."""
    c = as_in_the_source()
    u = c.coefficients(THETAS, order=3)
    assert near(u.values, SLIDER["phi"])
    assert c.value("slide") == pytest.approx(SLIDER["zp"], abs=1e-14)
    assert c.value("P") == pytest.approx([SLIDER["x0"], SLIDER["y0"], SLIDER["zp"]], abs=1e-14)
    assert near(u.G, SLIDER["G_phi_q"])
    assert near(u.H, SLIDER["H_phi_qq"])
    z = c.coefficients("P.z")
    assert near(z.G[0], SLIDER["G_zp_q"])
    assert near(z.H[0], SLIDER["H_zp_qq"])
    d, e = c.dynamics(), c.dynamics(wrt=["theta5", "P.z"])
    assert near(d.I, SLIDER["I_qq"])
    assert near(d.P, SLIDER["P_qqq_sym"])
    assert near(e.I, SLIDER["I_yy"])
    assert near(e.P, even(np.array(SLIDER["P_yyy"])))


def test_the_procedure_of_figure_d_1_by_hand() -> None:
    """w = (θ5 | z_p, x_p, y_p, ω) of the open chain, inverted; x_p, y_p, ω held; then to (θ1, θ5)."""
    m = kic.load("spatial-slider-crank")
    chain = replace(m, joints=m.joints[:7], coordinates=None, gravity=(0, 0, 0)).at(SLIDER["phi"])
    model = chain.dynamics()
    assert near(model.I, SLIDER["I_phiphi"])
    rows = ["P.z", "P.x", "P.y", "slider.wx", "slider.wy", "slider.wz"]
    w = chain.coefficients("theta5", order=3).stack(chain.coefficients(rows, order=3))
    assert np.abs(w.G - SLIDER["G_w"]).max() < 1e-12 * np.abs(w.G).max()
    y = ["theta5", "P.z"]
    from_y = w.inverse().columns_of(y)
    d = model.transfer(from_y)
    assert near(d.I, SLIDER["I_yy"])
    assert near(even(d.P), even(np.array(SLIDER["P_yyy"])))
    to_q = from_y[["theta1", "theta5"]].inverse()
    in_q = from_y @ to_q
    assert near(in_q[THETAS].G, SLIDER["G_phi_q"])
    assert near(in_q[THETAS].H, SLIDER["H_phi_qq"])
    e = d.transfer(to_q)
    assert near(e.I, SLIDER["I_qq"])
    assert near(even(e.P), SLIDER["P_qqq_sym"])
    # one shot or by hand, to third order
    once = as_in_the_source().coefficients([*THETAS, "P.z"], order=3)
    assert near(in_q[THETAS].D, once[THETAS].D)
    assert near(to_q["P.z"].D, once["P.z"].D)


def test_passive_dof_belongs_to_every_set() -> None:
    """θ5 moves coupler and rings alone, with the moment about the coupler's line; it must be reported."""
    m = kic.load("spatial-slider-crank")
    turn_of_crank = m.path({"theta1": 0.6 + np.linspace(0, 2 * np.pi, 25), "theta5": 0.35})
    still = ["P", "slider", "crank", "theta6", "theta7", "slide"]
    u, angles = turn_of_crank.coefficients(still, order=3), turn_of_crank.coefficients(THETAS, order=3)
    for T, sum_of in zip(u.tensors, angles.tensors, strict=True):
        spun = (np.indices(T.shape[2:]) == 1).any(axis=0)
        # what cancels is as large as the rings' own motion, which nearly fold into one plane on the way
        assert np.abs(T[:, :, spun]).max() < 1e-14 * np.abs(sum_of).max()
    assert np.abs(angles["theta3"].G[..., 1]).max() > 0.5
    assert np.abs(turn_of_crank.dynamics().I[:, 1, 1] - 0.155).max() < 1e-13
    assert turn_of_crank.value("P")[-1] == pytest.approx(turn_of_crank.value("P")[0], abs=1e-12)
    for wrt in (["theta1", "theta6"], ["theta1", "P.z"], ["slide", "theta7"]):
        caught = refuses(lambda wrt=wrt: m.at().dynamics(wrt=wrt), kic.SingularError)
        assert caught.condition > 1e12
        assert caught.possible


SIX = THETAS[:6]


def test_bricard_of_appendix_d() -> None:
    c = kic.load("bricard").at({"theta6": BRICARD["theta6"]})
    u, d = c.coefficients(SIX), c.dynamics()
    assert near(u.values, BRICARD["phi"])
    assert near(u.G[:, 0], BRICARD["G_phi_y"])
    assert near(u.H[:, 0, 0], BRICARD["H_phi_yy"])
    assert near(d.I[0, 0], BRICARD["I_yy"])
    assert near(d.P[0, 0, 0], BRICARD["P_yyy"])


def opened_bricard(off: float = 0.0, at: float = BRICARD["theta6"]) -> kic.Configuration:
    """The chain of six joints to link 61, which is ground when closed; E where it closes, or off the axis."""
    m = kic.load("bricard")
    phi = m.at({"theta6": at}).coefficients(SIX, order=1).values
    last = kic.Body("link61", mass=0.0, com=(0, 0, 0), inertia=(0, 0, 0))
    joints = [*m.joints[:5], replace(m.joints[5], bodies=("link56", "link61"))]
    point = kic.Point("E", "link61", (off, 0.3 * off, 0))
    return replace(m, bodies=[*m.bodies, last], joints=joints, points=[point], coordinates=None).at(phi)


ERRORS = ["E.x", "E.y", "E.z", "link61.wx", "link61.wy", "link61.wz"]


def test_rows_one_to_five_of_d_2_are_singular() -> None:
    """With P at the closing point, on s¹, the first joint moves none of the rows, and kic raises an error."""
    chain, off = opened_bricard(), opened_bricard(0.7)
    e = chain.coefficients(ERRORS)
    for rows, least in BRICARD["smallest_sv_of_5x5_minors_rows"].items():
        kept = np.array(json.loads(rows)) - 1
        assert np.linalg.svd(e.G[kept, :5])[1][-1] == pytest.approx(least, abs=1e-13)
    assert np.abs(e.G[:5, 0]).max() < 1e-14
    for closed in (chain, *(opened_bricard(at=angle) for angle in (-1.7, -0.4, 0.3, 2.0))):
        w = closed.coefficients("theta6").stack(closed.coefficients(ERRORS[:5]))
        refuses(lambda w=w: w.inverse(), kic.SingularError, columns=("theta1",))
    # it is the closing that makes it so: elsewhere the open chain is regular, and so is a point off the axis
    apart = chain._model.description.at(np.random.default_rng(0).normal(size=6))
    for c in (apart, off):
        assert c.coefficients("theta6").stack(c.coefficients(ERRORS[:5])).condition() < 1e3


@pytest.mark.parametrize("off", [0.0, 0.7])
@pytest.mark.parametrize("left", range(6))
def test_any_five_independent_rows_give_the_bricard(off: float, left: int) -> None:
    """(D-2) with another row left out, or P off the axis: y = θ6 and the rest held."""
    chain = opened_bricard(off)
    rows = ERRORS[:left] + ERRORS[left + 1 :]
    w = chain.coefficients("theta6", order=3).stack(chain.coefficients(rows, order=3))
    if not off and left == 5:
        assert w.condition() > 1e12
        return
    from_y = w.inverse().columns_of("theta6")
    assert near(from_y[SIX].G[:, 0], BRICARD["G_phi_y"])
    assert near(from_y[SIX].H[:, 0, 0], BRICARD["H_phi_yy"])
    d = chain.dynamics().transfer(from_y)
    assert near(d.I[0, 0], BRICARD["I_yy"])
    assert near(d.P[0, 0, 0], BRICARD["P_yyy"])
    once = kic.load("bricard").at({"theta6": BRICARD["theta6"]}).coefficients(SIX, order=3)
    assert near(from_y[SIX].D, once.D)


# --------------------------------------------------------------------------------------- linkages


def other_of(a: np.ndarray) -> np.ndarray:
    """The same in floats, near 120° without cancellation."""
    return 2 * np.arcsin(np.sqrt(np.clip((1 + 2 * np.cos(a)) / (2 + 2 * np.cos(a)), 0, 1)))


EDGE = 2 * np.pi / 3


def test_bricard_along_its_whole_range() -> None:
    """θ6 from one turning point to the other, θ1 likewise: all but the last millionth of a radian."""
    m = kic.load("bricard")
    for drive, follow in (("theta6", "theta1"), ("theta1", "theta6")):
        for end in (EDGE - 1e-6, -EDGE + 1e-6):
            c = m.path({drive: np.linspace(np.pi / 2, end, 60)})
            a, b = c.value(drive), c.value(follow)
            rate = -np.sin(a) * (1 + np.cos(b)) / (np.sin(b) * (1 + np.cos(a)))
            # what a rounding of the drive is worth
            assert (np.abs(b - other_of(a)) < 1e-12 + 1e-14 * np.abs(rate)).all()
            u, limit = c.coefficients(SIX, order=3, wrt=drive), 1e-12 * np.maximum(1, rate**2)
            same = np.arange(6) % 2 == SIX.index(drive) % 2
            assert (np.abs(u.G[..., 0] - np.where(same, 1, rate[:, None])) < limit[:, None]).all()
            # a rounding of the drive turns the other angle by its rate, and the rate by its square
            for k in (1, 15, 30, 58, 59):
                exactly = tensors(lambda q: exact([other_angle(q[0])]), a[k : k + 1])
                for T, right in zip(u[follow].tensors, exactly, strict=True):
                    assert abs(T[k].item() - right.item()) < limit[k] * max(1, abs(right.item()))


@pytest.mark.slow
def test_bricard_at_and_past_its_turning_point() -> None:
    """There θ6 stands and the others move: it is refused with its condition; θ1 drives on, through it."""
    m = kic.load("bricard")
    c = m.path({"theta1": np.linspace(np.pi / 2, -1.9, 40)})
    assert c.value("theta6").max() < EDGE + 4e-15
    assert c.value("theta6") == pytest.approx(other_of(c.value("theta1")), abs=1e-12)
    there = m.at({"theta1": 0.0})
    assert there.value("theta6") == pytest.approx(EDGE, abs=4e-15)
    u = there.coefficients("theta6", order=3, wrt="theta1")
    assert (abs(u.G.item()), abs(u.D.item())) == pytest.approx((0, 0), abs=1e-14)
    assert u.H.item() == pytest.approx(-np.sqrt(3) / 6, abs=1e-14)
    for question in (there.dynamics, lambda: there.coefficients("P")):
        caught = refuses(question, kic.SingularError, coordinates=("theta6",))
        assert caught.condition > 1e12
        assert {"theta1", "theta3"} <= set(caught.possible)
    # the number nearest to 120° is a double root, known to half the digits: its coefficients are not known
    nearest = m.at({"theta6": EDGE})
    assert 0 < nearest.value("theta1") < 1e-6
    caught = refuses(lambda: nearest.coefficients("theta1"), kic.SingularError)
    assert caught.estimate > 1e-4
    refuses(lambda: m.at({"theta6": EDGE + 1e-3}), kic.ConfigurationError, failed=[()])
    beyond = m.at({"theta1": -0.5})
    assert beyond.dynamics().I[0, 0] > 0
    assert beyond.coefficients("theta1").G[0, 0] > 0  # the other branch: before, it was negative
    assert m.at({"theta1": 0.5}).coefficients("theta1").G[0, 0] < 0


def test_bennett_turns_all_the_way_round() -> None:
    m = kic.load("bennett")
    A, B = (float(m.at().value(q)) for q in "AB")
    c = m.path({"A": A + np.linspace(0, 2 * np.pi, 200)})
    product = np.tan(A / 2) * np.tan(B / 2)
    a, b = c.value("A"), c.value("B")
    wanted = 2 * np.arctan2(product * np.cos(a / 2), np.sin(a / 2))
    assert np.abs(np.sin((b - wanted) / 2)).max() < 1e-13
    for one, two in (("A", "C"), ("B", "D")):
        assert np.abs(np.sin((c.value(one) - c.value(two)) / 2)).max() < 1e-13
    u = c.coefficients(["A", "B", "C", "D"], order=3)
    rate = -np.sin(b) / np.sin(a)
    assert (np.abs(u.G[:, 1, 0] - rate) < 1e-12 * np.maximum(1, np.abs(rate)) / np.abs(np.sin(a))).all()
    assert np.abs(u.G[:, 2, 0] - 1).max() < 1e-12
    for T in (u.H, u.D):
        assert np.abs(T[:, 2]).max() < 1e-11 * np.abs(T).max()


def test_bennett_needs_no_tolerance_as_drawn_and_one_when_rounded() -> None:
    """The same linkage, turned in the world and typed with five digits, is rigid."""
    m = kic.load("bennett")
    R = turn(ORIGIN, (1, 2, 3), mp.mpf(1))[:3, :3].astype(float)

    def typed(digits: int, tolerance: float = 0.0) -> kic.Mechanism:
        def turned(v: object) -> tuple[float, ...]:
            return tuple(np.round(R @ np.array(v), digits).tolist())

        joints = [replace(j, at=turned(j.at), axis=turned(j.axis)) for j in m.joints]
        return replace(m, joints=joints, closure_tolerance=tolerance)

    assert (typed(16).dof, typed(16).mobility().redundant) == (1, 3)
    assert typed(5).dof == 0
    refuses(lambda: typed(5).at({"A": 1.0}), mobility=0, count=1)
    mended = typed(5, 1e-3)
    assert (mended.dof, mended.mobility().redundant) == (1, 3)
    assert mended.at({"A": 1.0}).value("B") == pytest.approx(m.at({"A": 1.0}).value("B"), abs=1e-3)


def test_sarrus_guides_a_straight_line() -> None:
    m = kic.load("sarrus")
    c = m.path({"A1": np.linspace(1.2, 0.35, 30)})
    a = c.value("A1")
    line = np.stack([0 * a - 0.2, 0 * a - 0.2, np.sin(a) / 2], axis=-1)
    assert np.abs(c.value("corner") - line).max() < 1e-13
    u = c.coefficients(["plate"], order=3)
    for T in u.tensors:
        assert np.abs(np.delete(T, 2, axis=1)).max() < 1e-11
    wanted = np.stack([np.cos(a), -np.sin(a), -np.cos(a)]) / 2
    for T, w in zip(u.tensors, wanted, strict=True):
        assert np.abs(T[:, 2].reshape(-1) - w).max() < 1e-12
    at_height = m.at({"plate.z": 0.3})
    assert at_height.value("A1") == pytest.approx(np.arcsin(0.6), abs=1e-13)
    assert at_height.coefficients("A1", wrt="plate.z").G.item() == pytest.approx(2 / 0.8, abs=1e-12)


@pytest.mark.parametrize(("angle", "freedoms"), [(np.pi / 2, 2), (0.0, 3)])
def test_sarrus_stretched_or_folded_raises(angle: float, freedoms: int) -> None:
    """Legs could buckle: more degrees of freedom than coordinates; nearby, orders are lost one by one."""
    m = kic.load("sarrus")
    there = m.at({"A1": angle})
    for question in (there.dynamics, lambda: there.coefficients("plate")):
        refuses(question, kic.SingularError, coordinates=("A1",), dof=freedoms)
    close = m.at({"A1": abs(angle - 1e-5)})
    rate = close.coefficients("plate.z", order=1).G.item()
    assert rate == pytest.approx(np.cos(angle - 1e-5) / 2, abs=1e-5)
    refuses(lambda: close.coefficients("plate.z", order=2), kic.SingularError, order=2)
    close = m.at({"A1": abs(angle - 1e-6)})
    caught = refuses(lambda: close.coefficients("plate.z", order=1), kic.SingularError)
    assert caught.condition > 1e5
    assert caught.estimate > 1e-4


# --------------------------------------------------------------------------------------- parallel robots


def test_three_rps_tilts_and_shifts() -> None:
    """Leg lengths from height and tilt; and the plate that kic finds for them, with its parasitic motion."""
    m, rng = kic.load("three-rps"), np.random.default_rng(2)
    z, s, f = rng.uniform(0.3, 0.45, 40), rng.uniform(0, 0.5, 40), rng.uniform(-np.pi, np.pi, 40)
    shifted = 0.1 * (1 - np.cos(s)) * np.array([np.cos(2 * f), -np.sin(2 * f)])
    plates = [tilted(*map(mp.mpf, x)) for x in zip(z, s * np.cos(f), s * np.sin(f), strict=True)]
    lengths = [[mp.sqrt(v @ v) for v in legs_of(T)] for T in plates]
    c = m.at(np.array(lengths, dtype=float))
    assert np.abs(c.value("plate.x") - shifted[0]).max() < 1e-12
    assert np.abs(c.value("plate.y") - shifted[1]).max() < 1e-12
    assert np.abs(c.value("plate.z") - z).max() < 1e-12
    turned = c.pose("plate").rotation.as_rotvec()
    assert np.abs(turned - np.stack([s * np.cos(f), s * np.sin(f), 0 * s], axis=-1)).max() < 1e-11
    # the other way, from the hinges' angles: the same lengths
    hinges = m.at({f"R{k}": c.value(f"R{k}") for k in (1, 2, 3)}, near=c)
    for k in range(3):
        assert np.abs(hinges.value(f"L{k + 1}") - c.value(f"L{k + 1}")).max() < 1e-11


def test_parasitic_motion_is_of_second_order() -> None:
    """Level, x and y do not move with the tilt; their curvature is r/2, in x as the saddle, in y mixed."""
    level = kic.load("three-rps").at()
    u = level.coefficients(["plate.x", "plate.y"], wrt=["plate.z", "plate.wx", "plate.wy"])
    assert np.abs(u.G).max() < 1e-14
    saddle, mixed = np.diag([0, 0.1, -0.1]), np.zeros((3, 3))
    mixed[1, 2] = mixed[2, 1] = -0.1
    assert np.abs(u.H - [saddle, mixed]).max() < 1e-13


def arm_angles(P: np.ndarray) -> np.ndarray:
    """Inverse of the Delta: 0.26 (cos a, −sin a) from the hinge to within a rod of the plate, knees out."""
    found = []
    for e, t in zip(OUT, ALONG, strict=True):
        e, t = e.astype(float), t.astype(float)
        across, out, up = P @ t, P @ e - 0.15, P[..., 2]
        square = 0.65**2 - across**2  # seen along the hinge
        reach = out**2 + up**2
        inner = (reach + 0.26**2 - square) / (2 * 0.26 * np.sqrt(reach))
        found.append(-(np.arctan2(up, out) + np.arccos(inner)))
    return np.stack(found, axis=-1)


@pytest.mark.slow
def test_delta_over_its_workspace() -> None:
    """Angles to plate by three spheres, plate to angles leg by leg; the plate never turns."""
    m, rng = kic.load("delta"), np.random.default_rng(4)
    P = np.stack([*rng.uniform(-0.25, 0.25, (2, 60)), rng.uniform(-0.75, -0.5, 60)], axis=-1)
    angles = (arm_angles(P) + np.pi) % (2 * np.pi) - np.pi
    assert angles.min() < -0.5
    assert angles.max() > 1.0
    c = m.at(angles)
    assert np.abs(c.value("plate.x") - P[:, 0]).max() < 1e-12
    assert np.abs(c.value("gripper") - P + [0, 0, 0.08]).max() < 1e-12
    for q, p in list(zip(angles, P, strict=True))[:10]:
        direct = lower_meeting(sphere_centres(exact(q)), mp.mpf("0.65")).astype(float)
        assert np.abs(direct - p).max() < 1e-14
    assert c.pose("plate").rotation.magnitude().max() < 1e-12
    u = c.coefficients(["plate.wx", "plate.wy", "plate.wz"], order=3)
    size = np.abs(c.coefficients("gripper", order=3).D).max()
    assert max(np.abs(T).max() for T in u.tensors) < 1e-11 * max(1, size)
    back_to = m.at({"gripper": P - [0, 0, 0.08]})
    for k in range(3):
        assert np.abs(back_to.value(f"A{k + 1}") - angles[:, k]).max() < 1e-11
    refuses(lambda: m.at({"gripper": (0.0, 0.0, -1.1)}), kic.ConfigurationError)


def delta_with(m: kic.Mechanism, universal: str) -> kic.Mechanism:
    """The Delta with its rods' universal joints drawn as balls, or its rods as distances."""
    U = [j for j in m.joints if j.type == "universal"]
    if universal == "balls":
        swap = {j.name: kic.Joint(j.name, "spherical", j.bodies, j.at) for j in U}
        return replace(m, joints=[swap.get(j.name, j) for j in m.joints], coordinates=None)
    ends = {j.name[1:]: j for j in m.joints if j.type == "spherical"}
    points, rods = list(m.points), []
    for j in U:
        leg = j.name[1:]
        points += [kic.Point(f"in{leg}", j.bodies[0], j.at), kic.Point(f"out{leg}", "plate", ends[leg].at)]
        rods.append(kic.Distance(f"line{leg}", (f"in{leg}", f"out{leg}"), fixed=True))
    arms = [j for j in m.joints if j.type == "revolute"]
    hold = kic.Joint("hold", "free", ("ground", "plate"), (0, 0, -0.62))
    bodies = [b for b in m.bodies if not b.name.startswith("rod")]
    return replace(m, bodies=bodies, joints=[*arms, hold], points=points, distances=rods)


def test_other_drawings_of_the_delta() -> None:
    """Balls at both ends leave six spins; rods as distances are the same robot with massless rods."""
    m = kic.load("delta")
    assert delta_with(m, "balls").dof == 9
    plain = delta_with(m, "distances")
    assert plain.dof == 3
    bodies = [replace(b, mass=0.0, inertia=(0, 0, 0)) if "rod" in b.name else b for b in m.bodies]
    bare = replace(m, bodies=bodies)
    q = [0.9, 0.1, 0.6]
    a, b, c = bare.at(q), plain.at(q), m.at(q)
    for letter in "GHD":
        u, v = (getattr(x.coefficients("gripper", order=3), letter) for x in (a, b))
        assert mismatch(u, v) < 1e-12
    assert near(a.dynamics().I, b.dynamics().I)
    assert near(a.dynamics().P, b.dynamics().P)
    # what leaving the rods out would cost
    assert 0.1 < np.abs(c.dynamics().I - b.dynamics().I).max() / np.abs(c.dynamics().I).max() < 0.5


# --------------------------------------------------------------------------------------- couplings


def by_hand(name: str, B: np.ndarray, joints: list[str]) -> None:
    """φ = B q for ever: dynamics with the couplings taken off, transferred by hand, are the model's own."""
    m = kic.load(name)
    free = replace(m, couplings=(), coordinates=None)
    for move in FORMS[name].moves:
        c = m.at(drawn(m) + move)
        u = c.coefficients(joints, order=3)
        assert np.abs(u.G - B).max() < 1e-14 * np.abs(B).max()
        assert not u.H.any()
        assert not u.D.any()
        start = np.array([m.at().value(q) for q in joints])
        assert np.abs(u.values - start - B @ move).max() < 1e-12
        d = free.at(u.values[[joints.index(q) for q in free.coordinates]]).dynamics()
        order = [d.coordinates.index(q) for q in joints]
        I, P, load = d.I[np.ix_(order, order)], d.P[np.ix_(order, order, order)], d.load[order]
        e = c.dynamics()
        assert near(e.I, B.T @ I @ B)
        assert near(e.P, np.einsum("ikl,ix,ky,lz->xyz", P, B, B, B))
        assert near(e.load, B.T @ load)


@pytest.mark.filterwarnings("ignore::kic.DegreesWarning")  # shafts turn many times
def test_scara_in_its_motors() -> None:
    """Rows by hand: belts 30 : 45, 12 : 36 and 12 : 30, a screw of 20 mm; then a planar arm's tip."""
    p = 0.02 / (2 * np.pi)
    joints = ["motor1", "motor2", "elbow", "motor3", "nut", "motor4", "sleeve", "quill.1", "quill.2"]
    one, two, three, four = np.eye(4)
    B = np.array([one, two, 2 / 3 * (two - one), three, three / 3, four, 0.4 * four, 0.4 * four,
                  p * (0.4 * four - three / 3)])  # fmt: skip
    by_hand("scara", B, joints)
    m = kic.load("scara")
    rng = np.random.default_rng(5)
    q = rng.uniform(-3, 3, (20, 4)) * [1, 1, 10, 10]
    c = m.at(q)
    fore = q[:, 0] + 2 / 3 * (q[:, 1] - q[:, 0])
    flat = 0.35 * np.exp(1j * q[:, 0]) + 0.25 * np.exp(1j * fore)
    tip = np.stack([flat.real, flat.imag, p * (0.4 * q[:, 3] - q[:, 2] / 3) - 0.15], axis=-1)
    assert np.abs(c.value("tip") - tip).max() < 1e-13
    heading = c.pose("spindle").rotation.as_matrix()[:, :2, 0]
    turned = fore + 0.4 * q[:, 3] - np.pi / 2  # the drawing has the forearm along y
    assert np.abs(heading - np.stack([np.cos(turned), np.sin(turned)], axis=-1)).max() < 1e-12
    # both nuts alike only turn the quill; the weight is felt by motors 3 and 4 alone
    rate = c.coefficients(["quill.1", "quill.2"]).G @ [0, 0, 3, 2.5]
    assert np.abs(rate - [1, 0]).max() < 1e-14
    assert np.abs(c.dynamics().load - [0, 0, 9.81 * p / 3, -9.81 * 0.4 * p]).max() < 1e-14


GEARS = np.array([[1, 0, 0], [-1.25, 1.25, 0], [0.8, 0, -0.8], [2.5625, -1.5625, -1.0]])


def test_wrist_in_its_drives() -> None:
    """Teeth 30 : 24 and 20 : 25 : 20, each pair as seen from the body that carries both."""
    B = np.vstack([GEARS[:1], [[0, 1, 0], [0, 0, 1]], GEARS[1:]])
    by_hand("bevel-wrist", B, ["drive1", "drive2", "drive3", "pitch", "idler_turn", "roll"])
    m = kic.load("bevel-wrist")
    q = np.random.default_rng(6).uniform(-3, 3, (20, 3))
    c = m.at(q)
    one, pitch, _, roll = GEARS @ q.T
    for k, T in enumerate(c.pose("hand").rotation.as_matrix()):
        angles = ((X, one), (Y, pitch), (X, roll))
        R = [turn(ORIGIN, axis, mp.mpf(a[k]))[:3, :3].astype(float) for axis, a in angles]
        assert np.abs(T - R[0] @ R[1] @ R[2]).max() < 1e-13
    # all three alike: the wrist turns as one piece
    assert np.abs(GEARS @ [1, 1, 1] - [1, 0, 0, 0]).max() == 0
    # the wrist with motors in its joints
    d = c.dynamics(wrt=["drive1", "pitch", "roll"])
    G = GEARS[[0, 1, 3]]
    assert mismatch(G.T @ d.I @ G, c.dynamics().I) < 1e-12


PITCH_POINTS = {
    "shaft2 housing": (-0.024, 0.03, 0.0),
    "shaft3 idler": (-0.025, -0.02, 0.0),
    "idler hand": (0.025, -0.02, 0.0),
}


@pytest.mark.parametrize("pair", PITCH_POINTS)
def test_gears_roll_on_one_another(pair: str) -> None:
    """At the pitch point, where it is at this moment, both gears have the same velocity."""
    m, at = kic.load("bevel-wrist"), np.array(PITCH_POINTS[pair])
    carrier = "housing" if "hand" in pair else "yoke"
    c = m.at([0.7, -0.4, 1.9])
    now = c.pose(carrier).apply(at)
    one, two = pair.split()
    points = [
        kic.Point(side, body, tuple(c.pose(body).inv().apply(now)))
        for side, body in (("here", one), ("there", two))
    ]
    e = replace(m, points=points).at([0.7, -0.4, 1.9])
    assert np.abs(e.value("here") - now).max() < 1e-14
    assert np.abs(e.coefficients("here").G - e.coefficients("there").G).max() < 1e-14
    assert np.abs(e.coefficients("here").G).max() > 1e-2


def test_the_same_belt_from_its_carrier() -> None:
    """A belt drawn where it runs, in the upper arm, with the motor's joint closing a loop: the same robot."""
    m = kic.load("scara")
    pulley = kic.Joint("pulley", "revolute", ("upper", "drum"), (0, 0, 0), (0, 0, 1))
    belt = kic.Coupling("belt2", ("pulley", "elbow"), belt=(30, 45))
    looped = replace(m, joints=[*m.joints, pulley], couplings=[belt, *m.couplings[1:]])
    assert (looped.dof, looped.mobility().cuts) == (4, ("motor2",))
    q = drawn(m) + np.array([0.6, -0.9, 2.0, -1.0])
    a, b = m.at(q), looped.at(q)
    assert near(b.dynamics().I, a.dynamics().I)
    assert near(b.dynamics().P, a.dynamics().P)
    assert near(b.coefficients("finger", order=3).D, a.coefficients("finger", order=3).D)
