"""Four-bars with coupler points on given points: `python -m tests.benchmarks.nine_points --minutes 60`.

H. Alt posed the problem in 1923. C. W. Wampler, A. P. Morgan and A. J. Sommese, "Complete solution of the
nine-point path synthesis problem for four-bar linkages", Journal of Mechanical Design 114, 1992, pp. 153-159,
found 1,442 triples of Roberts' cognates: 8,652 complex solutions, with the exchange of the two cranks.

The linkage has one configuration for each point P_j but the first, P_0. With the pivots A_k on ground,
A_k + c_k on the cranks, and P_0 + b_k = A_k + c_k on the coupler, k = 0, 1, all of them satisfy

    A_k + R(φ_kj) c_k = P_j + R(θ_j) b_k.

Slides serve as the unknown A, b and c; couplings make them equal in all configurations. The values of the
position problem are the coordinates of the points. With given pivots and five points there are 36 solutions:
A. P. Morgan, C. W. Wampler, "Solving a planar four-bar design problem using continuation", Journal of
Mechanical Design 112, 1990, pp. 544-550.

In one run, 18 loops took 17 minutes of processor time and found 8,650 solutions (99.98 %) without the use of
symmetries: members of all 1,442 sets of six, of which 1,441 were complete. The other two had large pivots.
Of the paths from there to problem 3, 8,441 arrived; 384 of their ends are real, 64 complete sets as in the
literature.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.spatial import cKDTree

import kic
from kic.analysis.positions.monodromy import GenericSolutions
from kic.kernels import layout as lay
from kic.mechanism.configuration import model_of

# pivots on ground and on the coupler, and coupler point of the reference linkage, as complex numbers
GROUND, COUPLER, POINT = np.array([0.0, 2.3]), np.array([0.86 + 0.27j, 2.6 + 1.9j]), 1.1 + 1.35j
# problem 3 of Wampler, Morgan and Sommese; 384 solutions are real, 64 triples of cognates: J. D.
# Hauenstein, F. Sottile, "Algorithm 921: alphaCertified", ACM Transactions on Mathematical Software 38, 2012
PROBLEM_3 = np.array(
    [0.25, 0.52 + 0.1j, 0.8 + 0.7j, 1.2 + 1j, 1.4 + 1.3j, 1.1 + 1.48j, 0.7 + 1.4j, 0.2 + 1j, 0.02 + 0.4j]
)
ORIGIN = np.array([POINT, np.conj(POINT)])
NUMBER = 8652
# largest difference of equal linkages
SAME_ATOL = 1e-5


def drawn_angles(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return angles (count - 1, 2) of the cranks and (count - 1,) of the coupler, from P_0 on."""
    phi = np.linspace(0, 2 * np.pi, count + 1)[1:-1]
    c, bar = COUPLER - GROUND, COUPLER[1] - COUPLER[0]
    gap = GROUND[1] - GROUND[0] - c[0] * np.exp(1j * phi)  # from the first crank to the other pivot
    length = np.abs(gap)
    corner = np.arccos((np.abs(bar) ** 2 + length**2 - np.abs(c[1]) ** 2) / (2 * np.abs(bar) * length))
    theta = np.angle(gap) + corner - np.angle(bar)
    other = np.angle((bar * np.exp(1j * theta) - gap) / c[1])
    return np.stack([phi, other], axis=1), theta


def path_problem(count: int = 9) -> tuple[kic.Mechanism, np.ndarray]:
    """Return the mechanism of the problem for a number of points, and those (count - 1,) of its drawing."""
    phi, theta = drawn_angles(count)
    c, b = COUPLER - GROUND, COUPLER - POINT
    pins = GROUND + c * np.exp(1j * phi)
    at = pins[:, 0] - b[0] * np.exp(1j * theta)
    bodies, joints, points, couplings = (
        list[kic.Body](),
        list[kic.Joint](),
        list[kic.Point](),
        list[kic.Coupling](),
    )

    def vector(z: complex) -> tuple[float, float, float]:
        return float(z.real), float(z.imag), 0.0

    def slides(name: str, a: str, b: str, place: complex, turn: float) -> None:
        bodies.append(kic.Body(f"{name}_"))
        for axis, ends, way in (("x", (a, f"{name}_"), 1), ("y", (f"{name}_", b), 1j)):
            direction = vector(way * np.exp(1j * turn))
            joints.append(kic.Joint(name + axis, "prismatic", ends, at=vector(place), axis=direction))

    def hinge(name: str, a: str, b: str, place: complex) -> None:
        joints.append(kic.Joint(name, "revolute", (a, b), at=vector(place), axis=(0, 0, 1)))

    for k in (0, 1):
        bodies.append(kic.Body(f"pivot{k}"))
        slides(f"A{k}", "ground", f"pivot{k}", GROUND[k], 0.0)
    last = count - 2
    for j in range(count - 1):
        bodies.append(kic.Body(f"coupler{j}"))
        points.append(kic.Point(f"P{j}", f"coupler{j}", at=vector(at[j])))
        for k in (0, 1):
            own = f"{k}{j}"
            bodies += [kic.Body(f"crank{own}"), kic.Body(f"pin{own}"), kic.Body(f"lug{own}")]
            hinge(f"phi{own}", f"pivot{k}", f"crank{own}", GROUND[k])
            slides(f"c{own}", f"crank{own}", f"pin{own}", pins[j, k], phi[j, k])
            hinge(f"psi{own}", f"pin{own}", f"lug{own}", pins[j, k])
            slides(f"b{own}", f"coupler{j}", f"lug{own}", pins[j, k], theta[j])
    for k, x in np.ndindex(2, 2):
        axis = "xy"[x]
        for name, j in ((name, j) for name in "bc" for j in range(last)):
            pair = f"{name}{k}{j}{axis}", f"{name}{k}{last}{axis}"
            couplings.append(kic.Coupling(f"{pair[0]}_", pair, ratios=(1, -1)))
        three = f"A{k}{axis}", f"b{k}{last}{axis}", f"c{k}{last}{axis}"
        couplings.append(kic.Coupling(f"A{k}{axis}_", three, ratios=(1, -1, 1)))
    return kic.Mechanism(f"{count} points", bodies, joints, points=points, couplings=couplings), at


def values_of(points: np.ndarray, pivots: bool = False) -> dict[str, float]:
    """Return the values of points (n,), and of the pivots of the drawing if they are given."""
    given = {
        f"P{j}.{axis}": float(x) for j, p in enumerate(points) for axis, x in (("x", p.real), ("y", p.imag))
    }
    return given | {f"A{k}{axis}": 0.0 for k in (0, 1) for axis in "xy" if pivots}


def generic_solutions(m: kic.Mechanism) -> GenericSolutions:
    """Return the complex solutions that searches of a mechanism have found."""
    (generic,) = (x for x in model_of(m.at())._prepared.values() if isinstance(x, GenericSolutions))
    return generic


def linkages(m: kic.Mechanism, states: np.ndarray) -> np.ndarray:
    """Return isotropic coordinates (n, 2, 2, 2) of states (n, S): of A and b, for both cranks; x ± iy."""
    tree, found = model_of(m.at()).tree, np.zeros((len(states), 2, 2, 2), complex)
    for k in (0, 1):
        for n, (name, drawn) in enumerate(((f"A{k}", GROUND[k]), (f"b{k}0", COUPLER[k] - POINT))):
            x, y = (states[:, tree.cols[tree.column[name + axis], lay.STATE]] for axis in "xy")
            found[:, k, n] = np.stack([drawn + x + 1j * y, np.conj(drawn) + x - 1j * y], axis=1)
    return found


def path_residuals(found: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return relative residuals (n,) of linkages (n, 2, 2, 2) at points (count - 1, 2).

    |A - P_j - R b|² = |A - P_0 - b|² is linear in exp(iθ) and exp(-iθ), the entries of R. The equations of
    both cranks give these two, and their product must be 1. No angle of the mechanism is used.
    """
    A, b = found[:, None, :, 0], found[:, None, :, 1]
    D, c = A - points[:, None], A - ORIGIN - b
    p, q = D[..., 1] * b[..., 0], D[..., 0] * b[..., 1]
    m = D.prod(axis=-1) + b.prod(axis=-1) - c.prod(axis=-1)

    def determinant(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]

    one, two = determinant(m, q) * determinant(p, m), determinant(p, q) ** 2
    return (np.abs(one - two) / (np.abs(one) + np.abs(two))).max(axis=1)


def relatives(found: np.ndarray) -> list[np.ndarray]:
    """Return the five other linkages with the coupler curves of linkages (n, 2, 2, 2) (S. Roberts, 1875)."""
    A, b = found[:, :, 0], found[:, :, 1]
    c = ORIGIN + b - A
    share = b[:, 0] / (b[:, 0] - b[:, 1])  # position of the point in the triangle of the coupler
    third = A[:, 0] + share * (A[:, 1] - A[:, 0])
    made = [found]
    for k, factor in ((0, 1 - share), (1, share)):
        cranks = (A[:, k], -c[:, k]), (third, -factor * c[:, k])
        made.append(np.stack([np.stack(crank, axis=1) for crank in cranks], axis=1))
    return [made[0][:, ::-1], *(x[:, order] for x in made[1:] for order in ([0, 1], [1, 0]))]


def classes(found: np.ndarray) -> tuple[int, int]:
    """Return the number of sets of six among linkages (n, 2, 2, 2), and of those that are complete."""

    def place(x: np.ndarray) -> np.ndarray:
        x = x.reshape(len(x), -1)
        x = x * np.log1p(np.abs(x)) / np.maximum(np.abs(x), 1e-300)  # large ones have relative errors
        return np.concatenate([x.real, x.imag], axis=1)

    tree, members = cKDTree(place(found)), np.arange(len(found))
    known = [members]
    for other in relatives(found):
        apart, index = tree.query(place(other), distance_upper_bound=SAME_ATOL)
        known.append(np.where(apart < SAME_ATOL, index, len(found)))
    first, complete = np.min(known, axis=0), np.max(known, axis=0) < len(found)
    return len(np.unique(first)), len(np.unique(first[complete]))


def report(m: kic.Mechanism) -> None:
    """Print the numbers of complex solutions of nine points, and of their sets of six."""
    generic = generic_solutions(m)
    found = linkages(m, generic.states)
    points = generic.base * generic.tracker.parameters.scale[: generic.base.size]
    left = path_residuals(found, points.reshape(-1, 2) @ [[1, 1], [1j, -1j]])
    number, complete = classes(found)
    print(f"{len(found)} complex solutions, {len(found) / NUMBER:.2%} of {NUMBER}; residual {left.max():.1e}")
    print(f"{generic.loops} loops, which lost {generic.lost} paths")
    print(f"{number} sets of cognates, {complete} of them complete: {6 * number} solutions with all cognates")


def main() -> None:
    """Search, and print numbers of solutions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="time limit of the search")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    m, _ = path_problem()
    began = time.process_time()
    modes = m.assembly_modes(
        values_of(PROBLEM_3[1:] - PROBLEM_3[0] + POINT),
        complete=True,
        starts=1,
        rng=options.seed,
        time_limit=60 * options.minutes,
        progress=True,
    )
    report(m)
    print(f"{(time.process_time() - began) / 3600:.2f} hours of processor time")
    known = modes.completeness
    print(known.statement)
    print(f"{known.finite} finite solutions of problem 3, of which {known.real} are real")


if __name__ == "__main__":
    main()
