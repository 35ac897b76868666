"""Every kind of row is built by one constructor, and the masks of kinds agree with values and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import kic
from kic.kernels import layout as lay
from kic.kinematics import items as kinds_of
from kic.kinematics.items import Between, Item, summed
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.tree import Tree

Z = np.array([0.0, 0.0, 1.0])
STATES = np.array([[0.3, 0.5, 0.2], [-0.4, 0.9, 1.1]])


def chain(size: float) -> Tree:
    """Return the tree of three links in a plane, on hinges at distances in proportion to a size."""
    names = ("ground", "a", "b", "c")
    joints = [
        kic.Joint(body.upper(), "revolute", (names[k], body), at=(size * k, 0.2 * size * k, 0), axis=tuple(Z))
        for k, body in enumerate(names[1:])
    ]
    return kic.Mechanism("chain", [kic.Body(body) for body in names[1:]], joints)._model.tree


def all_items(tree: Tree, size: float) -> list[Item]:
    """Return items of every kind, with points at distances in proportion to a size."""
    w = np.ones(3) / np.sqrt(3)
    at = (0.4 * size, 0.3 * size, 0.1 * size)
    between = Between(tree, ("a", "c"), at)
    frame = tree.frame["c"]
    return [
        *summed([Item.weighted_point(0, at, 0.3), Item.weighted_point(frame, at, 0.7)]),
        Item.point_on(tree, "c", at),
        Item.direction(frame, w),
        Item.angular_velocity(frame),
        Item.coordinate(1),
        Item.plane_angle(frame, Z, 0.1),
        Item.distance(Item.point_on(tree, "a", at), Item.point_on(tree, "c", (size, 0.0, 0.0))),
        between.coincide(),
        between.distance_along(w),
        between.rate(w),
        *summed([Item.coordinate_term(0, 2.0, 0.1), Item.coordinate_term(2, -1.0, 0.0)]),
        between.cosine(np.eye(3)[1], w),
        between.cosine(np.eye(3)[2] + np.eye(3)[0] / 2, w),
        between.angle(),
        between.cosine(np.eye(3)[0], w),
        between.arcsine(),
        *Item.distance_from_line(
            tree, *(Item.point_on(tree, name, at) for name in ("c", "a")), *np.eye(3)[:2]
        ),
    ]


@pytest.fixture(scope="module")
def answers() -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Return the kind of each row, then values, G and H for two sizes."""
    found = []
    for size in (1.0, 2.0):
        tree = chain(size)
        rows = plain_rows(tree, all_items(tree, size))
        found.append(output_query(tree, rows, 2).arrays(STATES))
    return rows.kinds[rows.item_of], *found


def test_every_kind_is_built() -> None:
    tree = chain(1.0)
    kinds = {item.kind for item in all_items(tree, 1.0)}
    assert kinds == set(range(lay.WEIGHTED_POINT, lay.NORM + 1))


def test_lengths_are_the_rows_in_proportion_to_the_size(answers) -> None:
    kinds, (values, *_), (doubled, *_) = answers
    lengths = kinds_of.LENGTH[kinds]
    np.testing.assert_allclose(doubled, np.where(lengths, 2, 1) * values, atol=1e-13)
    # one is out of the plane
    assert (np.abs(values[:, lengths]).max(axis=0) > 1e-3).sum() >= lengths.sum() - 1


def test_linear_rows_are_those_without_second_order(answers) -> None:
    kinds, (_, _, H), _ = answers
    bent = np.zeros(lay.NORM + 2, dtype=bool)
    bent[kinds[np.abs(H).max(axis=(0, 2, 3)) > 1e-12]] = True
    straight = kinds_of.LINEAR | kinds_of.RATE  # hinges that stay parallel
    np.testing.assert_array_equal(bent[kinds], ~straight[kinds])


def test_rates_are_the_rows_without_values(answers) -> None:
    kinds, (values, *_), _ = answers
    for kind in (*range(lay.WEIGHTED_POINT, lay.ANGLE), lay.NORM):  # others have values outside kernels
        assert values[:, kinds == kind].any() != kinds_of.RATE[kind]


def test_cosines_have_at_most_the_length_of_their_directions(answers) -> None:
    kinds, (values, *_), _ = answers
    assert np.abs(values[:, kinds_of.COSINE[kinds]]).max() < 1.2
    assert not (kinds_of.COSINE & (kinds_of.LENGTH | kinds_of.LINEAR | kinds_of.RATE)).any()


def test_sums_have_the_rows_of_their_last_term() -> None:
    tree = chain(1.0)
    single = [Item.coordinate_term(0, 2.0, 0.1), Item.coordinate_term(2, -1.0, 0.0)]
    rows = plain_rows(tree, [*summed(single), *single])
    values = output_query(tree, rows, 1).arrays(STATES)[0]
    np.testing.assert_allclose(values[:, 0], values[:, 1] + values[:, 2], atol=1e-14)
    assert (kinds_of.WEIGHTED & kinds_of.OF_COLUMN)[rows.kinds].all()
