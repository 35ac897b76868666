"""Elements and attributes of URDF and SDF files, and their treatment by the readers.

A key is the tag of an element with the tag of a child ("joint/axis") or an attribute ("axis@xyz"). The tables
follow the schema of urdfdom with its extensions, and the specification of SDFormat 1.12 with the parts of
older versions that change the motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kic.errors import short_repr
from kic.io.robot import Robot
from kic.io.xml import Element

# treatments with their headings in the tables of the guide
TREATMENTS = {
    "computed": "computed",
    "no effect": "no effect",
    "remarked": "ignored with a remark",
    "strict": "also an error with `strict=True`",
    "error": "error",
}


@dataclass(frozen=True)
class Elements:
    """Keys of a format by treatment, in texts that separate them by blanks.

    Attributes
    ----------
    computed : str
        Read, with their children and attributes.
    no_effect : str
        Without effect on motion; children are not checked.
    remarked : str
        Ignored with a remark: limits of actuators, geometry, plugins.
    strict : str
        Ignored with a remark, and an error of a strict reader, like all keys that are not listed.
    error : str
        An error of every reader.
    own : str
        Keys among these for which the reader adds the remarks.
    harmless : dict of str to bool, float or str
        Values of keys that have no effect, like empty texts.
    """

    computed: str
    no_effect: str
    remarked: str
    strict: str
    error: str = ""
    own: str = ""
    harmless: Mapping[str, bool | float | str] = field(default_factory=dict)

    @cached_property
    def treatment(self) -> dict[str, str]:
        """Treatment of each key."""
        return {key: kind for kind in TREATMENTS for key in getattr(self, kind.replace(" ", "_")).split()}

    def check(self, root: Element, robot: Robot) -> None:
        """Add a remark for each key of a file that is ignored, at its first occurrence."""
        found: dict[str, list[tuple[int, str]]] = {}
        front = [(root, "the file")]
        while front:
            element, owner = front.pop()
            tag = element.tag
            name = element.attributes.get("name", element.attributes.get("reference"))
            inner = owner if name is None else f"{tag} {short_repr(name)}"
            parts = [(f"{tag}@{key}", value, f"`{key}` of <{tag}> of {inner}", element.line)
                     for key, value in element.attributes.items() if not key.startswith("xml")]  # fmt: skip
            parts += [(f"{tag}/{x.tag}", x.text, f"<{x.tag}> of {inner}", x.line) for x in element.children]
            for key, value, text, line in parts:
                kind = self.treatment.get(key, "strict")
                quiet = key in self._own or self._is_harmless(element, key, value)
                if kind in ("remarked", "strict") and not quiet:
                    found.setdefault(key, []).append((line, text))
            front += [(x, inner) for x in reversed(element.children)
                      if self.treatment.get(f"{tag}/{x.tag}") == "computed"]  # fmt: skip
        for key, places in found.items():
            line, text = places[0]
            more = f", and {len(places) - 1} more" if len(places) > 1 else ""
            lost = self.treatment.get(key, "strict") == "strict"
            robot.remark(line, f"{text} is ignored{more}.", lost=lost)

    def _is_harmless(self, element: Element, key: str, text: str) -> bool:
        """Return True if a value has no effect: "0.00" counts as 0, and "True" as true."""
        harmless = self.harmless.get(key)
        if isinstance(harmless, bool):
            return element.truth(text, f"`{key}`", harmless) == harmless
        try:
            return harmless is not None and (not text.strip() or float(text) == harmless)
        except ValueError:
            return False

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset(self.own.split())


def table(elements: Elements) -> str:
    """Return the treatments as a table in Markdown, with a row for each element."""
    rows: dict[str, dict[str, list[str]]] = {}
    for key, kind in elements.treatment.items():
        tag, mark, part = key.partition("@") if "@" in key else key.partition("/")
        word = f"`{part}`" if mark == "@" else f"\\<{part}\\>"
        rows.setdefault(tag, {}).setdefault(kind, []).append(word)
    lines = [f"| part of | {' | '.join(TREATMENTS.values())} |", f"| --- |{' --- |' * len(TREATMENTS)}"]
    for tag, kinds in rows.items():
        cells = [", ".join(kinds.get(kind, ())) for kind in TREATMENTS]
        lines.append(f"| \\<{tag}\\> | {' | '.join(cells)} |")
    return "\n".join(" ".join(line.split()) for line in lines)


URDF = Elements(
    computed="""
        robot@name robot/link robot/joint robot/transmission robot/ros2_control robot/gazebo
        link@name link/inertial inertial/origin inertial/mass inertial/inertia mass@value
        inertia@ixx inertia@ixy inertia@ixz inertia@iyy inertia@iyz inertia@izz
        origin@xyz origin@rpy origin@quat_xyzw
        joint@name joint@type joint/origin joint/parent joint/child joint/axis joint/dynamics joint/limit
        joint/mimic parent@link child@link axis@xyz
        dynamics@damping dynamics@friction dynamics@armature dynamics@spring_stiffness
        dynamics@spring_reference limit@lower limit@upper limit@effort limit@velocity
        mimic@joint mimic@multiplier mimic@offset
        joint/mechanicalReduction joint/mechanical_reduction joint/role joint@role
        transmission@name transmission@type transmission/type transmission/plugin
        transmission/joint transmission/actuator transmission/mechanicalReduction
        actuator@name actuator/mechanicalReduction actuator/mechanical_reduction actuator/role actuator@role
        ros2_control/transmission gazebo/joint
    """,
    no_effect="""
        robot@version robot/material robot/group link@type joint/calibration joint/hardwareInterface
        actuator/hardwareInterface
        ros2_control@name ros2_control@type ros2_control@rw_rate ros2_control@is_async
        ros2_control@thread_priority ros2_control/hardware ros2_control/sensor ros2_control/gpio
        ros2_control/async
        gazebo@reference gazebo/material gazebo/mu1 gazebo/mu2 gazebo/fdir1 gazebo/kp gazebo/kd
        gazebo/maxVel gazebo/minDepth gazebo/maxContacts gazebo/selfCollide gazebo/laserRetro gazebo/visual
        gazebo/collision gazebo/stopCfm gazebo/stopErp gazebo/fudgeFactor gazebo/implicitSpringDamper
        gazebo/cfmDamping gazebo/provideFeedback gazebo/preserveFixedJoint gazebo/disableFixedJointLumping
    """,
    remarked="""
        robot/drake ros2_control/joint link/visual link/collision joint/safety_controller
        joint/offset limit@acceleration limit@deceleration limit@jerk
        gazebo/plugin gazebo/sensor
    """,
    strict="""
        transmission/leftActuator transmission/rightActuator transmission/flexJoint transmission/rollJoint
        transmission/gap_joint transmission/passive_joint transmission/use_simulated_gripper_joint
        gazebo/springStiffness gazebo/springReference gazebo/dampingFactor gazebo/gravity
        gazebo/turnGravityOff gazebo/static gazebo/link gazebo/inertial
    """,
    own="joint/safety_controller",
    harmless={
        "gazebo/gravity": True,
        "gazebo/turnGravityOff": False,
        "gazebo/static": False,
        "joint/offset": 0.0,
        **dict.fromkeys(("gazebo/springStiffness", "gazebo/springReference", "gazebo/dampingFactor"), 0.0),
    },
)

_AXES = " ".join(
    f"{axis}/xyz {axis}/use_parent_model_frame {axis}/dynamics {axis}/limit {axis}/mimic"
    for axis in ("axis", "axis2")
)
SDF = Elements(
    computed=f"""
        sdf@version sdf/world sdf/model world/gravity world/model
        model@name model@canonical_link model@placement_frame model/static model/pose model/link model/joint
        model/frame link@name link/pose link/inertial link/velocity_decay
        inertial@auto inertial/pose inertial/mass inertial/inertia
        inertia/ixx inertia/ixy inertia/ixz inertia/iyy inertia/iyz inertia/izz
        pose@relative_to pose@rotation_format pose@degrees frame@name frame@attached_to frame/pose
        joint@name joint@type joint/parent joint/child joint/pose joint/axis joint/axis2 joint/physics
        joint/gearbox_ratio joint/gearbox_reference_body joint/thread_pitch joint/screw_thread_pitch
        {_AXES} xyz@expressed_in
        dynamics/damping dynamics/friction dynamics/spring_reference dynamics/spring_stiffness
        limit/lower limit/upper limit/effort limit/velocity
        mimic@joint mimic@axis mimic/multiplier mimic/offset mimic/reference
    """,
    no_effect="""
        world@name world/actor world/atmosphere world/audio world/frame world/gui world/light
        world/magnetic_field world/physics world/road world/scene world/spherical_coordinates world/wind
        model@namespace model/self_collide model/allow_auto_disable
        link/self_collide link/audio_sink link/audio_source link/battery link/light link/particle_emitter
        link/projector inertial/density inertial/auto_inertia_params
        joint/sensor physics/simbody physics/provide_feedback
    """,
    remarked="""
        world/plugin model/plugin link/visual link/collision link/sensor
        limit/stiffness limit/dissipation
        axis/initial_position axis2/initial_position
    """,
    strict="""
        world/joint world/population world/state model/gripper model/enable_wind
        link/gravity link/enable_wind link/kinematic link/must_be_base_link
        velocity_decay/linear velocity_decay/angular inertial/fluid_added_mass pose@frame physics/ode
    """,
    error="sdf/include world/include model/include model/model",
    harmless={
        "link/gravity": True,
        "pose@frame": "",
        **dict.fromkeys(
            ("model/enable_wind", "link/enable_wind", "link/kinematic", "link/must_be_base_link"), False
        ),
        **dict.fromkeys(("velocity_decay/linear", "velocity_decay/angular"), 0.0),
    },
)
