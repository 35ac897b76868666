"""Elements and attributes of MJCF, with the treatment of each by `from_mjcf`."""

from __future__ import annotations

from collections.abc import Mapping

COMPUTED, PARTLY, QUIET = "computed", "partly", "no effect"
REMARKED, STRICT, ERROR = "remarked", "strict", "error"
TREATMENTS = {
    COMPUTED: "Results follow it, or the compiler of MuJoCo does, whose result is read.",
    PARTLY: "Computed where kic has a counterpart, else ignored with a remark, an error of a strict reader.",
    QUIET: "Without effect on kinematics, dynamics and exact constraints.",
    REMARKED: "Ignored with a remark: limits of tendons' efforts and of activations.",
    STRICT: "Ignored with a remark where it has an effect, and an error of a strict reader.",
    ERROR: "An error of every reader.",
}
# any attribute, of an element that has no effect as a whole
ANY = "*"

_PLACE = "pos quat axisangle xyaxes zaxis euler"
_SOFT = "solref solimp"
# by the section and the element: the attributes of each treatment
SCHEMA: dict[str, dict[str, str]] = {
    "mujoco": {COMPUTED: "model"},
    "compiler": {
        COMPUTED: (
            "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass coordinate eulerseq "
            "fitaabb fusestatic inertiafromgeom inertiagrouprange meshdir settotalmass strippath"
        ),
        QUIET: (
            "conflict discardvisual passthrough savecanonical savecompiled saveinertial texturedir usethread"
        ),
    },
    "compiler/lengthrange": {QUIET: ANY},
    "option": {
        COMPUTED: "actuatorgroupdisable gravity",
        STRICT: "density viscosity",
        # wind needs a fluid; the others belong to solvers, contacts and sensors
        QUIET: (
            "ccd_iterations ccd_tolerance cone impratio integrator iterations jacobian ls_iterations "
            "ls_tolerance magnetic noslip_iterations noslip_tolerance o_friction o_margin o_solimp o_solref "
            "sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance wind"
        ),
    },
    "option/flag": {
        COMPUTED: "actuation clampctrl constraint damper equality frictionloss gravity limit spring",
        QUIET: (
            "autoreset contact diagexact energy eulerdamp filterparent fwdinv invdiscrete ipc "
            "island midphase multiccd nativeccd override refsafe sensor sleep speculative warmstart"
        ),
    },
    "size": {QUIET: ANY},
    "statistic": {QUIET: ANY},
    "visual": {QUIET: ANY},
    "default": {COMPUTED: "class"},
    "include": {COMPUTED: "file prefix"},
    "plugin": {ERROR: ANY},
    "extension": {},
    "asset": {},
    "asset/mesh": {
        COMPUTED: "builtin face file inertia params refpos refquat scale vertex",
        QUIET: "class content_type material maxhullvert name normal smoothnormal texcoord",
    },
    "asset/hfield": {QUIET: ANY},
    "asset/skin": {QUIET: ANY},
    "asset/texture": {QUIET: ANY},
    "asset/material": {QUIET: ANY},
    "asset/model": {COMPUTED: "file name", QUIET: "content_type"},
    "worldbody": {},
    "worldbody/body": {
        COMPUTED: f"childclass name {_PLACE}",
        STRICT: "gravcomp mocap",
        QUIET: "fuse simple sleep user",
    },
    "worldbody/frame": {COMPUTED: f"childclass name {_PLACE}"},
    "worldbody/replicate": {COMPUTED: "count euler offset sep"},
    "worldbody/inertial": {COMPUTED: f"diaginertia fullinertia mass {_PLACE}"},
    "worldbody/joint": {
        COMPUTED: "armature axis class frictionloss name pos ref type",
        # polynomials; springs and limits of free and ball joints; ranges of efforts without 0
        PARTLY: (
            "actuatorfrclimited actuatorfrcrange damping limited range springdamper springref stiffness"
        ),
        STRICT: "springyield",
        # compensated gravity is remarked at the body
        QUIET: "actuatorgravcomp group margin solimpfriction solimplimit solreffriction solreflimit user",
    },
    "worldbody/freejoint": {COMPUTED: "align name", QUIET: "group"},
    "worldbody/geom": {
        COMPUTED: f"class density fitscale fromto group hfield mass mesh shellinertia size type {_PLACE}",
        # contacts; fluids are remarked at the options
        QUIET: (
            "adhesion castshadow conaffinity condim contype fluidcoef fluidshape friction gap margin "
            f"material name priority rgba {_SOFT} solmix surfacevel user"
        ),
    },
    "worldbody/site": {
        COMPUTED: f"class fromto mesh name type {_PLACE}",
        QUIET: "group material rgba size user",
    },
    "worldbody/camera": {QUIET: ANY},
    "worldbody/light": {QUIET: ANY},
    "worldbody/attach": {COMPUTED: "body frame model prefix"},
    "worldbody/flexcomp": {ERROR: "file", STRICT: ANY},
    "deformable": {},
    "deformable/flex": {STRICT: ANY},
    "deformable/skin": {QUIET: ANY},
    "contact": {QUIET: ANY},
    "tendon": {},
    "tendon/spatial": {
        COMPUTED: "class name",
        # straight tendons between two sites are springs and dampers
        PARTLY: "damping springlength stiffness",
        REMARKED: "actuatorfrclimited actuatorfrcrange",
        STRICT: "armature frictionloss limited range springyield",
        QUIET: (
            "group margin material rgba solimpfriction solimplimit solreffriction solreflimit user width"
        ),
    },
    "tendon/fixed": {
        COMPUTED: "class name",
        REMARKED: "actuatorfrclimited actuatorfrcrange",
        STRICT: "armature damping frictionloss limited range springlength springyield stiffness",
        QUIET: "group margin solimpfriction solimplimit solreffriction solreflimit user",
    },
    "tendon/site": {COMPUTED: "site"},
    "tendon/geom": {PARTLY: "geom sidesite"},
    "tendon/pulley": {PARTLY: "divisor"},
    "tendon/joint": {COMPUTED: "coef joint"},
    "equality": {},
    "equality/connect": {COMPUTED: "active anchor body1 body2 class name site1 site2", QUIET: _SOFT},
    "equality/weld": {
        COMPUTED: "active anchor body1 body2 class name relpose site1 site2 torquescale",
        QUIET: _SOFT,
    },
    "equality/joint": {COMPUTED: "active class joint1 joint2 name", PARTLY: "polycoef", QUIET: _SOFT},
    "equality/tendon": {COMPUTED: "active class name", PARTLY: "polycoef tendon1 tendon2", QUIET: _SOFT},
    "equality/flex": {STRICT: ANY},
    "equality/flexstrain": {STRICT: ANY},
    "actuator": {},
    # kinds with a control law are remarked as ideal motors
    "actuator/*": {
        COMPUTED: "class name",
        # transmissions by joints with one coordinate and fixed tendons; the others are remarked
        PARTLY: (
            "armature ctrllimited ctrlrange damping forcelimited forcerange gear group joint jointinparent "
            "tendon"
        ),
        REMARKED: "actlimited actrange",
        STRICT: (
            "actdim actearly area bias biasprm biastype body cogging controller cranklength cranksite "
            "dampratio delay diameter dynprm dyntype ffrange force fpmax fvmax gain gainprm gaintype imax "
            "inductance inheritrange input ki kp kv lmax lmin lugre motorconst nominal posrange range "
            "refsite resistance saturation "
            "scale site slewmax slidersite tausmooth thermal timeconst velrange vmax"
        ),
        QUIET: "interp lengthrange nsample user",
    },
    "sensor": {QUIET: ANY},
    "custom": {QUIET: ANY},
    "keyframe": {},
    "keyframe/key": {
        COMPUTED: "name qpos",  # starts of the search that closes loops
        QUIET: "act ctrl mpos mquat plastic qvel time",
    },
}
_NUMBERS = (
    "anchor armature axis axisangle boundinertia boundmass coef damping density diaginertia divisor euler "
    "fitscale frictionloss fromto fullinertia gear gravity mass offset params polycoef pos quat ref refpos "
    "refquat relpose scale settotalmass size springdamper springlength springref stiffness torquescale "
    "vertex xyaxes zaxis"
)
# attributes whose numbers must be finite where they are computed; ranges may be infinite
FINITE = frozenset(_NUMBERS.split())

# attributes of elements, each with its treatment
ATTRIBUTES = {
    key: {name: treatment for treatment, names in entry.items() for name in names.split()}
    for key, entry in SCHEMA.items()
}
ACTUATORS = (
    "motor", "position", "velocity", "intvelocity", "orientation", "pid", "general", "damper", "cylinder",
    "muscle", "adhesion", "dcmotor",
)  # fmt: skip
ATTRIBUTES |= {f"actuator/{kind}": ATTRIBUTES["actuator/*"] for kind in ACTUATORS}
# elements of <default>, with those whose attributes they give
_DEFAULTS = {
    **dict.fromkeys(("joint", "geom", "site", "camera", "light"), "worldbody"),
    **dict.fromkeys(("mesh", "texture", "material"), "asset"),
    **dict.fromkeys(ACTUATORS, "actuator"),
    "pair": "contact",
    "equality": "equality/connect",
    "tendon": "tendon/spatial",
}


def attributes_of(section: str, tag: str, above: Mapping[str, str] | None = None) -> Mapping[str, str] | None:
    """Return the attributes of an element with their treatment, or None for an unknown element.

    `section` is the tag of the root's child that contains the element, empty for such a child. `above` has
    the attributes of the containing element.
    """
    if tag in ("include", "plugin"):  # in any section
        return ATTRIBUTES[tag]
    if above and ANY in above:
        return above
    if section == "default":
        if tag == "default":
            return ATTRIBUTES["default"]
        section = _DEFAULTS.get(tag, "default")
        if "/" in section:
            return ATTRIBUTES[section]
    if section and ANY in ATTRIBUTES.get(section, {}):
        return ATTRIBUTES[section]
    return ATTRIBUTES.get(f"{section}/{tag}" if section else tag)
