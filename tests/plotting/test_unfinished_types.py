"""A type of joint without a symbol is drawn as a dot, with one warning."""

from __future__ import annotations

import warnings

import pytest

import kic
from kic.description import joint_types
from kic.kinematics import tree as trees
from kic.plotting import symbols


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
def test_a_dot_and_one_warning(monkeypatch, axis) -> None:
    """In planar and in spatial pictures, also of several joints."""
    monkeypatch.setitem(joint_types.JOINT_COORDINATES, "screw", "r")
    monkeypatch.setitem(joint_types.JOINT_DOF, "screw", 1)
    monkeypatch.setitem(joint_types.JOINT_AXES, "screw", ("axis",))
    finished = trees.steps

    def steps(joint: kic.Joint, backwards: bool) -> list[trees.Step]:
        hinge = kic.Joint(joint.name, "revolute", joint.bodies, at=joint.at, axis=joint.axis)
        return finished(hinge, backwards)

    monkeypatch.setattr(trees, "steps", steps)
    symbols._warn_of_dots.cache_clear()
    bodies, places = ("ground", "a", "b", "c"), [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    m = kic.Mechanism(
        "screws",
        [kic.Body(name) for name in bodies[1:]],
        [
            kic.Joint(f"J{k}", kind, bodies[k : k + 2], at=at, axis=axis if k else (0, 0, 1))
            for k, (kind, at) in enumerate(zip(("revolute", "screw", "screw"), places, strict=True))
        ],
        points=[kic.Point("tip", "c", at=(3, 0, 0))],
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        shapes = [*m.at().draw().shapes, *m.at().draw().shapes]
    assert [w.category for w in caught] == [UserWarning]
    assert "'screw'" in str(caught[0].message)
    assert {shape.of for shape in shapes} >= {"revolute", "screw"}
