"""Mistakes of first steps: one message repairs each."""

import warnings

import numpy as np
import pytest
from raising import raises

import kic


def loop(**given):
    joints = [
        kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), (0, 0, 1)),
        kic.Joint("B", "revolute", ("crank", "coupler"), (0, 1, 0), (0, 0, 1)),
        kic.Joint("C", "revolute", ("coupler", "rocker"), (2, 2, 0), (0, 0, 1)),
        kic.Joint("D", "revolute", ("ground", "rocker"), (3, 0, 0), (0, 0, 1)),
    ]
    return kic.Mechanism("loop", [kic.Body(name) for name in ("crank", "coupler", "rocker")], joints, **given)


@pytest.mark.slow_for("four-bar-values1")
@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("four-bar", {"A": 70}),
        ("four-bar", {"A": np.arange(0.0, 361.0)}),
        ("panda", [0, 30, 0, -90, 0, 120, 45]),
        ("horn-two-link", {"shoulder": [0.0, 22.5], "elbow": 0.0}),
        ("horn-two-link", {"elbow": 0.3, "link2.angle": 90.0}),
    ],
)
def test_angles_that_look_like_degrees_are_noted(model, values) -> None:
    m = kic.load(model)
    with pytest.warns(kic.DegreesWarning, match="for degrees give np.deg2rad") as caught:
        m.at(values, failures="mask")
    assert [x.filename for x in caught] == [__file__]
    if np.ndim(next(iter(values.values())) if isinstance(values, dict) else 0):
        with pytest.warns(kic.DegreesWarning):
            m.path(values, failures="mask")


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("four-bar", {"A": 12.0}),
        ("four-bar", {"A": np.linspace(0, 20 * np.pi, 400)}),
        ("horn-two-link", {"tip.x": 1.0, "tip.y": [1.0, 70.0]}),
        ("slider-crank", {"piston": 360.0}),
        ("four-bar", {"A": [0.3, np.nan, np.inf]}),
    ],
)
def test_turns_and_lengths_are_not_noted(model, values) -> None:
    m = kic.load(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.path(values, failures="mask") if np.ndim(values.get("A")) else m.at(values, failures="mask")


@pytest.mark.parametrize("text", ["70deg", "70 deg", "70°", "-7.5 degrees"])
def test_degrees_as_text_are_explained(text) -> None:
    number = text.strip("deg rs°")
    with raises(kic.InputError, key="A") as caught:
        kic.load("four-bar").at({"A": text})
    assert f"np.deg2rad({number})" in str(caught.value)
    with raises(kic.ModelError, key="value") as caught:
        kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), (0, 0, 1), value=text)
    assert f"np.deg2rad({number})" in str(caught.value)


@pytest.mark.parametrize("values", [1.0, [1.0], [1.0, 2.0, 3.0]])
def test_missing_and_surplus_coordinates_are_stated_by_the_first_call(values) -> None:
    with pytest.raises(kic.InputError, match=r'Add `coordinates = \["A"\]`'):
        loop().at(values)
    with raises(kic.InputError, mobility=1, count=2):
        loop(coordinates=["A", "B"]).at(values)
    with raises(kic.InputError, key="values"):
        loop(coordinates=["A"]).at([1.0, 2.0])


def test_a_batch_has_a_length_and_one_configuration_has_none() -> None:
    m = kic.load("four-bar")
    batch = m.at({"A": [[1.2, 1.3, 1.4]]})
    assert (len(batch), len(batch[0])) == (1, 3)
    assert all(bool(m.at({"A": values})) for values in (1.2, [], [1.2]))


GRIPPING_ARM = """
<robot name="arm">
  <link name="base"/>
  <link name="link"/>
  <link name="wrist"/> <link name="hand"/> <link name="tcp"/> <link name="left"/> <link name="right"/>
  <joint name="waist" type="revolute"><parent link="base"/><child link="link"/><origin xyz="0 0 0.4"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="link"/><child link="wrist"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="mount" type="fixed"><parent link="wrist"/><child link="hand"/><origin xyz="0.4 0 0"/></joint>
  <joint name="tip" type="fixed"><parent link="hand"/><child link="tcp"/><origin xyz="0.1 0 0"/></joint>
  <joint name="l" type="prismatic"><parent link="hand"/><child link="left"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" effort="1" velocity="1"/></joint>
  <joint name="r" type="prismatic"><parent link="hand"/><child link="right"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" effort="1" velocity="1"/><mimic joint="l"/></joint>
</robot>
"""


def test_an_imported_arm_ends_at_its_hand_and_stands_on_its_base() -> None:
    from kic.ui.report.report import default_outputs

    m = kic.from_urdf(GRIPPING_ARM)
    assert default_outputs(m) == ("tcp",)
    locked = m.lock({"l": 0.02, "r": 0.02})
    assert (locked.coordinates, locked.couplings) == (("waist", "elbow"), ())
    assert m.lock({"l": 0.02}).coordinates == ("waist", "elbow")
    with raises(kic.InputError, key="values", name="r"):
        m.lock({"l": 0.02, "r": 0.03})
    pytest.importorskip("matplotlib")
    shapes = {s.of for s in m.at().draw().shapes}
    assert {"anchor", "rod"} <= shapes
    without = m.without(*(frame.name for frame in m.frames if frame.body == "ground"))
    assert "anchor" not in {s.of for s in without.at().draw().shapes}
