"""MJCF text of a humanoid of 60 degrees of freedom, whose dimensions have as many digits as a file gives."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

DOF = 60
SIDES = {"left": 1.0, "right": -1.0}
# motors that move joints through rods, and these joints
LOOPS = {
    ("waist_motor",): ("waist_pitch",),
    ("neck_motor",): ("neck_pitch",),
    **{
        (f"{side}_ankle_upper", f"{side}_ankle_lower"): (f"{side}_ankle_pitch", f"{side}_ankle_roll")
        for side in SIDES
    },
}
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_yaw", "wrist_roll", "wrist_pitch")
# lengths of the finger bones
FINGERS = {"thumb": (0.03, 0.03, 0.02), **dict.fromkeys(("index", "middle", "ring", "little"), (0.04, 0.03))}


class _Text:
    """Writer of bodies, which collects actuators and equalities."""

    def __init__(self, digits: int) -> None:
        self.digits, self.rng = digits, np.random.default_rng(0)
        self.actuators: list[str] = []
        self.equalities: list[str] = []

    def numbers(self, x: np.ndarray | list[float]) -> str:
        return " ".join(f"{value:.{self.digits}f}" for value in np.asarray(x, dtype=float))

    def hinge(self, name: str, axis: str, effort: float = 0.0, reach: float = 1.0) -> str:
        """Return a hinge, which has a motor if it has an `effort`."""
        if effort:
            self.actuators.append(
                f'<motor name="{name}_drive" joint="{name}" ctrlrange="{-effort} {effort}"/>'
            )
        law = f'damping="0.05" armature="0.01" range="{-reach} {reach}"' if effort else ""
        return f'<joint name="{name}" axis="{axis}" {law}/>'

    def body(self, name: str, at: np.ndarray | list[float], mass: float, length: float, inside: str,
             turn: Rotation | None = None) -> str:  # fmt: skip
        """Return a body that is a rod of some length down from its frame, and thick."""
        along, across = mass * (length / 6) ** 2, mass * length**2 / 12
        quat = "" if turn is None else f' quat="{self.numbers(turn.as_quat(scalar_first=True))}"'
        centre = self.numbers([0, 0, -length / 2])
        return (
            f'<body name="{name}" pos="{self.numbers(at)}"{quat}><inertial pos="{centre}" mass="{mass}" '
            f'diaginertia="{across:.9f} {across:.9f} {along:.9f}"/>{inside}</body>'
        )

    def chain(
        self, names: str, at: list[list[float]], mass: list[float], axes: list[str], inside: str
    ) -> str:
        """Return bodies, each in that before and with a motor; the name is that of the joint."""
        parts = list(zip(names.split(), at, mass, axes, strict=True))
        for name, place, m, axis in reversed(parts):
            inside = self.body(f"{name}_link", place, m, 0.1, self.hinge(name, axis, 20 * m) + inside)
        return inside

    def hinged(self, name: str, at: np.ndarray, turn: Rotation, axis: np.ndarray, mass: float, inside: str,
               effort: float = 0.0) -> str:  # fmt: skip
        """Return a turned body on a hinge, whose axis in the body before is rounded, too."""
        joint = self.hinge(name, self.numbers(turn.inv().apply(axis)), effort)
        return self.body(f"{name}_link", at, mass, 0.02, joint + inside, turn)

    def pitch(self, name: str, at: list[float], mass: float, inside: str, relpose: bool) -> str:
        """Return a body on a hinge that a motor below turns through two parallel rods.

        The rods are welded as the file says, with `relpose`, or where they are at the zero of the file.
        """
        y, arm = np.eye(3)[1], np.array([0.03, 0.01, 0.01])
        down = self.rng.uniform([-0.02, 0, -0.09], [0.02, 0, -0.06])
        crank, link, *turns = Rotation.random(6, rng=self.rng)
        bearings, rods = "", ""
        for k, (rod, pin) in enumerate((turns[:2], turns[2:])):
            place = (1 - 2 * k) * arm
            for part, turn, before in (("pin", pin, link), ("rod", rod, crank)):
                back = before.inv()
                made = self.hinged(
                    f"{name}_{part}{k}", back.apply(place), back * turn, back.apply(y), 0.02, ""
                )
                bearings, rods = (bearings + made, rods) if part == "pin" else (bearings, rods + made)
            quat = (rod.inv() * pin).as_quat(scalar_first=True)
            pose = f'relpose="{self.numbers([*rod.inv().apply(-down), *quat])}"' if relpose else ""
            ends = " ".join(f'body{n}="{name}_{part}{k}_link"' for n, part in ((1, "rod"), (2, "pin")))
            self.equalities.append(f"<weld {ends} {pose}/>")
        upright = self.body(name, [0, 0, 0], mass, 0.1, inside, link.inv())
        driven = self.hinged(f"{name}_pitch", np.zeros(3), link, y, 0.2, bearings + upright)
        motor = self.hinged(f"{name}_motor", down, crank, y, 0.2, rods, 40)
        return self.body(f"{name}_base", at, 0.5, 0.05, driven + motor)

    def ankle(self, name: str) -> str:
        """Return a foot that two motors of the shank turn through two rods between ball joints."""
        ankle, cranks = np.array([0, 0, -0.35]), ""
        for k, (part, height) in enumerate((("upper", -0.1), ("lower", -0.16))):
            y = 0.03 * (1 - 2 * k)
            motor = np.array([0.01, y, height])
            ball = motor + self.rng.uniform([-0.055, 0, -0.01], [-0.045, 0, 0.01])
            end = ankle + self.rng.uniform([-0.055, y + 0.002, -0.01], [-0.045, y + 0.002, 0.01])
            rod = end - ball
            turn = Rotation.align_vectors([rod], [[0, 0, -1]])[0]
            length = float(np.linalg.norm(rod))
            inside = f'<joint name="{name}_{part}_ball" type="ball"/>'
            inside = self.body(f"{name}_{part}_rod", ball - motor, 0.08, length, inside, turn)
            joint = self.hinge(f"{name}_{part}", "0 1 0", 40)
            cranks += self.body(f"{name}_{part}_crank", motor, 0.2, 0.05, joint + inside)
            self.equalities.append(f'<connect body1="{name}_{part}_rod" body2="{name}_foot" '
                                   f'anchor="{self.numbers([0, 0, -length])}"/>')  # fmt: skip
        hinges = self.hinge(f"{name}_pitch", "0 1 0") + self.hinge(f"{name}_roll", "1 0 0")
        return cranks + self.body(f"{name}_foot", ankle, 1.0, 0.06, hinges)

    def leg(self, side: str, y: float) -> str:
        names = " ".join(f"{side}_{part}" for part in ("hip_yaw", "hip_roll", "hip_pitch", "knee"))
        at = [[0, 0.1 * y, -0.05], [0, 0, -0.03], [0, 0, 0], [0.002, 0.001 * y, -0.38]]
        axes = ["0 0 1", "1 0 0", "0 1 0", "0 1 0"]
        return self.chain(names, at, [1, 1, 5, 3], axes, self.ankle(f"{side}_ankle"))

    def arm(self, side: str, y: float) -> str:
        fingers = ""
        for k, (finger, bones) in enumerate(FINGERS.items()):
            names = " ".join(f"{side}_{finger}{n}" for n in range(len(bones)))
            at = [[0.03 - 0.015 * k, 0.01 * y, -0.08], *([0, 0, -x] for x in bones[:-1])]
            axes = ["0 1 0" if finger == "thumb" else "1 0 0", *["1 0 0"] * (len(bones) - 1)]
            fingers += self.chain(names, at, [0.02] * len(bones), axes, "")
        at = [[0, 0.18 * y, 0.3], [0, 0.03 * y, 0], [0, 0, -0.03], [0.004, 0, -0.25], [0, 0, -0.2]]
        axes = ["0 1 0", "1 0 0", "0 0 1", "0 1 0", "0 0 1", "1 0 0", "0 1 0"]
        names = " ".join(f"{side}_{part}" for part in ARM)
        return self.chain(names, [*at, *[[0, 0, -0.02]] * 2], [1, 1, 1, 1, 0.3, 0.2, 0.4], axes, fingers)


def humanoid(digits: int = 6) -> str:
    """Return the MJCF text of a humanoid with numbers of so many decimal places.

    Its 60 degrees of freedom are 6 of the pelvis, 6 of each leg, 3 of the waist and the neck each, 7 of each
    arm and 11 of each hand. Six joints are moved through eight rods, each of which closes a loop: motors turn
    the pitch axes of waist and neck through two parallel rods each (planar loops of hinges), and pitch and
    roll of each ankle through two rods between ball joints.
    """
    text = _Text(digits)
    head = text.body("head", [0, 0, 0.05], 3.0, 0.15, "")
    neck = text.chain("neck_yaw neck_roll", [[0, 0, 0.4], [0, 0, 0.02]], [0.5, 0.5], ["0 0 1", "1 0 0"],
                      text.pitch("neck", [0, 0, 0.05], 0.5, head, True))  # fmt: skip
    arms = "".join(text.arm(side, y) for side, y in SIDES.items())
    waist = text.chain("waist_yaw waist_roll", [[0, 0, 0.1], [0, 0, 0.03]], [1, 1], ["0 0 1", "1 0 0"],
                       text.pitch("waist", [0, 0, 0.08], 10.0, neck + arms, False))  # fmt: skip
    legs = "".join(text.leg(side, y) for side, y in SIDES.items())
    pelvis = text.body("pelvis", [0, 0, 0.95], 6.0, 0.15, '<freejoint name="base"/>' + waist + legs)
    return (
        f'<mujoco model="humanoid"><compiler angle="radian"/><worldbody>{pelvis}</worldbody>'
        f"<equality>{''.join(text.equalities)}</equality><actuator>{''.join(text.actuators)}</actuator></mujoco>"
    )
