"""MJCF files and compiled models: parts that others refer to, numbers of compiled models, mutated files."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from mjcf_answers import answers, compare, different, peer_answers, schema, state, treatment
from mjcf_files import EQUALITIES, FLEX, INERTIA, REQUIRED, changed, closed_file, files, open_file
from raising import raises, refuses

import kic
from kic.io.mjcf import _Files
from kic.io.mjcf_schema import COMPUTED, PARTLY
from kic.io.xml import Source, parse

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(autouse=True)
def quiet_mujoco(tmp_path, monkeypatch):
    """Keep the log of MuJoCo's warnings out of the working directory."""
    monkeypatch.chdir(tmp_path)


HINGE = '<joint name="j" axis="0 1 0"/>'
MESH = '<asset><mesh name="m" vertex="0 0 0 .3 0 0 0 .4 0 0 0 .5 .3 .4 .1"/></asset>'
SITES = '<site name="s" pos=".3 0 0"/></body><geom name="g" type="cylinder" size=".2 .3" pos=".6 .5 .5"/>'


@pytest.mark.parametrize(
    "text",
    [
        f'{MESH}<worldbody><body name="b">{HINGE}<geom type="box" mesh="m"/></body></worldbody>',
        f'{MESH}<worldbody><body name="b">{HINGE}{INERTIA}<geom type="capsule" mesh="m"/></body></worldbody>',
        f'<worldbody><body name="b">{HINGE}{INERTIA}{SITES}<site name="w" pos="1 1 1"/></worldbody><tendon>'
        '<spatial name="t"><site site="s"/><geom geom="g"/><site site="w"/></spatial></tendon>',
        '<asset><texture name="x" type="2d" builtin="flat" width="8" height="8"/></asset><worldbody>'
        f'<light type="image" texture="x"/><body name="b">{HINGE}{INERTIA}</body></worldbody>',
        f'{MESH}<worldbody><body name="b">{HINGE}{INERTIA}<geom name="g" type="mesh" mesh="m"/></body>'
        '</worldbody><sensor><framepos objtype="geom" objname="g"/></sensor><contact>'
        '<exclude body1="b" body2="world"/></contact><custom><tuple name="t">'
        '<element objtype="geom" objname="g"/></tuple></custom>',
        # inertia from geoms although it is given, and a total mass with a fixed body
        f'<compiler inertiafromgeom="true"/>{MESH}<worldbody><body name="b">{HINGE}{INERTIA}<geom '
        'type="mesh" mesh="m"/></body></worldbody>',
        f'<compiler settotalmass="3"/>{MESH}<worldbody><body name="a"><geom type="mesh" mesh="m"/></body>'
        f'<body name="b">{HINGE}{INERTIA}</body></worldbody>',
        f'<compiler inertiagrouprange="1 2"/>{MESH}<worldbody><body name="b">{HINGE}<geom type="mesh" '
        'mesh="m"/><geom size=".1" group="1"/></body></worldbody>',
    ],
    ids=["fitted", "fitted and inertia", "wrapped", "light", "references", "from geoms", "total", "groups"],
)  # fmt: skip
def test_geometry_that_is_left_out_changes_nothing(text):
    own, peer, _ = compare(f"<mujoco>{text}</mujoco>")
    assert not different(own, peer)


def test_flexible_bodies_are_left_out_with_their_equalities():
    text = FLEX.replace("<edge", '<edge equality="true"')
    assert any("flexible" in remark for remark in kic.from_mjcf(text).remarks)
    refuses(lambda: kic.from_mjcf(text, strict=True), kic.ModelFileError)


def test_free_bodies_in_loops_are_where_the_file_has_them():
    text = f"""<mujoco><worldbody><body name="crank"><joint name="A" axis="0 1 0"/>{INERTIA}
    <site name="a" pos="0 0 .5"/></body>
    <body name="coupler" pos=".5 0 .5" quat="0 1 0 0"><freejoint name="f"/>{INERTIA}
    <site name="l" pos="-.5 0 0"/><site name="r" pos=".5 0 0"/></body>
    <body name="rocker" pos="1 0 0"><joint name="B" axis="0 1 0"/>{INERTIA}
    <site name="b" pos="0 0 .5"/></body></worldbody>
    <equality><connect site1="a" site2="l"/><connect site1="b" site2="r"/></equality></mujoco>"""
    m = kic.from_mjcf(text)
    pose = m.at().pose("coupler_frame")
    assert abs(m.at().value("A")) < 1e-12
    assert np.abs(pose.translation - [0.5, 0, 0.5]).max() < 1e-12
    assert np.abs(pose.rotation.as_matrix() - np.diag([1, -1, -1])).max() < 1e-12
    assert not any("open" in remark for remark in m.remarks)


def test_coordinates_of_a_closed_file_with_balls_move():
    """Each by 0.2, of a four-bar and two arms on a free base, against the same tree without its loop."""
    arms = "".join(
        f"""<body name="upper{k}" pos=".1 {y} .2"><joint name="shoulder{k}" type="ball"/>{INERTIA}
        <body name="lower{k}" pos="0 0 .3"><joint name="elbow{k}" axis="0 1 0"/>{INERTIA}</body></body>"""
        for k, y in enumerate((-0.2, 0.3))
    )
    tree = f"""<worldbody><body name="base" pos="0 0 1"><freejoint name="root"/>{INERTIA}{arms}
    <body name="crank"><joint name="A" axis="0 1 0"/>{INERTIA}
    <body name="coupler" pos="0 0 .2"><joint name="B" axis="0 1 0"/>{INERTIA}</body></body>
    <body name="rocker" pos=".5 0 0"><joint name="D" axis="0 1 0"/>{INERTIA}</body></body></worldbody>"""
    loop = '<equality><connect body1="coupler" body2="rocker" anchor=".5 .0 .2"/></equality>'
    names = ["root", "shoulder0", "elbow0", "shoulder1", "elbow1", "A"]
    m = kic.from_mjcf(f"<mujoco>{tree}{loop}</mujoco>", coordinates=names)
    free = m.without("equality0").replace(coordinates=[*names, "B", "D"])
    assert (m.dof, free.dof, free.mobility().cuts) == (15, 17, ())
    start = {"root": [0.1, 0.2, 1.0, 0.2, -0.3, 0.1], "A": 0.1, "elbow0": 0.4, "elbow1": -0.5}
    start |= {"shoulder0": [0.3, -0.2, 0.5], "shoulder1": [1.3, 0.6, -0.5]}
    places = [(name, k) for name, value in start.items() for k in range(np.size(value))]
    assert len(places) == m.dof
    base = m.at(start)
    for name, k in places:
        moved = np.array(start[name], dtype=float)
        moved.reshape(-1)[k] += 0.2
        values = start | {name: moved}
        c = m.at(values, near=base)
        whole = free.at(values | {joint: c.value(joint) for joint in ("B", "D")})
        for body in m.bodies:
            # closed to 1e-12 of lengths below 2, with conditions below 1e2
            difference = c.pose(body.name).as_matrix() - whole.pose(body.name).as_matrix()
            assert np.abs(difference).max() < 1e-8


@pytest.mark.parametrize("kind", REQUIRED)
def test_actuators_of_all_kinds(kind):
    m = kic.from_mjcf(open_file(kind))
    # those that act on a ball joint or a body are ignored
    assert [motor.name for motor in m.motors] == ["a", "z"][kind in ("orientation", "adhesion") :]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<body name="b" pos="1 -inf 3"><freejoint/><geom size=".1"/></body>', "b"),
        ('<body name="b"><joint/><geom size=".1"/><site name="s" euler="inf 0 90"/></body>', "s"),
        ('<body name="b"><joint name="j" pos="inf 0 0"/><geom size=".1"/></body>', "j"),
    ],
)
def test_numbers_of_mjcf_that_are_not_finite(text, name):
    loop = '<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>'
    with raises(kic.ModelFileError, name=name):
        kic.from_mjcf(f'<mujoco><worldbody>{text}<body name="a"/></worldbody>{loop}</mujoco>')


# attributes with an effect that may be infinite or are not read then: ranges, and key frames
MAY_BE_INFINITE = {"range", "actuatorfrcrange", "ctrlrange", "forcerange", "qpos"}


def test_numbers_with_an_effect_are_finite_before_mujoco_computes(monkeypatch):
    """Every attribute that MuJoCo reads as numbers, of every element, also of defaults."""

    def is_read(text, place, name, word):
        """Return False if MuJoCo says that an attribute has another form."""
        try:
            mujoco.MjSpec.from_string(changed(text, place, {name: word}))
        except (ValueError, RuntimeError) as error:
            return "bad format" not in str(error)
        return True

    numeric = []
    for path, names in schema().items():
        for name in sorted(names - MAY_BE_INFINITE):
            if path != ("asset", "model") and treatment(path, name) in (COMPUTED, PARTLY):
                first = *files(path)[0], name
                if is_read(*first, "0.5") and not is_read(*first, "abc"):  # no integer or name
                    numeric.append((path, name))
    monkeypatch.setattr(mujoco, "MjSpec", None)
    for path, name in numeric:
        for word in ("inf", "-inf", "nan", "1e400", "0 -Infinity 1"):
            for text, place in files(path):
                with raises(kic.ModelFileError, key=path[-1]) as caught:
                    kic.from_mjcf(changed(text, place, {name: word}))
                assert f"`{name}`" in caught.value.message
    assert len(numeric) > 100


@pytest.mark.parametrize("suffix", ["mjcf", "MJCF", "XML", "txt"])
def test_any_suffix_of_a_model_with_further_files(tmp_path, suffix):
    """Included files and meshes are found from the directory of the model."""
    (tmp_path / "meshes").mkdir()
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "meshes" / "m.obj").write_text(corners)
    inner = f'<mujoco><worldbody><body name="a">{HINGE}{INERTIA}</body></worldbody></mujoco>'
    (tmp_path / f"inner.{suffix}").write_text(inner)
    path = tmp_path / f"outer.{suffix}"
    path.write_text(
        f'<mujoco><compiler meshdir="meshes"/><include file="inner.{suffix}"/>'
        '<asset><mesh name="m" file="m.obj"/></asset><worldbody><body name="b"><joint name="k"/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    for given in (path, str(path), path.name):
        m = kic.from_mjcf(given)
        assert m.coordinates == ("j", "k")
        # a tetrahedron with the density of the format
        assert m.total_mass == pytest.approx(kic.from_mjcf(inner).total_mass + 1000 / 6)


@pytest.mark.parametrize(
    "key", ["range", "actuatorfrcrange", "solreflimit", "user", "ctrlrange", "forcerange"]
)
def test_numbers_that_may_be_infinite(key):
    given, motors = f'{key}="-inf inf"', key in ("ctrlrange", "forcerange")
    joint, motor = given * (not motors), given * motors
    m = kic.from_mjcf(
        f'<mujoco><size nuser_jnt="2"/><worldbody><body name="inf"><joint name="nan" {joint}/>{INERTIA}'
        f'</body></worldbody><actuator><motor joint="nan" {motor}/></actuator></mujoco>'
    )
    assert not m.limits
    assert not m.effort_limits


@pytest.mark.parametrize(
    ("pos", "options"),
    [("1e308 0 0", ""), ("1 0 0", 'timestep="0"'), ("1 0 0", 'mode="all" inttotal="1e300" interval="inf"')],
)
def test_ranges_of_actuators_are_not_simulated(pos, options):
    """MuJoCo finds the ranges of muscles by simulations, which have no end with these numbers."""
    text = (
        f'<mujoco><compiler><lengthrange {options}/></compiler><worldbody><body name="b" pos="{pos}">'
        f'<joint name="j"/>{INERTIA}</body></worldbody><actuator><muscle joint="j"/></actuator></mujoco>'
    )
    code = (
        "import contextlib, kic, sys\nwith contextlib.suppress(kic.KicError):\n    kic.from_mjcf(sys.argv[1])"
    )
    # a call that does not return cannot be interrupted
    subprocess.run([sys.executable, "-c", code, text], check=True, timeout=100)


@pytest.mark.parametrize("asset", ['<model name="x"/>', "<model/>", '<model file=""/>'])
def test_models_without_a_file(asset):
    """MuJoCo raises an error, and does not return from the next call in the process."""
    caught = refuses(lambda: kic.from_mjcf(f"<mujoco><asset>{asset}</asset></mujoco>"), kic.ModelFileError)
    assert caught.key in ("model", "file")


@pytest.mark.parametrize("element", ['<body name="b" nonsense="1"/>', "<nonsense/>"])
def test_unknown_parts_of_sections_without_attributes_have_a_remark(element):
    """MuJoCo has an error for them, but later versions may read more."""
    files = _Files(Source(None, b"", "MJCF"))
    files.count(parse(Source(None, f"<mujoco><worldbody>{element}</worldbody></mujoco>".encode(), "MJCF")))
    assert [lost for _, text, lost in files.remarks if "nonsense" in text] == [True]


def moved(m, c, timestep, seconds=0.2):
    """Return the joints after a fall in MuJoCo, and in the package."""
    model = mujoco.MjModel.from_xml_string(kic.to_mjcf(m, timestep=timestep))
    assert model.opt.timestep == timestep
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data, order = mujoco.MjData(model), kic.joint_order(m, model)
    data.qpos[:] = order.q(c)
    for _ in range(round(seconds / timestep)):
        mujoco.mj_step(model, data)
    run = m.simulate([0, seconds], near=c, integrator=kic.Integrator(rtol=1e-10, atol=1e-10))
    return data.qpos, order.q(run.configuration[-1])


CLOSED = ["four-bar", "slider-crank", "three-rrr", "bevel-wrist", "scara", "jansen-leg", "delta", "damped"]


@pytest.mark.parametrize("name", CLOSED)
def test_written_loops_are_stiff(name):
    """The error is that of the step: loops, couplings, tendons, and a weld at a joint with a law."""
    m = kic.load("four-bar" if name == "damped" else name)
    if name == "damped":
        m = replace(m, joints=[replace(joint, damping=0.01) for joint in m.joints])
    coarse, known = moved(m, m.at(), 0.002)
    fine, _ = moved(m, m.at(), 0.001)
    # of second order: 4/3 of the difference, and a margin; MuJoCo's default is off by 2e-4 or more
    bound = 20 * 4 / 3 * np.abs(coarse - fine).max()
    assert np.abs(coarse - known).max() < bound
    assert np.abs(fine - known).max() < bound / 4
    assert bound < 2e-3


def test_only_equalities_are_stiff():
    """Springs, limits and open chains keep what MuJoCo has for them."""
    pins = [kic.Point("p", "crank", (0.1, 0, 0)), kic.Point("n", "ground", (0, 1, 0))]
    m = replace(
        kic.load("four-bar"), points=pins, springs=[kic.Spring("s", ("p", "n"), stiffness=5.0, rest=0.3)]
    )
    model = mujoco.MjModel.from_xml_string(kic.to_mjcf(m, timestep=1e-3))
    plain = mujoco.MjModel.from_xml_string(kic.to_mjcf(kic.load("panda")))
    assert np.array_equal(model.eq_solref, [[2e-3, 1]] * model.neq)
    assert model.tendon_stiffness == [5.0]
    assert np.array_equal(model.jnt_solref, [[0.02, 1]] * model.njnt)
    assert np.array_equal(model.tendon_solref_lim, [[0.02, 1]])
    assert "solref" not in kic.to_mjcf(kic.load("panda"))
    assert plain.opt.timestep == mujoco.MjModel.from_xml_string("<mujoco/>").opt.timestep
    again = kic.from_mjcf(kic.to_mjcf(m), coordinates=m.coordinates, strict=True)
    assert not [remark for remark in again.remarks if "sol" in remark]


# numbers that MuJoCo derives when it compiles, and uses instead of those that they follow from
DERIVED = ("body_subtreemass", "sameframe")
COMPILED = [open_file(), *(closed_file(texts[0]) for texts in EQUALITIES.values())]


@pytest.mark.parametrize("text", COMPILED, ids=["open", *EQUALITIES])
def test_numbers_of_compiled_models(text):
    """Change each table of numbers: the answers follow, or a remark or an error says that they do not."""
    model = mujoco.MjModel.from_xml_string(text)
    tables = [key for key in dir(model) if isinstance(getattr(model, key), np.ndarray) and key[0] != "_"]
    tables = [key for key in tables if getattr(model, key).dtype.kind == "f" and getattr(model, key).size]
    at = state(model)
    before, remarks = peer_of(model, at), set(kic.from_mjcf(model).remarks)
    silent, checked = [], 0
    for key in tables:
        model = mujoco.MjModel.from_xml_string(text)
        for kind in ("body", "geom", "site"):
            getattr(model, f"{kind}_sameframe")[:] = 0  # or else MuJoCo does not use the numbers
        table = getattr(model, key)
        table += np.random.default_rng(0).uniform(0.01, 0.1, table.shape).astype(table.dtype)
        if key.endswith(("quat", "axis")):
            table /= np.linalg.norm(table, axis=-1, keepdims=True)
        try:
            if key in DERIVED or not different(before, peer_of(model, at)):
                continue
            checked += 1
            m = kic.from_mjcf(model)
        except (mujoco.FatalError, kic.ModelFileError):
            continue
        if different(*answers(model, m)) and not set(m.remarks) - remarks:
            silent.append(key)
    assert not silent
    assert checked > 8


def peer_of(model, at):
    """Return the answers of MuJoCo in a state."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = at
    return peer_answers(model, data)


ODD = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e-308", "0", "-1", "1", "", "abc", "0 0 0", "nan nan nan",
    "inf 0 0", "1e200 1e200 1e200", "0 0 0 0", "true", "false", "1e9", "b", "j", "s", "0 1", "1 0", "world",
    "é", "a.b",    "x" * 2000, "1e155", "1e-160", "1e20 -1e20 3",
)  # fmt: skip
MUTANTS = [
    *(open_file(kind) for kind in REQUIRED),
    *(closed_file(text) for texts in EQUALITIES.values() for text in texts),
    FLEX,
]


def mutated(text: str, generator: random.Random) -> str:
    """Return a file with one or two changes: odd values; elements that are removed, repeated or moved."""
    root = ElementTree.fromstring(text)
    for _ in range(generator.choice((1, 1, 1, 2))):
        pairs = [(parent, child) for parent in root.iter() for child in parent]
        parent, child = generator.choice(pairs)
        change = generator.randrange(6)
        if change < 3:
            element = generator.choice([x for x in root.iter() if x.attrib])
            element.set(generator.choice(sorted(element.attrib)), generator.choice(ODD))
        elif change == 3:
            parent.remove(child)
        elif change == 4:
            parent.append(ElementTree.fromstring(ElementTree.tostring(child)))
        else:
            other = generator.choice(pairs)[0]
            if other not in list(child.iter()):
                parent.remove(child)
                other.append(child)
    return ElementTree.tostring(root, encoding="unicode")


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))])
def test_mutated_files_are_read_or_raise_one_error(seed):
    generator = random.Random(seed)
    read = 0
    for _ in range(40):
        with suppress(kic.KicError):
            read += bool(kic.from_mjcf(mutated(generator.choice(MUTANTS), generator)))
    assert 2 < read < 36


TURNED = """<mujoco><worldbody><body name="a" pos="0.1 0.2 0.3" quat="1 0.2 0.3 0.4">{joints}
<inertial pos="0.1 0.2 0.3" mass="1" diaginertia="0.3 0.2 0.4"/>
<body name="b" pos="0.5 0.1 0" quat="1 -0.4 0.3 0.1"><joint name="T" type="ball" pos="0.1 0 0.05"/>
<inertial pos="0.1 0.2 0.3" mass="1" diaginertia="0.3 0.2 0.4"/></body></body></worldbody></mujoco>"""


SLIDE = '<joint name="{}" type="slide" axis="0 {} 1" pos="0.2 0.1 0" ref="0.3"/>'
BALL = '<joint name="B" type="ball" pos="0.1 0.3 0.2"/>'


@pytest.mark.parametrize(
    "joints",
    [
        BALL,
        '<freejoint name="F"/>',
        '<joint name="H" axis="0 1 1"/>',
        SLIDE.format("S", 1) + BALL,
        BALL + SLIDE.format("S", 1) + SLIDE.format("R", -1),
        SLIDE.format("S", 2) + BALL + SLIDE.format("R", -1),
    ],
)
def test_joints_of_turned_bodies(joints):
    """Files that were read, written and read again: bodies of written ones have the axes of the world."""
    text = TURNED.format(joints=joints)
    one = kic.from_mjcf(text)
    written = kic.to_mjcf(one)
    again = kic.from_mjcf(written)
    joints = ([(joint.name, joint.type, joint.bodies) for joint in x.joints] for x in (one, again))
    assert next(joints) == next(joints)
    rng = np.random.default_rng(6)
    for m, of in ((one, text), (one, written), (again, written), (again, kic.to_mjcf(again))):
        model = mujoco.MjModel.from_xml_string(of)
        data, order = mujoco.MjData(model), kic.joint_order(m, model)
        c = m.at({joint.name: rng.uniform(-0.8, 0.8, joint.dof).squeeze() for joint in m.joints})
        qd = rng.normal(size=m.dof)
        data.qpos[:], data.qvel[:] = order.q(c), order.v(c, qd)
        mujoco.mj_forward(model, data)
        found = np.zeros(6)
        for body in (body for body in m.bodies if body.mass):
            pose, k = c.pose(body.name), model.body(body.name).id
            assert np.abs(data.xipos[k] - pose.apply(body.com)).max() < 1e-12
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, k, found, 0)
            rows = c.coefficients([f"{body.name}.w{axis}" for axis in "xyz"], order=1)
            assert np.abs(found[:3] - rows.G @ qd).max() < 1e-12
            there = m.at(order.inputs(data.qpos)).pose(body.name)
            assert np.abs(there.as_matrix() - pose.as_matrix()).max() < 1e-12


def test_a_site_of_the_file_may_have_the_name_and_axes_of_a_written_one():
    """The frame that kic adds for the body takes the name, and no file of kic's is supposed."""
    text = (
        '<mujoco><compiler angle="radian"/><worldbody><body pos="0 0 1"><joint name="H" axis="0 1 0"/>'
        f'{INERTIA}<body name="b" pos="0.1 0.2 0.3" quat="1 1 0 0"><joint name="B" type="ball"/>'
        f'{INERTIA}<site name="b_frame" pos="0.4 0 0" quat="1 1 0 0"/></body></body></worldbody></mujoco>'
    )
    m, model = kic.from_mjcf(text), mujoco.MjModel.from_xml_string(text)
    data, c = mujoco.MjData(model), m.at({"H": 0.3, "B": [0.4, -0.2, 0.5]})
    data.qpos[:] = kic.joint_order(m, model).q(c)
    mujoco.mj_forward(model, data)
    assert np.abs(data.xipos[2] - c.pose("b").apply(m["b"].com)).max() < 1e-12


@pytest.mark.parametrize("below", ["prismatic", "revolute"])
def test_a_body_without_inertia_below_a_ball(below):
    """MuJoCo has slides below a ball in one body, and no hinges."""
    m = kic.Mechanism(
        "rod",
        [
            kic.Body("cross", mass=0.0, inertia=(0, 0, 0)),
            kic.Body("rod", mass=1.0, com=(0, 0, 2), inertia=(0.1, 0.1, 0.1)),
        ],
        [
            kic.Joint("B", "spherical", ("ground", "cross"), (0, 0, 1)),
            kic.Joint("S", below, ("cross", "rod"), (0, 0, 2), (0, 0, 1)),
        ],
    )
    if below == "revolute":
        refuses(lambda: kic.to_mjcf(m), kic.ModelError, name="cross")
        return
    model = mujoco.MjModel.from_xml_string(kic.to_mjcf(m))
    assert [model.joint(k).name for k in range(model.njnt)] == ["B", "S"]
    data, order = mujoco.MjData(model), kic.joint_order(m, model)
    c = m.at({"B": [0.3, 0.0, 0.0], "S": 0.5})
    data.qpos[:] = order.q(c)
    mujoco.mj_forward(model, data)
    assert np.abs(data.xipos[-1] - [0, -1.5 * np.sin(0.3), 1 + 1.5 * np.cos(0.3)]).max() < 1e-14
