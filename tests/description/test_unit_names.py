"""Consistency of units with known names."""

from __future__ import annotations

import re

import pytest
from raising import raises

import kic
from kic.description.units import SI_VALUES, unit_ratio

TOGETHER = [
    ("m", "kg", "s", "N"),
    ("mm", "t", "s", "N"),
    ("mm", "Mg", "s", "N"),
    ("mm", "kg", "s", "mN"),
    ("mm", "kg", "ms", "kN"),
    ("mm", "g", "ms", "N"),
    ("cm", "g", "s", "dyn"),
    ("m", "t", "s", "kN"),
    ("um", "kg", "s", "µN"),
    ("km", "kg", "s", "kN"),
    ("ft", "slug", "s", "lbf"),
    ("in", "blob", "s", "lbf"),
    ("in", "lbf s²/in", "s", "lbf"),
    ("ft", "lbf s²/ft", "s", "lbf"),
]


def named(names, **other: str) -> kic.Units:
    """Return units of length, mass, time and force, some of which have other names."""
    return kic.Units(**(dict(zip(("length", "mass", "time", "force"), names, strict=True)) | other))


@pytest.mark.parametrize("names", TOGETHER, ids=" ".join)
def test_consistent_units(names) -> None:
    units = named(names)
    assert (units.length, units.mass, units.time, units.force) == names


@pytest.mark.parametrize(
    "names",
    [("in", "lb", "s", "lbf"), ("in", "lb", "s", "lb"), ("mm", "kg", "s", "kgf"), ("L", "M", "T", "F")],
    ids=" ".join,
)  # fmt: skip
def test_unknown_names_are_accepted(names) -> None:
    named(names)


@pytest.mark.parametrize(
    ("names", "product", "said"),
    [
        (("mm", "kg", "s", "N"), 1e-3, "kg mm/s² is 0.001 N. Set force = 'mN' or mass = 't', and"),
        (("m", "kg", "ms", "N"), 1e6, "kg m/ms² is 1e+06 N. Set force = 'MN' or mass = 'mg', and"),
        (("m", "g", "min", "N"), 1e-3 / 3600, "N. Set force = 'g m/min²', and give numbers in this unit."),
        (("in", "slug", "s", "lbf"), 1 / 12, "is 0.0833333 lbf. Set force = 'slug in/s²' or mass = "),
        (("in", "kg", "s", "lbf"), 0.0254 / 4.4482216152605, "or mass = 'lbf s²/in'"),
    ],
)  # fmt: skip
def test_inconsistent_units_are_errors(names, product, said) -> None:
    with pytest.raises(kic.ModelError, match=re.escape(said)) as caught:
        named(names)
    assert str(caught.value).startswith("Units: force must be mass · length / time²; ")
    assert caught.value.product == pytest.approx(product, rel=1e-12)
    # each suggested unit makes the units consistent
    remedies = re.findall(r"(force|mass) = '([^']+)'", str(caught.value))
    assert remedies
    for what, name in remedies:
        named(names, **{what: name})


def test_all_micro_signs_are_accepted() -> None:
    for what, unit in (("length", "m"), ("force", "N")):
        assert {
            SI_VALUES[what][f"{micro}{unit}"]
            for micro in ("u", "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}")
        } == {1e-6}


def test_a_file_names_its_key(tmp_path) -> None:
    path = tmp_path / "mm.toml"
    kic.load("four-bar").save(path)
    text = path.read_text(encoding="utf-8")
    head = 'units = { length = "mm", mass = "kg", time = "s", force = "N" }\n'
    path.write_text(head + re.sub(r"(?m)^units = .*\n", "", text), encoding="utf-8")
    with raises(kic.ModelFileError, key="units.force") as caught:
        kic.load(path)
    assert caught.value.key == "units.force"


# units of measurements: name, unit of the model, ratio; factors are exact or from their definition
MEASURED = [
    ("deg", "rad", 0.017453292519943295),
    ("°/s", "rad/s", 0.017453292519943295),
    ("rpm", "rad/s", 0.10471975511965977),
    ("rev/min", "rad/s", 0.10471975511965977),
    ("1/min", "rad/s", 1 / 60),
    ("deg/s^2", "rad/s²", 0.017453292519943295),
    ("m/s2", "mm/s²", 1000.0),
    ("Nmm", "N m", 1e-3),
    ("N·cm", "N m", 1e-2),
    ("mN m", "N m", 1e-3),
    ("kg m²/s²", "N m", 1.0),
    ("lbf in", "N m", 0.45359237 * 9.80665 * 0.0254),
    ("mA", "A", 1e-3),
    ("ms", "s", 1e-3),
    ("deg·s⁻¹", "rad/s", 0.017453292519943295),
    ("s-1", "rad/s", 1.0),
    ("lb", "lb", 1.0),
]


@pytest.mark.parametrize(("unit", "target", "ratio"), MEASURED)
def test_units_of_measurements(unit: str, target: str, ratio: float) -> None:
    assert unit_ratio("A", unit, target) == pytest.approx(ratio, rel=1e-14)


@pytest.mark.parametrize(
    ("unit", "target"),
    [("m", "rad"), ("N", "N m"), ("rad", "rad/s"), ("lb", "kg"), ("foo", "m"), ("A", ""), ("10 N m", "N m")],
)
def test_units_of_another_kind_are_refused(unit: str, target: str) -> None:
    with raises(kic.InputError, key="A.effort", got=unit):
        unit_ratio("A.effort", unit, target)
