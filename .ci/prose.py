"""Check the prose of docstrings, comments, messages and pages against the writing rules.

Usage: python .ci/prose.py [FILE ...]      (default: everything that git tracks)

Rules: summaries of functions begin with an imperative verb; no sentence begins with a relative or
interrogative word; banned words and phrases do not occur.
"""

# ruff: noqa: E501, SIM102, SIM905

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

VERBS = set(
    """
    accept accumulate add adjust align allocate allow animate append apply approximate arrange assemble assign attach
    average balance begin bind bound bracket broadcast bring build cache calibrate call cancel carry cast center
    certify change check choose clamp classify clear clip close collect combine compare compile complete compose compress
    compute concatenate configure connect continue contract convert coordinate copy correct count create cross cut
    damp decide decompose define delegate delete derive describe detect determine differentiate discard discretize
    display distribute divide do draw drop eliminate embed enforce ensure enter enumerate equilibrate escape
    estimate evaluate exchange exclude execute expand export express extend extract factor fall fill filter find
    finish fit fix flag flip follow force format fuse gather generate get give group guess handle hash hide hold
    identify ignore implement import include increment index infer initialize inline insert inspect install
    integrate interpolate intersect invert iterate join keep label lay lead leave lift limit linearize link list
    load locate look loop lower make map mark mask match measure merge minimize mirror mix move multiply name
    normalize notify number obtain offset omit open order orient orthogonalize pack pad pair paint parse partition
    pass perform permute perturb pick place plan plot polish position predict prefer prepare prescribe present
    prevent print process produce project propagate prove provide prune pull push put quote raise rank read
    rearrange rebuild record reduce refine refresh register reject relax release remove rename render reorder
    repeat replace report represent request require rescale reset reshape resize resolve restart restore restrict
    return reuse reverse rewrite rotate round run sample save scale scan scatter score search select send separate
    serialize set settle shift shorten show shut shrink sign simplify simulate skip slice smooth solve sort split
    start state step stop store stretch strip style submit subtract suggest sum suppress sweep symmetrize take test
    tighten time trace track transfer transform translate transpose traverse treat trim try turn unpack unwind
    unwrap update use validate verify visit wait walk warn watch weigh weight widen wrap write yield
    """.split()
)
OPENERS = "What|Whether|Which|Who|Whom|Whose|How|As|So"
OPENING = re.compile(rf"(?:^|(?<=[.!?:;] )|(?<=[.!?]\n))({OPENERS})\b(?![^.!?]*\?)", re.M)
BANNED = {
    r"\bcan not\b": "cannot",
    r"\bCan not\b": "Cannot",
    r"\bfreedoms\b": "degrees of freedom, or dof",
    r"\bpostures?\b": "configuration",
    r"\bPostures?\b": "Configuration",
    r"\b(?:is|are|was|were) (?:asked|told) (?:for|of|by)\b": "requested",
    r"\bnobody\b": "name the case",
    r"\bwhoever\b": "name the caller",
    r"\b(?:knows|forgets|believes|wants|refuses|remembers|notices|hopes|trusts)\b": "code does not: return, raise, check, store",
    r"\bthe drawing's\b": "reference configuration",
    r"\bin the room\b": "in the package",
    r"\bdead center\b": "dead centre",
    r"\bnot-a-number\b": "NaN",
    r"\bsaid\b": "state, report, or a noun",
    r"\btold\b": "report",
    r"\bbeside one another\b": "side by side",
    r"\basked for\b": "requested",
}
BANNED_RE = [(re.compile(pattern), remedy) for pattern, remedy in BANNED.items()]
CODE_BLOCK = re.compile(r"```.*?```|~~~.*?~~~|^(?: {4}|\t)[^\n]*$|`[^`\n]*`|<[^>\n]*>", re.S | re.M)
DOCTEST = re.compile(r"^\s*(?:>>>|\.\.\.).*$|``[^`]*``|`[^`\n]*`", re.M)

Finding = tuple[int, str]


def sentences(line: int, text: str) -> Iterator[Finding]:
    """Yield what a piece of prose breaks, with line numbers."""
    for found in OPENING.finditer(text):
        yield line + text[: found.start()].count("\n"), f"sentence begins with '{found.group(1)}'"
    for pattern, remedy in BANNED_RE:
        for found in pattern.finditer(text):
            yield line + text[: found.start()].count("\n"), f"'{found.group(0)}': write {remedy}"


def is_property(node: ast.AST) -> bool:
    """Return True for a property or cached property."""
    marks = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
    return any("property" in mark for mark in marks)


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield documented nodes with their docstrings."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            if isinstance(node.body[0].value.value, str):
                yield node, node.body[0].value


def blank(match: re.Match[str]) -> str:
    """Return as many line ends as a match has, so that line numbers stay."""
    return "\n" * match.group(0).count("\n") or "x"


def python(path: Path) -> Iterator[Finding]:
    """Yield findings in a Python file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    where: set[int] = set()
    for node, constant in docstrings(tree):
        where.add(id(constant))
        prose = DOCTEST.sub(blank, str(constant.value))
        yield from sentences(constant.lineno, prose)
        first = re.match(r"\W*([A-Za-z]+)", str(constant.value))
        summary = isinstance(node, ast.FunctionDef) and not is_property(node) and path.parts[0] == "kic"
        if summary and (first is None or first.group(1).lower() not in VERBS):
            word = "" if first is None else first.group(1)
            yield constant.lineno, f"summary begins with '{word}', which is no imperative verb of the list"
    if path.parts[0] == "kic":
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in where:
                if " " in node.value.strip():
                    yield from sentences(node.lineno, DOCTEST.sub(blank, node.value))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from sentences(token.start[0], token.string.lstrip("# "))


def page(path: Path) -> Iterator[Finding]:
    """Yield findings in a Markdown page, a notebook or a model file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for k, cell in enumerate(json.loads(text)["cells"]):
            if cell["cell_type"] == "markdown":
                prose = CODE_BLOCK.sub(blank, "".join(cell["source"]))
                yield from ((k, f"cell {k}: {why}") for _, why in sentences(1, prose))
        return
    if path.suffix == ".toml":  # comments, and the prose of these keys
        kept, inside = [], False
        for line in text.split("\n"):
            starts = re.match(r"(title|about|source|drawing|description)\s*=", line) is not None
            kept.append(
                line if inside or starts or line.lstrip().startswith("#") else line.partition("  # ")[2]
            )
            inside = inside != (line.count('"""') % 2 == 1)
        text = "\n".join(kept)
    yield from sentences(1, CODE_BLOCK.sub(blank, text))


def main(names: list[str]) -> int:
    """Print the findings and return the exit code."""
    if not names:
        names = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    count = 0
    for path in map(Path, names):
        if path.suffix == ".py" and path != Path(".ci/prose.py"):
            found = python(path)
        elif path.suffix in (".md", ".ipynb") or (path.suffix == ".toml" and path.parts[0] == "models"):
            found = page(path)
        else:
            continue
        for line, why in sorted(set(found)):
            print(f"{path}:{line}: {why}")
            count += 1
    print(f"{count} findings" if count else "prose: no findings")
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
