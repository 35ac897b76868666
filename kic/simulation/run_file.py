"""Reader of run files, with checks of their contents against the format and the mechanism.

A run file is a zip archive of NumPy arrays (npz): the arrays of the run, the text of the model, and the
remaining attributes as JSON text. Sizes are checked before anything is unpacked; nothing is unpickled. A
digest detects changes.
"""

from __future__ import annotations

import io
import json
import os
from hashlib import sha256
from math import isfinite, prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from kic.errors import KicError, ModelFileError, printable
from kic.io.toml import parsed
from kic.kernels import layout as lay
from kic.mechanism.configuration import model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.files import file_name
from kic.simulation.coordinates import ACTUATOR_ARRAYS, MOTOR_ARRAYS, N_MOTOR_ENERGIES
from kic.simulation.sampling import SAMPLE_ARRAYS, ControlSamples

FORMAT = 3
ARRAYS = ("t", "q", "qd", "qdd", "effort", "state", "kinetic", "accounts", "rates", "second")
# arrays of the samples of a controller, which only runs with one have
CONTROL_ARRAYS = tuple(f"control_{key}" for key in SAMPLE_ARRAYS)
ALL_ARRAYS = (*ARRAYS, *MOTOR_ARRAYS, *ACTUATOR_ARRAYS)
TEXTS = ("model", "attributes")
# largest size of the contents, as a multiple of the file size
EXPANSION_MAX = 100
# largest length of a text (characters) and of an array's header (bytes)
STRING_LENGTH_MAX = 20_000_000
HEADER_MAX = 10_000
# largest residual of the loops, and difference between coordinates and states, in radians and shares of
# lengths; runs stay below 1e-9
RUN_CLOSURE_ATOL, VALUE_ATOL = 1e-7, 1e-6
# attributes of a run; `digest` may be left out by files that were made by hand
KEYS = (
    "format", "coordinates", "events", "stopped", "steps", "charts", "change_points", "actuators", "measured",
    "controlled",
)  # fmt: skip
OPTIONAL_KEYS = ("digest",)


class _RunFileError(KicError):
    """Reason why a file does not hold a run; `key` names the entry of the file, if any."""


def read_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arguments of `Simulation` that a run file holds.

    Raise `ModelFileError` if the file cannot be read or does not hold a run.
    """
    file_name(path)  # raises FileError
    try:
        arrays, texts = _unpacked(path)
        attributes = _attributes(texts["attributes"])
        if attributes.get("digest", digest := digest_of(arrays, texts["model"])) != digest:
            raise _RunFileError("it was changed after it was saved", key="digest")
        mechanism = parsed(texts["model"], Path(path))
        _check(mechanism, attributes, arrays)
    except OSError as error:
        raise ModelFileError(
            f"{path}: cannot be read: {error.strerror or error}.", path=path, errno=error.errno
        ) from None
    except ModelFileError:
        raise
    except (KicError, ValueError, TypeError, LookupError, ArithmeticError, EOFError, BadZipFile) as error:
        raise _no_run(path, error) from None
    except (RecursionError, NotImplementedError, MemoryError, RuntimeError) as error:  # zip, JSON, TOML
        raise _no_run(path, error) from None
    for key in ("format", "digest"):
        attributes.pop(key, None)
    (measured, controlled), control = (attributes.pop(key) for key in ("measured", "controlled")), None
    if measured is not None:
        samples = (arrays.pop(key) for key in CONTROL_ARRAYS)
        control = ControlSamples(measured, controlled, *samples)
    return {"mechanism": mechanism, "arrays": arrays, "control": control, **attributes}


def control_arrays(control: ControlSamples | None) -> dict[str, np.ndarray]:
    """Return the arrays of a controller's samples, or an empty dict without a controller."""
    keys = () if control is None else zip(CONTROL_ARRAYS, SAMPLE_ARRAYS, strict=True)
    return {name: getattr(control, key) for name, key in keys}


def digest_of(arrays: dict[str, np.ndarray], model: str) -> str:
    """Return a digest (SHA-256) of the arrays and the model of a run."""
    digest = sha256(model.encode(errors="surrogatepass"))
    for key in (*ALL_ARRAYS, *(key for key in CONTROL_ARRAYS if key in arrays)):
        digest.update(f"{key}{arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).tobytes())
    return digest.hexdigest()


def _no_run(path: Any, error: Exception) -> ModelFileError:
    why, numbers = (f": {error}", error.numbers) if isinstance(error, KicError) else ("", {})
    if isinstance(error, BadZipFile):
        why = ". Models are read by kic.load"
    message = f"'{path}' is not a valid run saved by kic{why.rstrip('.')}."
    return ModelFileError(message, **{**numbers, "path": path})


def _unpacked(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return arrays and texts of a file after a check of their unpacked size."""
    with Path(path).open("rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        with ZipFile(raw) as archive:
            members = archive.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            if sum(member.file_size for member in members) > EXPANSION_MAX * size:
                raise _RunFileError(
                    f"it would unpack to more than {EXPANSION_MAX} times its size", limit=EXPANSION_MAX
                )
            if "attributes" in names:
                _check_format(path, archive.read(members[names.index("attributes")]))
            known = (*ALL_ARRAYS, *TEXTS)
            if len(set(names)) < len(names) or not set(names) <= {*known, *CONTROL_ARRAYS}:
                raise _RunFileError("it has unknown or repeated entries")
            some = CONTROL_ARRAYS if set(names) & set(CONTROL_ARRAYS) else ()
            missing = [name for name in (*known, *some) if name not in names]
            if missing:
                raise _RunFileError(f"'{missing[0]}' is missing", key=missing[0])
            parts = {
                name: _array(name, archive.read(member)) for name, member in zip(names, members, strict=True)
            }
    texts = {name: str(parts.pop(name)) for name in TEXTS}
    return parts, texts


def _check_format(path: str | os.PathLike[str], data: bytes) -> None:
    """Check the format in a file's attributes; the other entries depend on it."""
    attributes = json.loads(str(_array("attributes", data)))
    got = attributes.get("format", FORMAT) if isinstance(attributes, dict) else FORMAT
    if got != FORMAT:
        raise ModelFileError(
            f"'{path}' is a run of format {got!r:.20}, and this version of kic reads format {FORMAT}. Load "
            "it with the version that wrote it, and export it with table().to_csv, or simulate again.",
            path=path,
            key="format",
            got=got,
            expected=FORMAT,
        )


def _array(name: str, data: bytes) -> np.ndarray:
    """Return an array of real numbers, or a text, from the bytes of an npy file."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise _RunFileError(f"'{name}' is not an array", key=name)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns_first, dtype = read(stream, max_header_size=HEADER_MAX)
    begin = stream.tell()
    if name in TEXTS:
        if dtype.kind != "U" or shape or not 0 < dtype.itemsize <= 4 * STRING_LENGTH_MAX:
            raise _RunFileError(f"'{name}' must be a string", key=name)
    elif dtype.kind != "f" or dtype.itemsize != 8 or not 1 <= len(shape) <= 2:
        raise _RunFileError(
            f"'{name}' must be an array of real numbers, got {dtype} of {shape}", key=name, got=dtype
        )
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != len(data) - begin:
        raise _RunFileError(
            f"'{name}' has {len(data) - begin} bytes, which does not match its shape {shape}", key=name
        )
    if 0 in shape:  # frombuffer rejects empty buffers
        return np.zeros(shape)
    flat = np.frombuffer(data, dtype, offset=begin).reshape(shape, order="F" if columns_first else "C")
    return flat if name in TEXTS else np.array(flat, dtype=np.float64, order="C")


def _attributes(text: str) -> dict[str, Any]:
    """Return the checked attributes of a run from their JSON text."""
    attributes = json.loads(text)
    if not isinstance(attributes, dict) or not set(KEYS) <= set(attributes) <= {*KEYS, *OPTIONAL_KEYS}:
        raise _RunFileError("its table of attributes is not that of a run")
    for key, least in (("steps", 0), ("charts", 1)):
        if type(attributes[key]) is not int or not least <= attributes[key] < 2**63:
            raise _RunFileError(f"'{key}' must be an integer ≥ {least}, got {attributes[key]!r:.20}", key=key)
    if (
        not isinstance(attributes["stopped"], str)
        or printable(attributes["stopped"]) != attributes["stopped"]
    ):
        raise _RunFileError("'stopped' must be a string without control characters", key="stopped")
    events = attributes["events"]
    for key in ("coordinates", "actuators", "measured", "controlled"):
        names = attributes[key]
        if key in ("measured", "controlled") and attributes["measured"] is None:
            continue
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _RunFileError(f"'{key}' must be a list of names", key=key)
        attributes[key] = tuple(names)
    if not isinstance(events, list) or not all(
        isinstance(event, list) and len(event) == 2 and _is_time(event[0]) and _is_index(event[1])
        for event in events
    ):
        raise _RunFileError("'events' must be pairs of a time and an integer", key="events")
    change_points = attributes["change_points"]
    if not isinstance(change_points, list) or not all(map(_is_time, change_points)):
        raise _RunFileError("'change_points' must be a list of times", key="change_points")
    attributes["events"] = tuple((float(t), i) for t, i in events)
    attributes["change_points"] = tuple(map(float, change_points))
    return attributes


def _is_time(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and isfinite(x)


def _is_index(x: Any) -> bool:
    return type(x) is int and 0 <= x < 2**63


def _check(mechanism: Mechanism, attributes: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Check that the arrays fit a run of this mechanism with these attributes."""
    model, names = model_of(mechanism), attributes["coordinates"]
    tree, moments, size = model.tree, len(arrays["t"]), len(names)
    if model.transfer(names).labels != names:
        raise _RunFileError("'coordinates' must be names of single rows", key="coordinates")
    model.check_number(None if names == model.coordinates else names)
    motors = arrays["torque"].shape[1] if arrays["torque"].ndim == 2 else -1
    if motors not in (0, len(mechanism.motors)):
        raise _RunFileError(
            f"'torque' must have a column for each of {len(mechanism.motors)} motors", key="torque"
        )
    widths = dict.fromkeys(("q", "qd", "qdd", "effort"), size) | dict.fromkeys(MOTOR_ARRAYS, motors)
    widths |= {"state": tree.state_size, "accounts": lay.N_ENERGIES + N_MOTOR_ENERGIES * bool(motors)}
    widths |= dict.fromkeys(("rates", "second"), tree.size)
    acting, measured = attributes["actuators"], attributes["measured"]
    if acting != names and model.actuators(acting, hold_all=False) != acting:
        raise _RunFileError("'actuators' must be names of single rows", key="actuators")
    widths |= dict.fromkeys(ACTUATOR_ARRAYS, len(acting) if acting != names else 0)
    shapes = {"t": (moments,), "kinetic": (moments,)} | {key: (moments, n) for key, n in widths.items()}
    if (measured is None) != (CONTROL_ARRAYS[0] not in arrays):
        raise _RunFileError("its samples of a controller are incomplete", key="measured")
    if measured is not None:
        if model.rows(measured, 1).layout.rows.labels != measured:
            raise _RunFileError("'measured' must be names of single rows", key="measured")
        controlled = attributes["controlled"]
        if controlled not in (acting, tuple(motor.name for motor in mechanism.motors) if motors else acting):
            raise _RunFileError("its controller has other actuators", key="controlled")
        count, sizes = len(arrays[CONTROL_ARRAYS[0]]), (len(measured), len(controlled))
        several = (None, *(sizes[k] for k in (0, 0, 1, 1)), None)
        shapes |= {
            key: (count,) if n is None else (count, n) for key, n in zip(CONTROL_ARRAYS, several, strict=True)
        }
    for key, shape in shapes.items():
        if arrays[key].shape != shape:
            raise _RunFileError(
                f"'{key}' must have shape {shape}, got {arrays[key].shape}", key=key, got=arrays[key].shape
            )
        nan = np.isnan(arrays[key])
        # plain sources of torque have no currents and voltages
        none = (key in MOTOR_ARRAYS and key != "torque") or key == "control_q"
        none = none and bool((nan.all(axis=0) == nan.any(axis=0)).all())
        # energies and accelerations of a diverging motion may overflow even in a valid file
        overflown = key not in ("t", "q", "qd", "state", "rates") and "digest" in attributes
        if (np.isinf(arrays[key]).any() or (nan.any() and not none)) and not overflown:
            raise _RunFileError(f"'{key}' must be finite numbers", key=key)
    t = arrays["t"]
    if not moments or (np.diff(t) <= 0).any():
        raise _RunFileError("its times must increase", key="t")
    when = np.array([*(time for time, _ in attributes["events"]), *attributes["change_points"]])
    if ((when < t[0]) | (when > t[-1])).any():
        raise _RunFileError("its events must lie within its times", key="events")
    _check_states(mechanism, names, arrays)


def _check_states(mechanism: Mechanism, names: tuple[str, ...], arrays: dict[str, np.ndarray]) -> None:
    """Check that the states close the loops and agree with the coordinates."""
    model, states = model_of(mechanism), arrays["state"]
    tree, closure = model.tree, model.closure(())
    for n in tree.balls:
        place = tree.cols[n, lay.STATE]
        length = np.linalg.norm(states[:, place : place + 4], axis=1)
        if (np.abs(length - 1) > VALUE_ATOL).any():
            raise _RunFileError("its rotations are not unit quaternions", key="state")
    residual = np.abs(closure.rows(states)[0]).max(initial=0.0)
    if not residual <= max(RUN_CLOSURE_ATOL, closure.limit, 2 * closure.transfer.tolerance):
        raise _RunFileError(
            f"its closure error is {residual:.1e}, so its states do not match its mechanism",
            residual=residual,
        )
    transfer = model.transfer(names)
    scale = transfer.scale[: transfer.size]
    error = arrays["q"] - model.coordinate_values(names, states)
    # angles of cut joints are known modulo full turns
    error = np.where(transfer.chosen.turns, error - 2 * np.pi * np.round(error / (2 * np.pi)), error)
    if not (np.abs(error) <= VALUE_ATOL * np.maximum(scale, np.abs(arrays["q"]))).all():
        raise _RunFileError("its coordinates are not those of its states", key="q")
