"""Tables of the elements of URDF and SDF files: every key is changed in a small file, and has its effect."""

# ruff: noqa: E501 (texts of files)

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import refuses

import kic
from kic.io import elements

GUIDE = Path(__file__).parents[2] / "notebooks" / "guides" / "robots.md"

URDF = """<robot name="r"><link name="base"/>
<link name="one"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><mass value="2"/>
<inertia ixx="0.4" iyy="0.5" izz="0.6" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial></link>
<link name="two"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>
<inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="three"><inertial><mass value="1"/>
<inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="one"/><origin xyz="0 0 1" rpy="0.1 0 0.4"/>
<axis xyz="0 1 1"/><limit lower="-1" upper="2" effort="5" velocity="6"/>
<dynamics damping="0.2" friction="0.1"/></joint>
<joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz="0.5 0 0"/>
<axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="5" velocity="6"/></joint>
<joint name="c" type="revolute"><parent link="two"/><child link="three"/><origin xyz="0.5 0 0.3"/>
<axis xyz="1 0 0"/><limit lower="-3" upper="3" effort="5" velocity="6"/><mimic joint="b" multiplier="2" offset="0.1"/></joint>
<transmission name="t"><joint name="a"/><actuator name="m"><mechanicalReduction>7</mechanicalReduction></actuator>
</transmission></robot>"""

COUPLE = "transmission_interface/DifferentialTransmission"
DIFFERENTIAL = f"""<ros2_control><transmission name="d"><plugin>{COUPLE}</plugin><actuator name="m1" role="actuator1">
</actuator><actuator name="m2" role="actuator2"/><joint name="a" role="joint1"></joint><joint name="b" role="joint2"/>
</transmission></ros2_control>"""

# a change of the file for each key, as the text that is replaced and its substitute
URDF_CHANGES: dict[str, tuple[str, str]] = {
    "robot@name": ('name="r"', 'name="s"'),
    "robot/link": ('<link name="base"/>', '<link name="floor"/><link name="base"/>'),
    "robot/joint": ('<joint name="a"', '<joint name="a_"'),
    "robot/gazebo": ("</robot>", "<gazebo><static>true</static></gazebo></robot>"),
    "limit@effort": ('effort="5"', 'effort="7"'),
    "limit@velocity": ('velocity="6"', 'velocity="7"'),
    "robot/transmission": ('<transmission name="t"><joint name="a"/>', '<transmission name="t"><joint name="b"/>'),
    "link@name": ("base", "basis"),
    "link/inertial": ('<link name="three"><inertial>', '<link name="three"><inertal>'),
    "inertial/origin": ('<origin xyz="0.3 0 0"/><mass', "<mass"),
    "inertial/mass": ('<inertial><mass value="1"/>', "<inertial>"),
    "inertial/inertia": (re.findall(r"<inertia [^/]*/>", URDF)[0], ""),
    "mass@value": ('value="2"', 'value="3"'),
    **{f"inertia@{k}": (f'{k}="{v}"', f'{k}="{v + 0.01:.2f}"') for k, v in
       {"ixx": 0.4, "iyy": 0.5, "izz": 0.6, "ixy": 0.01, "ixz": 0.02, "iyz": 0.03}.items()},
    "origin@xyz": ('xyz="0 0 1"', 'xyz="0 1 1"'),
    "origin@rpy": ('rpy="0.1 0 0.4"', 'rpy="0.1 0.5 0.4"'),
    "origin@quat_xyzw": ('rpy="0.1 0 0.4"', 'quat_xyzw="1 0 0 1"'),
    "joint@name": ('<joint name="c"', '<joint name="d"'),
    "joint@type": ('"b" type="revolute"', '"b" type="prismatic"'),
    "joint/origin": ('<origin xyz="0 0 1" rpy="0.1 0 0.4"/>', ""),
    "joint/parent": ('<parent link="two"/>', ""),
    "joint/child": ('<child link="three"/>', ""),
    "joint/axis": ('<axis xyz="0 0 1"/>', ""),
    "joint/dynamics": ('<dynamics damping="0.2" friction="0.1"/>', ""),
    "joint/limit": ('<limit lower="-1" upper="2"', '<limit lower="-1.5" upper="2.5"'),
    "joint/mimic": ('<mimic joint="b" multiplier="2" offset="0.1"/>', ""),
    "parent@link": ('<parent link="two"/>', '<parent link="one"/>'),
    "child@link": ('<child link="three"/>', '<child link="nobody"/>'),
    "axis@xyz": ('xyz="0 1 1"', 'xyz="0 1 2"'),
    "dynamics@damping": ('damping="0.2"', 'damping="0.3"'),
    "dynamics@friction": ('friction="0.1"', 'friction="0.3"'),
    **{f"dynamics@{key}": ('damping="0.2"', f'damping="0.2" {key}="0.3"')
       for key in ("armature", "spring_stiffness")},
    "dynamics@spring_reference": ('damping="0.2"', 'damping="0.2" spring_stiffness="1" spring_reference="0.3"'),
    "limit@lower": ('lower="-1"', 'lower="-0.5"'),
    "limit@upper": ('upper="2"', 'upper="2.5"'),
    "mimic@joint": ('mimic joint="b"', 'mimic joint="a"'),
    "mimic@multiplier": ('multiplier="2"', 'multiplier="3"'),
    "mimic@offset": ('offset="0.1"', 'offset="0.2"'),
    "transmission@name": ('transmission name="t"', 'transmission name="u"'),
    "transmission/joint": ('<transmission name="t"><joint name="a"/>', '<transmission name="t">'),
    "transmission/actuator": ('<actuator name="m"><mechanicalReduction>7</mechanicalReduction></actuator>', ""),
    "transmission/mechanicalReduction": ('<actuator name="m"><mechanicalReduction>7</mechanicalReduction></actuator>',
                                         "<mechanicalReduction>8</mechanicalReduction>"),
    "actuator/mechanicalReduction": (">7<", ">8<"),
    **{f"transmission{key}": ('<transmission name="t">', f'<transmission name="t"{text}') for key, text in
       {"@type": f' type="{COUPLE}">', "/type": f"><type>{COUPLE}</type>", "/plugin": f"><plugin>{COUPLE}</plugin>"}.items()},
    **{key: ("</robot>", DIFFERENTIAL.replace(*change, 1) + "</robot>") for key, change in {
        "robot/ros2_control": ("", ""), "ros2_control/transmission": ("", ""),
        "joint/role": ('role="joint1">', "><role>joint1</role>"), "joint@role": ('"joint1"', '"joint2"'),
        "actuator/role": ('role="actuator1">', "><role>actuator1</role>"), "actuator@role": ('"actuator1"', '"2"'),
        "joint/mechanical_reduction": ('role="joint1">', 'role="joint1"><mechanical_reduction>2</mechanical_reduction>'),
        "joint/mechanicalReduction": ('role="joint1">', 'role="joint1"><mechanicalReduction>2</mechanicalReduction>'),
        "actuator/mechanical_reduction":
            ('role="actuator1">', 'role="actuator1"><mechanical_reduction>2</mechanical_reduction>'),
    }.items()},
}  # fmt: skip

INERTIAL = """<inertial><pose degrees="false">0.1 0.2 0.3 0.1 0.2 0.3</pose><mass>2</mass><inertia><ixx>0.4</ixx>
<iyy>0.5</iyy><izz>0.6</izz><ixy>0.01</ixy><ixz>0.02</ixz><iyz>0.03</iyz></inertia></inertial>"""
LAW = """<limit><lower>-1</lower><upper>2</upper></limit><dynamics><damping>0.2</damping><friction>0.1</friction>
<spring_reference>0.3</spring_reference><spring_stiffness>0.4</spring_stiffness></dynamics>"""
SDF = f"""<sdf version="1.11"><world name="w"><gravity>0 0 -9</gravity><model name="m" canonical_link="one"
placement_frame="base"><pose>0 0 1 0 0 0</pose><static>false</static>
<link name="one"><pose>0.1 0 0 0.1 0.2 0</pose>{INERTIAL}</link>
<link name="two"><pose relative_to="one">1 0 0 0 0 0.3</pose>{INERTIAL}</link>
<link name="three"><pose>2 0.2 0 0 0 0</pose>{INERTIAL}</link>
<link name="four"><pose>1 0.2 0.7 0 0 0</pose>{INERTIAL}</link>
<link name="five"><pose>1 0.5 0.7 0 0 0</pose>{INERTIAL}</link>
<frame name="base" attached_to="two"><pose>0.1 0 0 0 0 0.2</pose></frame>
<joint name="a" type="revolute"><parent>world</parent><child>one</child><pose>0 0.1 0 0 0.1 0</pose>
<axis><xyz expressed_in="two">0 1 1</xyz>{LAW}</axis></joint>
<joint name="b" type="universal"><parent>one</parent><child>two</child><axis><xyz>1 0 0</xyz>{LAW}</axis>
<axis2><xyz>0 1 0</xyz>{LAW}</axis2></joint>
<joint name="c" type="revolute"><parent>two</parent><child>three</child><axis><xyz>0 0 1</xyz>
<mimic joint="b" axis="axis2"><multiplier>2</multiplier><offset>0.1</offset><reference>0.2</reference></mimic></axis>
</joint>
<joint name="d" type="screw"><parent>two</parent><child>four</child><axis><xyz>0 0 1</xyz></axis>
<screw_thread_pitch>0.1</screw_thread_pitch></joint>
<joint name="e" type="revolute"><parent>two</parent><child>five</child><axis><xyz>0 0 1</xyz></axis></joint>
<joint name="g" type="gearbox"><parent>three</parent><child>five</child><gearbox_ratio>3</gearbox_ratio>
<gearbox_reference_body>two</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>
</model></world></sdf>"""


def inside(tag: str, more: str, after: str = "") -> tuple[str, str]:
    """Return the change that adds text at the start of the first element of a tag."""
    found = re.search(rf"<{tag}\b[^>]*>", SDF[SDF.index(after) :])
    assert found is not None
    return (after, after + more) if after else (found[0], found[0] + more)


SDF_CHANGES: dict[str, tuple[str, str]] = {
    "sdf@version": ('version="1.11"', 'version="1.4"'),
    "sdf/world": ("<gravity>0 0 -9</gravity>", "<gravity>0 0 -8</gravity>"),
    "sdf/model": ("0 0.1 0 0 0.1 0", "0 0.2 0 0 0.1 0"),
    "world@name": ('world name="w"', 'world name="v"'),
    "world/gravity": ("<gravity>0 0 -9</gravity>", ""),
    "world/model": ("2 0.2 0 0 0 0", "2 0.3 0 0 0 0"),
    "model@name": ('model name="m"', 'model name="n"'),
    "model@canonical_link": ('attached_to="two"', ""),
    "model@placement_frame": ('placement_frame="base"', ""),
    "model/static": ("<static>false<", "<static>true<"),
    "model/pose": ("<pose>0 0 1 0 0 0</pose>", ""),
    "model/link": ('<link name="five"', '<link name="six"/><link name="five"'),
    "model/joint": ('<joint name="e"', '<joint name="h"'),
    "model/frame": ('<frame name="base"', '<frame name="tool"/><frame name="base"'),
    "link@name": ('link name="three"', 'link name="trois"'),
    "link/pose": ("<pose>2 0.2 0 0 0 0</pose>", ""),
    "link/inertial": (INERTIAL, ""),
    "link/velocity_decay": inside("link", "<velocity_decay><linear>1</linear></velocity_decay>"),
    "inertial@auto": ("<inertial>", '<inertial auto="true">'),
    "inertial/pose": ('<pose degrees="false">0.1 0.2 0.3 0.1 0.2 0.3</pose>', ""),
    "inertial/mass": ("<mass>2<", "<mass>3<"),
    "inertial/inertia": (re.findall(r"<inertia>.*?</inertia>", SDF, re.S)[0], ""),
    **{f"inertia/{k}": (f"<{k}>{v}<", f"<{k}>{v + 0.01:.2f}<") for k, v in
       {"ixx": 0.4, "iyy": 0.5, "izz": 0.6, "ixy": 0.01, "ixz": 0.02, "iyz": 0.03}.items()},
    "pose@relative_to": ('<pose relative_to="one">', "<pose>"),
    "pose@rotation_format": ("<pose>2 0.2 0 0 0 0</pose>", '<pose rotation_format="quat_xyzw">2 0.2 0 1 0 0 1</pose>'),
    "pose@degrees": ('degrees="false"', 'degrees="true"'),
    "frame@name": ('frame name="base" attached_to="two"', 'frame name="base"'),
    "frame@attached_to": ('attached_to="two"', 'attached_to="three"'),
    "frame/pose": ("<pose>0.1 0 0 0 0 0.2</pose>", ""),
    "joint@name": ('joint name="d"', 'joint name="f"'),
    "joint@type": ('name="a" type="revolute"', 'name="a" type="prismatic"'),
    "joint/parent": ("<parent>two</parent><child>five", "<parent>one</parent><child>five"),
    "joint/child": ("<child>one</child>", ""),
    "joint/pose": ("<pose>0 0.1 0 0 0.1 0</pose>", ""),
    "joint/axis": (f"<axis><xyz>1 0 0</xyz>{LAW}</axis>", ""),
    "joint/axis2": (f"<axis2><xyz>0 1 0</xyz>{LAW}</axis2>", ""),
    "joint/physics": ("<screw_thread", "<physics><ode/></physics><screw_thread"),
    "joint/gearbox_ratio": ("ratio>3<", "ratio>4<"),
    "joint/gearbox_reference_body": ("body>two<", "body>one<"),
    "joint/thread_pitch": ("<screw_thread_pitch>0.1</screw_thread_pitch>", "<thread_pitch>50</thread_pitch>"),
    "joint/screw_thread_pitch": ("<screw_thread_pitch>0.1</screw_thread_pitch>", ""),
    "axis/xyz": ("0 1 1</xyz>", "0 1 2</xyz>"),
    "axis2/xyz": ("<axis2><xyz>0 1 0</xyz>", "<axis2><xyz>0 1 1</xyz>"),
    "axis/use_parent_model_frame": ("<axis><xyz>0 0 1</xyz>\n<mimic",
                                    "<axis><xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame>\n<mimic"),
    "axis2/use_parent_model_frame": ("<axis2><xyz>0 1 0</xyz>",
                                     "<axis2><xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame>"),
    "axis/dynamics": ('<xyz expressed_in="two">0 1 1</xyz>' + LAW, '<xyz expressed_in="two">0 1 1</xyz>'),
    "axis2/dynamics": ("<axis2><xyz>0 1 0</xyz>" + LAW, "<axis2><xyz>0 1 0</xyz>"),
    "axis/limit": ("<axis><xyz>1 0 0</xyz><limit><lower>-1<", "<axis><xyz>1 0 0</xyz><limit><lower>-2<"),
    "axis2/limit": ("<axis2><xyz>0 1 0</xyz><limit><lower>-1<", "<axis2><xyz>0 1 0</xyz><limit><lower>-2<"),
    "axis/mimic": ('<mimic joint="b" axis="axis2">', '<mimic joint="e">'),
    "axis2/mimic": ("<axis2><xyz>0 1 0</xyz>", '<axis2><xyz>0 1 0</xyz><mimic joint="a"/>'),
    "xyz@expressed_in": (' expressed_in="two"', ""),
    "dynamics/damping": ("damping>0.2<", "damping>0.3<"),
    "dynamics/friction": ("friction>0.1<", "friction>0.2<"),
    "dynamics/spring_reference": ("reference>0.3<", "reference>0.2<"),
    "dynamics/spring_stiffness": ("stiffness>0.4<", "stiffness>0.5<"),
    "limit/lower": ("lower>-1<", "lower>-inf<"),
    "limit/upper": ("upper>2<", "upper>inf<"),
    "mimic@joint": ('mimic joint="b" axis="axis2"', 'mimic joint="a"'),
    "mimic@axis": ('mimic joint="b" axis="axis2"', 'mimic joint="b"'),
    "mimic/multiplier": ("multiplier>2<", "multiplier>3<"),
    "mimic/offset": ("offset>0.1<", "offset>0.2<"),
    "mimic/reference": ("reference>0.2</reference></mimic>", "reference>0.4</reference></mimic>"),
}  # fmt: skip
WORDS = {"kinematic": "true", "must_be_base_link": "true", "enable_wind": "true", "gravity": "false", "static": "true",
         "turnGravityOff": "true", "linear": "1", "angular": "1"}  # fmt: skip
# where an element of a tag stands that the small file does not have
HOLDERS = {"velocity_decay": ("link", "<velocity_decay>{}</velocity_decay>"),
           "physics": ("joint", "<physics>{}</physics>"), "ros2_control": ("robot", "<ros2_control>{}</ros2_control>")}  # fmt: skip


def added(base: str, tag: str, mark: str, part: str) -> str:
    """Return the file with another element or attribute in the first element of a tag."""
    if mark == "@":
        value = "base" if (tag, part) == ("pose", "frame") else "5"
        return re.sub(rf"<{tag}\b", rf'<{tag} {part}="{value}"', base, count=1)
    own = f"<{part}>{WORDS.get(part, '5')}</{part}>"
    own = '<model name="z"><link name="z"/></model>' if part == "model" else own
    if tag in HOLDERS:
        tag, inner = HOLDERS[tag][0], HOLDERS[tag][1]
        own = inner.format(own)
    if tag == "gazebo":
        return base.replace("</robot>", f'<gazebo reference="one">{own}</gazebo></robot>')
    found = re.search(rf"<{tag}\b[^>]*(?<!/)>", base)
    assert found is not None, tag
    return base[: found.end()] + own + base[found.end() :]


def fingerprint(m: kic.Mechanism) -> str:
    """Return the parts of a mechanism and its dynamics, rounded."""
    c = m.at()
    d = c.dynamics() if all(body.mass is not None for body in m.bodies) else None
    numbers = [] if d is None else [d.I, d.P, d.load, d.damping]
    numbers += [np.asarray(c.value(x)) for joint in m.joints for x in joint.valued]
    laws = [
        (
            j.name, j.type, j.stiffness, j.rest, j.damping, j.armature, j.friction, j.limits,
            j.effort_limits, j.rate_limits,
        )
        for j in m.joints
    ]  # fmt: skip
    texts = [m.name, laws, m.frames, m.bodies, m.motors, m.gravity, [(x.name, x.ratios) for x in m.couplings]]
    return repr(texts) + " ".join(np.array2string(np.asarray(x) + 0.0, precision=9) for x in numbers)


@cache
def outcome(read: Any, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the fingerprint and remarks of a file, or its error."""
    try:
        m = read(text)
        return fingerprint(m), m.remarks
    except kic.KicError as error:
        return f"error: {error}", ()


FORMATS = {
    "urdf": (kic.from_urdf, URDF, URDF_CHANGES, elements.URDF),
    "sdf": (kic.from_sdf, SDF, SDF_CHANGES, elements.SDF),
}
KEYS = [(name, key) for name, (*_, table) in FORMATS.items() for key in table.treatment]


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_every_key_has_the_effect_of_its_treatment(name, key):
    read, base, changes, table = FORMATS[name]
    kind = table.treatment[key]
    mark = "@" if "@" in key else "/"
    tag, part = key.split(mark)
    if key in changes:
        assert base.count(changes[key][0]), changes[key]
        text = base.replace(*changes[key], 1)
    else:
        text = added(base, tag, mark, part)
    before, after = outcome(read, base), outcome(read, text)
    assert not before[0].startswith("error"), before
    new = [x for x in after[1] if x not in before[1]]
    if kind == "computed":
        assert after[0] != before[0] or new
    elif kind == "error":
        assert after[0].startswith("error")
    elif kind == "no effect":
        assert after == before
    else:
        assert after[0] == before[0]
        assert any(part in remark for remark in new) or key in table.own.split(), after[1]
        if kind == "strict":
            refuses(lambda: read(text, strict=True), kic.ModelFileError, match=part)


@pytest.mark.parametrize("key", [key for name, key in KEYS if name == "urdf"])
def test_keys_that_change_a_model_of_pinocchio_change_kic(key):
    """Compare with another reader: a file that means something else there does so here, or has a remark."""
    pinocchio = pytest.importorskip("pinocchio")
    mark = "@" if "@" in key else "/"
    tag, part = key.split(mark)
    change = URDF_CHANGES.get(key)
    text = added(URDF, tag, mark, part) if change is None else URDF.replace(*change, 1)

    def peer(file: str) -> str:
        try:
            model = pinocchio.buildModelFromXML(file, mimic=True)
        except (ValueError, RuntimeError, TypeError) as error:
            return f"error {type(error).__name__}"
        data = model.createData()
        q = 0.3 * np.ones(model.nq)
        M = pinocchio.crba(model, data, q)
        effort = pinocchio.rnea(model, data, q, 0.2 * np.ones(model.nv), np.zeros(model.nv))
        dry = model.upperDryFrictionLimit if hasattr(model, "upperDryFrictionLimit") else model.friction
        bounds = (model.lowerPositionLimit, model.upperPositionLimit, model.damping, dry)
        return " ".join(np.array2string(np.asarray(x) + 0.0, precision=9) for x in (M, effort, *bounds))

    found = peer(text)
    if found != peer(URDF) and not found.startswith("error"):
        assert outcome(kic.from_urdf, text) != outcome(kic.from_urdf, URDF)


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_elements_and_attributes_have_a_remark(name):
    read, base, *_ = FORMATS[name]
    for text in (base.replace("<inertia", "<odd/><inertia", 1), base.replace("<mass", '<mass odd="1"', 1)):
        assert any("odd" in remark for remark in read(text).remarks)
        refuses(lambda text=text: read(text, strict=True), kic.ModelFileError, match="odd")


@pytest.mark.parametrize(
    ("kind", "part", "word"),
    [
        *((kind, '<limit lower="-1" upper="1"/>', "limits") for kind in ("planar", "floating", "continuous")),
        *(
            (kind, '<dynamics spring_stiffness="2"/>', "spring_stiffness")
            for kind in ("floating", "spherical")
        ),
        ("planar", '<dynamics spring_stiffness="2" spring_reference="1"/>', "spring_reference"),
        *((kind, '<limit effort="1" velocity="1"/>', "") for kind in ("planar", "floating", "continuous")),
        *(
            (kind, '<dynamics damping="2"/>', "")
            for kind in ("planar", "floating", "continuous", "spherical")
        ),
        ("fixed", '<dynamics damping="2" friction="1"/><limit lower="-1" upper="1"/>', ""),
    ],
)
def test_properties_that_a_type_of_joint_does_not_take_are_refused(kind, part, word):
    """Properties without a meaning for the type are not lost silently; those of fixed joints have no effect."""
    text = re.sub(r'(name="b" type=)"revolute"', rf'\1"{kind}"', URDF)
    text = re.sub(r'<limit lower="-2"[^>]*>', part, text)
    text = re.sub(r"<mimic[^>]*>", "", text)
    if word:
        assert any(word in remark for remark in kic.from_urdf(text).remarks)
        refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError, match=word)
    else:
        kic.from_urdf(text, strict=True)


@pytest.mark.parametrize(
    "text",
    [
        SDF.replace("<static>false<", f"<static>{word}<").replace(
            '<link name="one">',
            f'<link name="one"><gravity>{other}</gravity><velocity_decay><linear>0.00</linear></velocity_decay>',
        )
        for word, other in ((" False ", "True"), ("0", " TRUE\n"), ("FALSE", "1"), ("", ""))
    ],
)
def test_values_are_compared_by_their_meaning(text):
    reference = SDF.replace('<link name="one">', '<link name="one"><velocity_decay/>')
    assert outcome(kic.from_sdf, text) == outcome(kic.from_sdf, reference)


@pytest.mark.parametrize(
    ("old", "new", "read"),
    [
        ("<static>false<", "<static>{}<", "True"),
        ("<inertial>", '<inertial auto="{}">', "TRUE"),
        ('degrees="false"', 'degrees="{}"', " True"),
        ("<xyz>0 1 0</xyz>", "<xyz>0 1 0</xyz><use_parent_model_frame>{}</use_parent_model_frame>", "True "),
        ('<link name="one">', '<link name="one"><gravity>{}</gravity>', "False"),
    ],
)
def test_flags_are_words_in_any_case(old, new, read):
    assert outcome(kic.from_sdf, SDF.replace(old, new.format(read), 1)) == outcome(
        kic.from_sdf, SDF.replace(old, new.format(read.strip().lower()), 1)
    )
    with pytest.raises(kic.ModelFileError, match="true, false, 1 or 0"):
        kic.from_sdf(SDF.replace(old, new.format("yes"), 1))


def test_remarks_on_gazebo_extensions_name_their_owner():
    text = URDF.replace(
        "</robot>", '<gazebo reference="b"><springStiffness>3</springStiffness></gazebo></robot>'
    )
    (remark,) = (x for x in kic.from_urdf(text).remarks if "springStiffness" in x)
    assert "gazebo 'b'" in remark


@pytest.mark.parametrize("name", FORMATS)
def test_the_guide_shows_the_table(name):
    assert elements.table(FORMATS[name][3]) in GUIDE.read_text(encoding="utf-8")
