"""Modes of a linearized mechanism: eigenvalues, shapes and descriptions."""

from __future__ import annotations

import numpy as np

from kic.numerics.display import Batched, Summary

# share of the largest eigenvalue below which real and imaginary parts are zero: rigid-body modes have double
# eigenvalues, which are accurate to the square root of the rounding
EIGENVALUE_RTOL = 1e-7
# largest asymmetry of a stiffness from a potential, relative to its largest entry
_SYMMETRY_RTOL = 1e-9
# smallest amplitude of a coordinate, relative to the largest, in the description of a mode
_SHOWN_SHARE_MIN = 0.1


class Modes(Batched):
    """Small motions δq = Re x e^{λt} about a configuration or motion, for constant efforts.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    eigenvalues : (..., 2M)
        Eigenvalues λ per unit of time, sorted by magnitude; of a conjugate pair that with the positive
        imaginary part comes first. `natural` is sorted by ω², in another order if one of them is negative.
    shapes : (..., M, 2M)
        Columns x, each divided by its largest entry.
    natural : (..., M)
        Natural frequencies in radians per unit of time, ascending: K x = ω² I* x, without damping and
        gyroscopic terms. NaN if ω² is negative (a growing motion), or if K is not symmetric, such as under
        loads that rotate with a body.
    natural_shapes : (..., M, M)
        Shapes of the natural frequencies in columns, with unit modal mass xᵀ I* x = 1.
    squares : (..., M)
        ω², which can be negative.
    time : str
        Unit of time.

    Examples
    --------
    >>> modes = kic.load("horn-two-link").at([-1.5707963267948966, 0.0]).linearize().modes()
    >>> for line in modes.descriptions():
    ...     print(line)
    oscillates at 0.4266 Hz: shoulder 1, elbow 0.4305
    oscillates at 1.144 Hz: shoulder -0.3229, elbow 1
    """

    _one_line = ("coordinates", "batch")
    _per_member = ("natural", 1)

    def __init__(
        self,
        coordinates: tuple[str, ...],
        I: np.ndarray,
        C: np.ndarray,
        K: np.ndarray,
        turning: np.ndarray,
        time: str = "s",
    ) -> None:
        """Solve the eigenvalue problems of the matrices (..., M, M) of a `Linearization`.

        The matrix `turning` is its commutator, by which states turn into rates: d(δq)/dt = δq̇ + W δq.
        """
        self.coordinates, self.time = coordinates, time
        M = len(coordinates)
        batch = I.shape[:-2]
        known = np.isfinite(I).all((-1, -2)) & np.isfinite(C).all((-1, -2)) & np.isfinite(K).all((-1, -2))
        safe = known[..., None, None]
        W = np.where(safe, turning, 0.0)
        I, C, K = (np.where(safe, x, y) for x, y in ((I, np.eye(M)), (C, 0.0), (K, 0.0)))
        size = np.abs(K).max(axis=(-1, -2), initial=0.0)
        skew = np.abs(K - np.swapaxes(K, -1, -2)).max(axis=(-1, -2), initial=0.0)
        potential = skew <= _SYMMETRY_RTOL * size
        # with I* = L Lᵀ the generalized problem becomes a standard symmetric one
        inverse = np.linalg.inv(np.linalg.cholesky(I))
        symmetric = (K + np.swapaxes(K, -1, -2)) / 2
        squares, y = np.linalg.eigh(inverse @ symmetric @ np.swapaxes(inverse, -1, -2))
        undamped = potential & ~(C.any((-1, -2)) | W.any((-1, -2)))
        shapes = np.swapaxes(inverse, -1, -2) @ y
        has_natural = (known & potential)[..., None]
        self.squares = np.where(has_natural, squares, np.nan)
        self.natural = np.sqrt(np.where(self.squares >= 0, self.squares, np.nan))
        self.natural_shapes = np.where(has_natural[..., None], shapes, np.nan)
        self.conservative = undamped & known
        # conservative members: eigenvalues in exact pairs from the symmetric problem
        order = np.argsort(np.abs(squares), axis=-1, kind="stable")
        root = np.sqrt(np.take_along_axis(squares, order, -1).astype(complex))
        pairs = np.stack([1j * root, -1j * root], axis=-1).reshape(*batch, 2 * M)
        vectors = np.take_along_axis(shapes, order[..., None, :], -1).repeat(2, axis=-1).astype(complex)
        if not undamped.all():
            A = np.zeros((*batch, 2 * M, 2 * M))
            A[..., :M, :M], A[..., :M, M:] = W, np.eye(M)
            A[..., M:, :M], A[..., M:, M:] = -np.linalg.solve(I, K), -np.linalg.solve(I, C)
            values, states = np.linalg.eig(A)
            values, states = values.astype(complex), states.astype(complex)
            sizes = np.abs(values)
            # rounded, so that pairs of opposite values keep the order of their real parts
            ranks = (sizes / np.maximum(sizes.max(axis=-1, keepdims=True), np.finfo(float).tiny)).round(12)
            order = np.lexsort((-values.imag, values.real, ranks), axis=-1)
            values = np.take_along_axis(values, order, -1)
            states = np.take_along_axis(states[..., :M, :], order[..., None, :], -1)
            pairs = np.where(undamped[..., None], pairs, values)
            vectors = np.where(undamped[..., None, None], vectors, states)
        self.eigenvalues = np.where(known[..., None], pairs, np.nan)
        self.shapes = np.where(safe, _normalized(vectors), np.nan)

    @property
    def damping(self) -> np.ndarray:
        """Damping ratios −Re λ/|λ| (..., 2M): 0 is undamped, ±1 decays or grows without oscillation."""
        size = np.abs(self.eigenvalues)
        return -self.eigenvalues.real / np.where(size > 0, size, 1.0)

    @property
    def growth(self) -> np.ndarray:
        """Largest real part of an eigenvalue (...,), 0 within rounding."""
        size = np.abs(self.eigenvalues).max(axis=-1, initial=0.0)
        top = self.eigenvalues.real.max(axis=-1, initial=-np.inf)
        return np.where(np.abs(top) <= EIGENVALUE_RTOL * size, 0.0, top)

    def descriptions(self, index: tuple[int, ...] = ()) -> list[str]:
        """Return a line for every mode of a member, with its motion and its coordinates."""
        values, shapes = self.eigenvalues[index], self.shapes[index]
        largest = float(np.abs(values).max(initial=0.0))
        lines = []
        for value, x in zip(values, shapes.T, strict=True):
            conjugate = value.imag < 0 and abs(value.imag) > EIGENVALUE_RTOL * largest
            # real eigenvalues of a conservative mechanism come in pairs; the growing one is enough
            decaying = self.conservative[index] and value.imag == 0 and value.real < 0
            if not (conjugate or decaying):
                motion = _describe_motion(complex(value), largest, self.time)
                lines.append(f"{motion}: {_describe_shape(self.coordinates, x)}")
        return list(dict.fromkeys(lines))

    def summary(self) -> Summary:
        """Return labelled tables and descriptions of the modes."""
        sheet = Summary(f"modes of {', '.join(self.coordinates)}")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        for line in self.descriptions(index):
            sheet.say(line)
        numbers = [f"mode {k + 1}" for k in range(len(self.coordinates))]
        if np.isfinite(self.natural[index]).any():
            both = np.stack([self.natural[index], self.natural[index] / (2 * np.pi)], axis=-1)
            units = [f"rad/{self.time}", _frequency_unit(self.time)]
            sheet.matrix("natural frequencies", numbers, units, both)
            sheet.matrix(
                "their shapes, unit modal mass", self.coordinates, numbers, self.natural_shapes[index]
            )
        if not self.conservative[index]:
            values = self.eigenvalues[index]
            table = np.stack([values.real, values.imag, self.damping[index]], axis=-1)
            rows = [f"λ{k + 1}" for k in range(len(values))]
            heading = f"eigenvalues (1/{self.time}) and damping ratios"
            sheet.matrix(heading, rows, ["real", "imaginary", "ratio"], table)
        return sheet


def _normalized(vectors: np.ndarray) -> np.ndarray:
    """Divide columns by their largest entry; zero columns stay zero."""
    if not vectors.size:
        return vectors
    place = np.argmax(np.abs(vectors), axis=-2)[..., None, :]
    largest = np.take_along_axis(vectors, place, -2)
    return vectors / np.where(largest == 0, 1.0, largest)


def _frequency_unit(time: str) -> str:
    """Return the unit of cycles per unit of time."""
    return "Hz" if time == "s" else f"1/{time}"


def _describe_motion(value: complex, largest: float, time: str) -> str:
    """Return a description of the motion of a mode from its eigenvalue."""
    real, imaginary = value.real, abs(value.imag)
    aperiodic, steady = imaginary <= EIGENVALUE_RTOL * largest, abs(real) <= EIGENVALUE_RTOL * largest
    if aperiodic and steady:
        return "drifts"
    if aperiodic:
        return f"{'grows' if real > 0 else 'decays'} with time constant {1 / abs(real):.4g} {time}"
    oscillates = f"oscillates at {imaginary / (2 * np.pi):.4g} {_frequency_unit(time)}"
    if steady:
        return oscillates
    ratio = -real / abs(value)
    return f"{oscillates}, {'growing' if real > 0 else 'decaying'} (damping ratio {ratio:.4g})"


def _describe_shape(names: tuple[str, ...], x: np.ndarray) -> str:
    """Return the coordinates that move in a mode, with amplitudes and phases, as text."""
    parts = []
    for name, entry in zip(names, x, strict=True):
        if abs(entry) >= _SHOWN_SHARE_MIN:
            phase = np.degrees(np.angle(entry))
            number = f"{entry.real:.4g}" if abs(entry.imag) < 1e-6 else f"{abs(entry):.4g} at {phase:.3g}°"
            parts.append(f"{name} {number}")
    return ", ".join(parts)
