"""Transmissions of URDF files: motors have the rates of transmission_interface, and conserve power."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from raising import refuses

import kic

LINKS = "".join(
    f'<link name="{name}"><inertial><origin xyz="0.3 0.1 0"/><mass value="{mass}"/>'
    '<inertia ixx="0.1" iyy="0.2" izz="0.3"/></inertial></link>'
    for name, mass in (("upper", 2), ("lower", 1))
)
ARM = f"""<robot name="arm"><link name="base"/>{LINKS}
<joint name="one" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="two" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0.6 0 0"/>
<axis xyz="0 1 0"/></joint>{{}}</robot>"""
# reductions of actuators and of joints
A, J = (-50.0, 40.0), (2.0, -0.5)
OLD = """<transmission name="t"><type>transmission_interface/{}</type>
<actuator name="m2"><role>actuator2</role><mechanicalReduction>40</mechanicalReduction></actuator>
<actuator name="m1"><role>actuator1</role><mechanicalReduction>-50</mechanicalReduction></actuator>
<joint name="two"><role>joint2</role><offset>0.1</offset><mechanicalReduction>-0.5</mechanicalReduction>
<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>
<joint name="one"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint></transmission>"""
NEW = """<ros2_control name="c" type="system"><hardware><plugin>any</plugin></hardware>
<transmission name="t"><plugin>transmission_interface/{}</plugin>
<actuator name="m1" role="actuator1"><mechanical_reduction>-50</mechanical_reduction></actuator>
<actuator name="m2" role="actuator2"><mechanical_reduction>40</mechanical_reduction></actuator>
<joint name="one" role="joint1"><offset>0.1</offset><mechanical_reduction>2</mechanical_reduction></joint>
<joint name="two" role="joint2"><mechanical_reduction>-0.5</mechanical_reduction></joint>
</transmission></ros2_control>"""
DIFFERENTIAL, FOUR_BAR = "DifferentialTransmission", "FourBarLinkageTransmission"
# velocities of the joints by those of the actuators, as documented
VELOCITIES = {
    DIFFERENTIAL: lambda u: (
        (u[0] / A[0] + u[1] / A[1]) / (2 * J[0]), (u[0] / A[0] - u[1] / A[1]) / (2 * J[1])
    ),
    FOUR_BAR: lambda u: (u[0] / (J[0] * A[0]), (u[1] / A[1] - u[0] / (J[0] * A[0])) / J[1]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), [*product([OLD, NEW], VELOCITIES)])
def test_rates_and_power(text: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    m = kic.from_urdf(ARM.format(text.format(kind)), strict=True)
    assert [motor.name for motor in m.motors] == ["m1", "m2"]
    c, qd, qdd = m.at([0.3, 0.8]), rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    found = c.motor_demand(qd, qdd)
    assert np.allclose(np.transpose(VELOCITIES[kind](found.speed.T)), qd, rtol=1e-12, atol=1e-12)
    efforts = c.inverse_dynamics(qd, qdd)
    power = (efforts * qd).sum(axis=-1)
    assert np.allclose((found.torque * found.speed).sum(axis=-1), power, rtol=1e-10, atol=1e-10)
    if kind == DIFFERENTIAL:  # the documented efforts
        torque = found.torque.T
        for k, sign in enumerate((1, -1)):
            documented = J[k] * (A[0] * torque[0] + sign * A[1] * torque[1])
            assert np.allclose(efforts[:, k], documented, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("text", "joint"), [(OLD, "two"), (NEW, "one")])
def test_offsets_have_a_remark(text: str, joint: str) -> None:
    """The angle of a shaft is zero where those of its joints are; rates have no offset."""
    said = f"<offset> of joint '{joint}' is ignored."
    assert any(said in remark for remark in kic.from_urdf(ARM.format(text.format(DIFFERENTIAL))).remarks)
    none = text.format(DIFFERENTIAL).replace("<offset>0.1<", "<offset> 0.0 <")
    assert not kic.from_urdf(ARM.format(none)).remarks


@pytest.mark.parametrize("kind", VELOCITIES)
def test_motors_of_two_joints_are_written_back(kind: str) -> None:
    m = kic.from_urdf(ARM.format(OLD.format(kind)))
    again = kic.from_urdf(kic.to_urdf(m).text)
    joints = [{motor.name: motor.joints for motor in x.motors} for x in (again, m)]
    assert joints[0] == joints[1]
    for one, two in zip(m.motors, again.motors, strict=True):
        assert one.ratios == pytest.approx(two.ratios, rel=1e-14)
    more = m.replace(motors=[kic.Motor("m0", ["one"], ratios=[5]), *m.motors])
    if kind == DIFFERENTIAL:
        assert len(kic.from_urdf(kic.to_urdf(more).text).motors) == 3
    # other maps of two joints are named by one error
    ratios = {"m1": [2, 3], "m2": [1, 4]}
    other = m.replace(motors=[kic.Motor(n, ["one", "two"], ratios=r) for n, r in ratios.items()])
    refuses(lambda: kic.to_urdf(other), kic.ModelError, match="motor 'm1'; motor 'm2'")


def test_the_efforts_of_a_four_bar_have_a_remark() -> None:
    """The documented ones do not have the power of the actuators: torque 1 turns joint 2 without its rate."""
    remarks = kic.from_urdf(ARM.format(OLD.format(FOUR_BAR))).remarks
    assert any("efforts conserve the power of the actuators" in remark for remark in remarks)
    torque, speed = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    documented = J[0] * A[0] * torque[0], J[1] * (A[1] * torque[1] - J[0] * A[0] * torque[0])
    assert np.dot(documented, VELOCITIES[FOUR_BAR](speed)) != torque @ speed


def test_default_coordinates_and_reductions() -> None:
    """Reductions are 1 without an element; actuated joints are those of both motors."""
    text = OLD.format(DIFFERENTIAL)
    for number in ("40", "-50", "-0.5", "2"):
        text = text.replace(f"<mechanicalReduction>{number}</mechanicalReduction>", "")
    m = kic.from_urdf(ARM.format(text), strict=True)
    assert [motor.ratios for motor in m.motors] == [(1.0, 1.0), (1.0, -1.0)]
    assert set(m.actuators) == {"one", "two"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<role>joint2</role>", "<role>joint1</role>"),
        ("<role>joint2</role>", ""),
        ('<joint name="two"><role', '<joint name="three"><role'),
        ('<joint name="two"><role', '<joint name="one"><role'),
        ("<role>actuator1</role>", "<role>first</role>"),
        (">40<", ">0<"),
        (">40<", ">forty<"),
        (DIFFERENTIAL, "OtherTransmission"),
    ],
)
def test_transmissions_that_are_ignored(old: str, new: str) -> None:
    text = OLD.format(DIFFERENTIAL)
    assert old in text
    text = ARM.format(text.replace(old, new))
    m = kic.from_urdf(text)
    assert not m.motors
    assert any("transmission 't'" in remark and "is ignored" in remark for remark in m.remarks)
    refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError, match="transmission 't'")


def test_order_of_ros2_control() -> None:
    """Its loader goes by the order, and the roles must agree."""
    text = NEW.format(DIFFERENTIAL).replace("joint1", "joint").replace("joint2", "joint1")
    text = text.replace('joint"', 'joint2"')
    assert not kic.from_urdf(ARM.format(text)).motors
    refuses(lambda: kic.from_urdf(ARM.format(text), strict=True), kic.ModelFileError, match="in this order")


def test_simple_transmission_of_ros2_control() -> None:
    """The reduction is that of the joint, as in its loader; that of the actuator is not guessed."""
    text = """<ros2_control><transmission name="t"><plugin>transmission_interface/SimpleTransmission</plugin>
    <actuator name="m" role="actuator1">{}</actuator><joint name="one" role="joint1"><mechanical_reduction>-3
    </mechanical_reduction></joint></transmission></ros2_control>"""
    (motor,) = kic.from_urdf(ARM.format(text.format("")), strict=True).motors
    assert (motor.name, motor.joints, motor.ratios) == ("t", ("one",), (-3.0,))
    (motor,) = kic.from_urdf(ARM.format(text.format("<mechanical_reduction>1</mechanical_reduction>"))).motors
    assert motor.ratios == (-3.0,)
    other = ARM.format(text.format("<mechanical_reduction>2</mechanical_reduction>"))
    assert not kic.from_urdf(other).motors
    refuses(lambda: kic.from_urdf(other, strict=True), kic.ModelFileError, match="transmission 't'")
