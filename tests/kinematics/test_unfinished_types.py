"""Types that are in the tables, but not in all places, raise errors with the place that lacks them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from raising import raises

import kic
from kic.description import contacts, joint_types
from kic.kinematics import tree as trees
from kic.kinematics.closure_rows import closure_items, contact_items, cut_joint_part, facing_items
from kic.mechanism.assembly import ClosingJoint, _values_between

Z = (0.0, 0.0, 1.0)


@pytest.fixture(autouse=True)
def half_made(monkeypatch) -> None:
    """Add types to the tables alone."""
    monkeypatch.setitem(joint_types.JOINT_COORDINATES, "screw", "r")
    monkeypatch.setitem(joint_types.JOINT_DOF, "screw", 1)
    monkeypatch.setitem(joint_types.JOINT_AXES, "screw", ("axis",))
    monkeypatch.setitem(contacts.CONTACT_ROWS, "rolling", ("n", "roll"))
    monkeypatch.setitem(contacts.CONTACT_ROWS, "turning", ("n", "s"))


def mechanism(second: str) -> kic.Mechanism:
    """Return a link on a hinge, and another on a joint of some type."""
    return kic.Mechanism(
        "links",
        [kic.Body("a"), kic.Body("b")],
        [
            kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=Z),
            kic.Joint("B", second, ("a", "b"), at=(1, 0, 0), axis=Z),
        ],
    )


@pytest.mark.parametrize(
    "place",
    [
        closure_items,
        facing_items,
        cut_joint_part,
        lambda _, joint: trees.steps(joint, backwards=False),
        lambda _, joint: _values_between(joint, ClosingJoint("B", "screw"), np.eye(4)),
    ],
)
def test_every_place_raises(place) -> None:
    tree = mechanism("revolute")._model.tree
    joint = kic.Joint("B", "screw", ("a", "b"), at=(1, 0, 0), axis=Z)
    with raises(kic.ModelError, name="B", got="screw") as caught:
        place(tree, joint)
    assert "joint_types.py" in str(caught.value)
    assert caught.value.where in str(caught.value)


@pytest.mark.parametrize(
    "question", [kic.Mechanism.at, kic.to_urdf, kic.to_mjcf, kic.Mechanism.summary], ids=lambda x: x.__name__
)
def test_no_question_leaves_the_joint_free(question: Callable[[kic.Mechanism], object]) -> None:
    m = mechanism("screw")
    with raises(kic.ModelError, name="B", got="screw"):
        question(m)


def test_a_loop_is_not_left_open(monkeypatch) -> None:
    """With columns of the tree alone, the loop has no rows."""
    finished = trees.steps

    def steps(joint: kic.Joint, backwards: bool) -> list[trees.Step]:
        hinge = kic.Joint(joint.name, "revolute", joint.bodies, at=joint.at, axis=joint.axis)
        return finished(hinge if joint.type == "screw" else joint, backwards)

    monkeypatch.setattr(trees, "steps", steps)
    m = mechanism("screw")
    last = kic.Joint("C", "screw", ("b", "ground"), at=(1, 1, 0), axis=Z)
    closed = m.replace(joints=(*m.joints, last), coordinates=["A"])
    with raises(kic.ModelError, got="screw"):
        closed.at([0.1])


def test_rows_of_contacts() -> None:
    tree = mechanism("revolute")._model.tree
    rolling, turning = (
        kic.Contact("K", kind, ("ground", "b"), at=(1, 0, 0), normal=Z) for kind in ("rolling", "turning")
    )
    with raises(kic.ModelError, name="K", got="rolling"):
        contact_items(tree, rolling)
    assert len(contact_items(tree, turning)) == 2
