"""Jobs of the tables by subject, for pytest-benchmark; see `test_speed`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np
from humanoid import humanoid as file_of_humanoid
from scipy.spatial.transform import RigidTransform

import kic
from benchmarks import (
    couplings,
    free_base,
    loops,
    motions,
    operational,
    peers,
    redundancy,
    run,
    swings,
    timing,
)
from benchmarks.ladder import ladder
from benchmarks.timing import Work

WAYS = ("one", "one, out", "batch", "batch, out")
ARMS = {"6R hand": (peers.serial_arm, "hand"), "puma560 link6": (lambda: kic.load("puma560"), "link6")}
MOVING = {"chain of 60": lambda: peers.serial_arm(60)} | {
    name: partial(kic.load, name) for name in ("puma560", "four-bar", "gough-stewart")
}


def arm(name: str, order: int) -> dict[str, Work]:
    """Return G, H (, D) of an arm's hand, or I*, P* if the order is zero, beside the peer's."""
    make, hand = ARMS[name]
    subject = run.Arm(make(), hand, 0.0)
    if not order:
        return subject.works(subject.modeller()) | subject.peer_dynamics()
    return subject.works(subject.getter(order)) | (subject.peer_rates() if order == 2 else {})


def everyday(name: str) -> dict[str, Work]:
    """Return the public methods."""
    make, hand = ARMS[name]
    m = make()
    phi = np.linspace(-1.0, 1.0, m.dof)
    return {"coefficients": lambda: m.at(phi).coefficients(hand), "dynamics": lambda: m.at(phi).dynamics()}


def loop(case: loops.Case) -> dict[str, Work]:
    """Return G, H, I*, P* of a closed mechanism, its closing, and the peer's accelerations."""
    subject = loops.Loop(kic.load(case.model), case.of)
    theirs = subject.peers(case.closures)[0] if peers.pinocchio is not None else {}
    return {**subject.works(), **subject.closing(), **theirs}


def motion(name: str) -> dict[str, Work]:
    """Return inverse and forward dynamics."""
    m, rng = MOVING[name](), np.random.default_rng(3)
    size = (timing.BATCH, len(m.coordinates))
    states = (
        loops.Loop(m, m.bodies[-1].name).states()
        if m.mobility().cuts
        else m.at(rng.uniform(-1, 1, size)).state
    )
    return motions.works(m, states, *rng.normal(size=(2, *size)))


def task(model: str, of: str) -> dict[str, Work]:
    """Return the operational space of an arm, beside the peer's."""
    subject = operational.Task(model, of)
    return subject.works() | ({} if peers.pinocchio is None else operational.Peer(subject).works())


def step(weight: str) -> dict[str, Work]:
    """Return a control step of a redundant arm, beside the peer's."""
    subject = redundancy.Step(weight)
    return subject.works() | ({} if peers.pinocchio is None else {"peer": subject.peer()[0]})


def swing(case: swings.Case) -> dict[str, Work]:
    """Return a run and its right-hand side."""
    subject = swings.Swing(case)
    return {"run": subject.run, "right-hand side, twice": subject.right_side()}


def humanoid(mimic: bool) -> dict[str, Work]:
    """Return dynamics and coefficients with mimic joints or without."""
    return couplings.works(couplings.humanoid(mimic), "tip")


def biped(free: bool) -> dict[str, Work]:
    """Return the same of a biped on a free joint, or on sliders and hinges."""
    return couplings.works(free_base.biped(free), "pelvis")


def robot_file() -> dict[str, Work]:
    """Read a humanoid of 60 degrees of freedom with loops, move it, and find its passive ones."""
    if find_spec("mujoco") is None:
        return {}
    text = file_of_humanoid()
    m = kic.from_mjcf(text)
    ref = m.at()
    values = {name: float(ref.value(name)) for name in m.coordinates if not name.startswith("base.")}
    inputs = {"base": RigidTransform.identity(), **values, "neck_motor": 0.2}
    return {
        "read": lambda: kic.from_mjcf(text),
        "move": lambda: m.at(inputs, near=ref),
        "passive": lambda: m.replace(name="other").mobility().passive_freedoms,
    }


Subject = tuple[Callable[[], dict[str, Work]], tuple[str, ...]]
MODEL = (couplings.DYNAMICS, couplings.RATES, "inverse dynamics", "forward dynamics")
FILE = ("read", "move", "passive")
CLOSING = ("prepare_position", "at(near=…)")
# a function that returns the jobs, and their names, for each subject; peers only if they are installed
SUBJECTS: dict[str, Subject] = {
    **{f"{a}, order {n}": (partial(arm, a, n), (*WAYS, "peer")) for a in ARMS for n in (0, 2)},
    **{f"{a}, order 3": (partial(arm, a, 3), WAYS) for a in ARMS},
    **{f"{a}, everyday": (partial(everyday, a), ("coefficients", "dynamics")) for a in ARMS},
    **{c.model: (partial(loop, c), (*WAYS, *CLOSING, *c.closures)) for c in loops.CASES},
    **{
        f"ladder of {n}": (lambda n=n: loops.Loop(ladder(n), "tip").works(), ("one, out",))
        for n in loops.WINDOWS
    },
    **{
        f"{name}, motion": (
            partial(motion, name),
            tuple(f"{k}, {w}" for k in ("inverse", "forward") for w in ("fresh", "out", "batch", "tensors")),
        )
        for name in MOVING
    },
    **{f"{m} {of}, operational": (partial(task, m, of), (*WAYS, "peer")) for m, of in operational.CASES},
    **{
        f"redundancy, {w}": (
            partial(step, w),
            ("one", "one, out", "rates alone, one, out", "batch, out", "peer"),
        )
        for w in redundancy.WEIGHTS
    },
    **{f"humanoid, mimic {flag}": (partial(humanoid, flag), MODEL) for flag in (True, False)},
    **{f"biped, free {flag}": (partial(biped, flag), MODEL) for flag in (True, False)},
    "file of a humanoid": (robot_file, FILE),
    **{c.title: (partial(swing, c), ("run", "right-hand side, twice")) for c in swings.CASES},
}
PEERS = {"peer", *FILE, loops.SIX_ROWS, loops.THREE_ROWS}
