"""Shipped mechanisms in space, each against the closed form of its motion; Freeman's Appendix D by hand."""

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
    Motion,
    back,
    dynamics,
    frame,
    place,
    remembered,
    shift,
    tensors,
    turn,
    turning,
)
from sampling import mismatch

import kic

PAGES = json.loads((Path(__file__).parent / "data" / "appendix_d.json").read_text(encoding="utf-8"))
SLIDER, BRICARD = PAGES["slider_crank"], PAGES["bricard_trihedral_equal"]
X, Y, Z = np.eye(3)
ORIGIN = (0, 0, 0)
QUARTER = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])  # about z
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


def bricard_frames(q: np.ndarray) -> dict[str, np.ndarray]:
    """Links of the source's rows, a = 1 and α = ±90°, θ1 = θ3 = θ5 from θ6."""
    other = mp.acos(-mp.cos(q[0]) / (1 + mp.cos(q[0])))
    T, frames = exact(np.eye(4)), {}
    for k, angle in enumerate((other, q[0]) * 3):
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
    """Both legs fold alike, leaves of 0.25, the plate goes up by 0.5 sin A1."""
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
    height = mp.mpf("0.36")

    def motion(q: np.ndarray) -> dict[str, np.ndarray]:
        def gap(*x: object) -> list:
            return [v @ v - length**2 for v, length in zip(legs_of(tilted(*x)), q, strict=True)]

        x = mp.findroot(gap, (height, mp.mpf("0.001"), mp.mpf("0.002")), tol=mp.mpf(10) ** -100)
        plate = tilted(*x)
        found = {"plate": plate @ shift([0, 0, -height])}
        drawn = mp.atan2(height, mp.mpf("-0.15"))
        for k, (v, e, t) in enumerate(zip(legs_of(plate), OUT, ALONG, strict=True)):
            hinge = turn(mp.mpf("0.35") * e, -t, mp.atan2(v[2], v @ e) - drawn)
            slide = shift((mp.sqrt(v @ v) - mp.mpf("0.39")) * (height * Z - mp.mpf("0.15") * e) / mp.mpf("0.39"))
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
    """What the coordinates read in the drawing."""
    return np.array([m.at().value(q) for q in m.coordinate_names])


class Form(NamedTuple):
    """A closed form and the postures at which it is compared, as changes from the drawing."""

    motion: Callable[[kic.Mechanism], Motion]
    moves: tuple[tuple[float, ...], ...]


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
# fmt: on
cases = pytest.mark.parametrize(("name", "k"), [(name, k) for name in FORMS for k in range(len(FORMS[name].moves))])
