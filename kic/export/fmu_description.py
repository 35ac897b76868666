"""Model description of an FMU: variables with units, and their structure."""

from __future__ import annotations

import re
from math import isnan, prod
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kic.analysis.sensitivity import find_parameter
from kic.description.units import SI_VALUES, Units, row_unit
from kic.export.questions import Export
from kic.mechanism.configuration import model_of

# meaning of `branch` here, where the nearby state is the last accepted one
_BRANCH = "a number if the step from the last accepted state is proved to stay in its assembly mode, or NaN"
# step of the co-simulation unless the importer sets it, in seconds
_STEP_SIZE = 1e-3
# exponents of length, mass, time, force and rad
_LENGTH, _MASS, _TIME, _FORCE, _ANGLE = (tuple(int(k == n) for k in range(5)) for n in range(5))
# characters of quoted names; a percent sign begins the code of any other
_QUOTED = "!#$&()*+,-./:;<>=?@[]^{}|~ '\"\\"
# exponents of the units of fields of parts; those of springs and dampers depend on the joint
_PARAMETER_UNITS = {
    "at": _LENGTH, "com": _LENGTH, "mass": _MASS, "inertia": (2, 1, 0, 0, 0), "force": _FORCE,
    "moment": (1, 0, 0, 1, 0), "gravity": (1, 0, -2, 0, 0),
}  # fmt: skip


def variables(export: Export) -> tuple[list[dict[str, str]], dict[str, tuple[int, ...]]]:
    """Return the attributes of the variables in the order of `fmi3.c`, and the exponents of their units."""
    m, names, near = export.mechanism, export.coordinates, export.inputs[-1].default
    assert near is not None  # for the type checker
    made: list[dict[str, str]] = []
    units: dict[str, tuple[int, ...]] = {}

    def add(name: str, kind: str, about: str, unit: tuple[int, ...] = (), **more: str) -> None:
        own = dict(zip(("causality", "variability"), kind.split(), strict=True), description=about)
        if unit:
            own["unit"] = _unit_name(m.units, unit)
            units[own["unit"]] = unit
        made.append({"name": name, "valueReference": str(len(made)), **own, **more})

    add("time", "independent continuous", "time", _TIME)
    values = model_of(m).coordinate_values(names, near[None])[0].real.tolist()
    turning = [row_unit(m, name) == "rad" for name in names]
    for order, (key, word) in enumerate((("q", "value"), ("qd", "rate"), ("qdd", "acceleration"))):
        for k, name in enumerate(names):
            length, mass, time, force, rad = _ANGLE if turning[k] else _LENGTH
            more = {"start": repr((values[k], 0.0)[order]), "initial": "exact"} if order < 2 else {}
            more |= {"derivative": str(len(made) - len(names))} if order else {}
            unit = (length, mass, time - order, force, rad)
            add(_structured(key, name), "output continuous", f"{word} of {name}", unit, **more)
    for k, name in enumerate(names):
        unit = (int(turning[k]), 0, 0, 1, 0)
        add(_structured("effort", name), "input continuous", f"effort at {name}", unit, start="0.0")
    for a in export.inputs:
        if a.name == "parameters" and a.default is not None:
            for name, value in zip(a.labels, a.default.tolist(), strict=True):
                found = _PARAMETER_UNITS.get(find_parameter(m, name).key, ())
                add(_structured(a.name, name), "parameter tunable", a.about, found, start=repr(value))
    step = _STEP_SIZE / SI_VALUES["time"].get(m.units.time, 1.0)
    add("step_size", "parameter fixed", "largest step of the co-simulation", _TIME, start=repr(step))
    for a in export.outputs:
        if a.name in ("residual", "branch", "guard"):
            add(a.name, "local continuous", _BRANCH if a.name == "branch" else a.about)
    return made, units


def model_description(export: Export, name: str, token: str, version: str, derivatives: bool) -> str:
    """Return the text of modelDescription.xml."""
    m, (own, units) = export.mechanism, variables(export)
    root = Element("fmiModelDescription", fmiVersion="3.0", modelName=m.name, instantiationToken=token)
    root.set("description", f"Forward dynamics in {', '.join(export.coordinates)}")
    root.attrib |= {"generationTool": f"kic {version}", "variableNamingConvention": "structured"}
    common = {"modelIdentifier": name, "canGetAndSetFMUState": "true"}
    if derivatives:
        common |= {"providesDirectionalDerivatives": "true", "providesAdjointDerivatives": "true"}
    SubElement(root, "ModelExchange", common, needsCompletedIntegratorStep="true")
    SubElement(root, "CoSimulation", common, canHandleVariableCommunicationStepSize="true")
    listed = SubElement(root, "UnitDefinitions")
    for unit, exponents in units.items():
        SubElement(SubElement(listed, "Unit", name=unit), "BaseUnit", _base_unit(m.units, exponents))
    listed = SubElement(root, "ModelVariables")
    for v in own:
        SubElement(listed, "Float64", v)
    outputs, listed = [v for v in own if v["causality"] == "output"], SubElement(root, "ModelStructure")
    for kind, found in (
        ("Output", outputs),
        ("ContinuousStateDerivative", [v for v in outputs if "derivative" in v]),
        ("InitialUnknown", [v for v in outputs if "start" not in v]),
    ):
        for v in found:
            SubElement(listed, kind, valueReference=v["valueReference"])
    return text_of(root)


def text_of(root: Element) -> str:
    """Return an XML document as text."""
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _structured(key: str, name: str) -> str:
    """Return the name of a scalar by the rules of structured names (FMI 3.0, 2.4.7.5.1).

    Quoted names allow few characters besides ASCII letters; others are percent-encoded.
    """
    for part in name.split("."):
        if re.fullmatch(r"[A-Za-z_]\w*", part, re.ASCII):
            key += f".{part}"
        elif re.fullmatch(r"\d+", part, re.ASCII):
            key += f"[{part}]"
        else:
            escaped = re.sub(r"""(['"\\])""", r"\\\1", part)
            key += f".'{quote(escaped, safe=_QUOTED)}'"
    return key


def _unit_name(units: Units, exponents: tuple[int, ...]) -> str:
    """Return the name of a unit, such as "N.m" or "rad/s2"."""
    names = ("rad", units.force, units.mass, units.length, units.time)
    powers = [exponents[k] for k in (4, 3, 1, 0, 2)]
    parts = [
        ".".join(
            f"{name}{'' if n * sign == 1 else n * sign}"
            for name, n in zip(names, powers, strict=True)
            if n * sign > 0
        )
        for sign in (1, -1)
    ]
    return "/".join(part for part in parts if part)


def _base_unit(units: Units, exponents: tuple[int, ...]) -> dict[str, str]:
    """Return exponents of SI units and the factor; empty for units of unknown size."""
    length, mass, time, force, rad = exponents
    sizes = [
        SI_VALUES[key].get(getattr(units, key), float("nan")) ** n
        for key, n in zip(("length", "mass", "time", "force"), exponents, strict=False)
    ]
    factor = prod(sizes)
    if isnan(factor):
        return {}
    found = {"kg": mass + force, "m": length + force, "s": time - 2 * force, "rad": rad}
    return {key: str(n) for key, n in found.items() if n} | {"factor": repr(factor)}
