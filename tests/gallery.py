"""The gallery of the README: `python -m tests.gallery` draws it into notebooks/gallery."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import kic
from kic.plotting.figures import Picture

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks" / "gallery"


@dataclass(frozen=True)
class Piece:
    """A picture of the gallery.

    Attributes
    ----------
    name : str
        Name of its file.
    shows : str
        Alternative text.
    code : str
        Python statements separated by semicolons; the last one returns the picture.
    """

    name: str
    shows: str
    code: str

    @property
    def path(self) -> str:
        """Path of the file in the README."""
        return f"notebooks/gallery/{self.name}.png"

    def draw(self) -> Picture:
        """Return the picture."""
        first, _, last = self.code.rpartition("; ")
        names = {"kic": kic, "np": np}
        exec(first, names)
        picture: Picture = eval(last, names)
        return picture

    def bytes(self) -> io.BytesIO:
        """Return the picture as the content of a PNG file."""
        with TemporaryDirectory() as place:
            return io.BytesIO(self.draw().save(Path(place) / "picture.png").read_bytes())


PIECES = (
    Piece(
        "four-bar",
        "A four-bar with its coupler curve, a velocity vector and names",
        'm = kic.load("four-bar"); turn = m.path({"A": np.linspace(0, 2 * np.pi, 97)}); '
        'm.at({"A": 2.2}).draw(names=True).trace("tip", along=turn).velocity([2.0], of="tip")',
    ),
    Piece(
        "jansen-leg",
        "Theo Jansen's leg with the path of its foot",
        'm = kic.load("jansen-leg"); turn = m.path({"A": np.linspace(0, 2 * np.pi, 97)}); '
        'm.at().draw().trace("foot", along=turn)',
    ),
    Piece(
        "gough-stewart",
        "A Gough-Stewart platform with the names of its joints",
        'kic.load("gough-stewart").at().draw(names=True)',
    ),
    Piece(
        "panda",
        "A Panda arm with the velocity ellipsoid of its flange",
        'c = kic.load("panda").at(); c.draw().ellipsoid(c.ellipsoid(["flange.x", "flange.y", "flange.z"]))',
    ),
    Piece(
        "three-finger-hand",
        "A hand of three fingers that grips a ball within friction, with the forces at the fingertips",
        'c = kic.load("three-finger-hand").at(); grasp = c.grasp("ball"); '
        "f = c.joint_forces(effort=grasp.motion(forces=grasp.grip(safety=1.5)).effort); "
        'c.draw().forces(f["tip1"]).forces(f["tip2"]).forces(f["tip3"])',
    ),
    Piece(
        "bricard",
        "Bricard's linkage, six hinges that move although the mobility formula predicts zero degrees of "
        "freedom",
        'kic.load("bricard").path({"theta6": np.linspace(np.pi / 2, 1.25, 4)}).draw()',
    ),
    Piece(
        "quadruped",
        "A quadruped on four feet, its twelve actuators in vermilion",
        'kic.load("quadruped").draw()',
    ),
    Piece(
        "peaucellier",
        "Peaucellier's linkage, with the straight path of its tracer",
        'm = kic.load("peaucellier"); way = m.path({"C": np.linspace(0.9, 1.6, 41)}); '
        'm.at().draw().trace("tracer", along=way)',
    ),
    Piece(
        "workspace",
        "A map of the transmission of a five-bar over the positions of its tip, with its singular curve",
        "x, y = np.linspace(0, 40, 81), np.linspace(-10, 30, 81); "
        'kic.load("five-bar").sweep({"tip.x": x, "tip.y": y}, "transmission").plot()',
    ),
    Piece(
        "run",
        "Angle and rate of a freely swinging four-bar over time",
        'm = kic.load("four-bar"); m.simulate(3.0, near=m.at({"A": 0.5})).plot()',
    ),
)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for piece in PIECES:
        piece.draw().save(ROOT / piece.path)


if __name__ == "__main__":
    main()
