"""Texts of model files with random errors. ``python -m tests.spoiling COUNT [SEED]`` loads many of them."""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import process_time

import kic
from kic.io.library import find

ODD = (
    "", "nan", "-inf", "1e400", "9" * 400, "true", '""', '"a.b"', "[]", "{}", "[[", "]]", "=", ",", "a.b.c",
    '"\\ud800"', '"\\u0000"', '"ground"', "1979-05-27", "'''", '"""', "#", "\n", "[1, 2, 3]", "dh = 1",
)  # fmt: skip
TOKEN = re.compile(r'\s+|"(?:\\.|[^"\\\n])*"|[\w.+-]+|.', re.DOTALL)
SDF = """<sdf version="1.7"><model name="m"><link name="a"/><link name="b"><pose>1 0 0 0 0.1 0</pose>
<inertial><mass>2</mass><pose>0.1 0 0 0 0 0</pose><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>
</inertial></link><link name="c"><pose relative_to="b">0 1 0 0 0 0</pose></link>
<frame name="f" attached_to="b"><pose>0 0 1 0 0 0</pose></frame>
<joint name="A" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz>
<limit><lower>-1</lower><upper>2</upper></limit><dynamics><damping>0.1</damping></dynamics></axis></joint>
<joint name="B" type="prismatic"><parent>b</parent><child>c</child><axis><xyz expressed_in="a">1 0 0</xyz>
</axis></joint><joint name="C" type="ball"><parent>a</parent><child>c</child></joint></model></sdf>
"""


def texts(kind: str) -> list[str]:
    """Return sound texts of a kind of files."""
    if kind == "toml":
        names = "four-bar", "horn-two-link", "bevel-wrist"
        return [find(name).read_text(encoding="utf-8") for name in names]
    if kind == "sdf":
        return [SDF]
    return [kic.to_urdf(kic.load(name)).text for name in ("horn-two-link", "puma560")]


def spoiled(rng: random.Random, text: str) -> bytes:
    """Return a text with some tokens and bytes changed."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 2, 5])):
        i = rng.randrange(len(tokens))
        tokens[i : i + rng.randrange(3)] = [rng.choice([*ODD, *tokens])]
    content = bytearray("".join(tokens).encode())
    for _ in range(rng.choice([0, 0, 1, 4])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def search(count: int, seed: int) -> Counter[str]:
    """Return the outcomes of many files; exceptions of other libraries are printed."""
    rng, total, slowest = random.Random(seed), Counter[str](), 0.0
    kinds = {kind: texts(kind) for kind in ("toml", "urdf", "sdf")}
    with tempfile.TemporaryDirectory() as folder:
        for k in range(count):
            kind = ("toml", "urdf", "sdf")[k % 3]
            path = Path(folder) / f"m.{kind}"
            path.write_bytes(spoiled(rng, rng.choice(kinds[kind])))
            start = process_time()
            try:
                kic.load(path)
                outcome = "loaded"
            except kic.KicError as error:
                outcome = type(error).__name__
            except Exception as error:
                outcome = f"raw {type(error).__name__}"
                Path(f"spoiled-{seed}-{k}.{kind}").write_bytes(path.read_bytes())
                print(k, kind, outcome, error, flush=True)
            spent = process_time() - start
            if spent > max(slowest, 1.0):
                print(k, kind, f"{spent:.1f} s", flush=True)
                Path(f"slow-{seed}-{k}.{kind}").write_bytes(path.read_bytes())
            slowest = max(slowest, spent)
            total[f"{kind} {outcome}"] += 1
    print(f"slowest {slowest:.2f} s")
    return total


if __name__ == "__main__":
    print(dict(search(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
