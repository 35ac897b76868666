"""Reader of XML of unknown origin: no entities or document types, bounded size and depth, line numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from kic.errors import ModelFileError, invalid, short_repr

# a file within these bounds is read, or fails, in about 2 s
XML_BYTES_MAX, ELEMENTS_MAX, DEPTH_MAX = 10_000_000, 40_000, 200
# equals signs of a file, which bound its attributes, and attributes of an element, which parsers compare
ATTRIBUTES_MAX, ELEMENT_ATTRIBUTES_MAX = 300_000, 200
# characters of an element's text that are kept; longer text cannot be a list of numbers
TEXT_MAX = 100_000


@dataclass
class Source:
    """Text of a file, with its name in errors and remarks."""

    path: Path | None
    data: bytes
    kind: str

    @property
    def name(self) -> str:
        """Short name of the file."""
        return f"{self.kind} text" if self.path is None else self.path.name

    def location(self, line: int) -> str:
        """Return the name with a line number."""
        return f"{self.name}:{line}" if line else self.name

    def error(self, line: int, message: str, key: str = "", **numbers: Any) -> ModelFileError:
        """Return an error at a line; `key` is the tag or the argument."""
        whole = f"{self.kind} text" if self.path is None else str(self.path)
        location = f"{whole}:{line}" if line else whole
        return ModelFileError(f"{location}: {message}", path=self.path, key=key, line=line, **numbers)


@dataclass
class Element:
    """Element of a file: tag, attributes, text and children."""

    source: Source
    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def fail(self, message: str, **numbers: Any) -> NoReturn:
        """Raise an error at this element."""
        raise self.source.error(self.line, f"<{self.tag}>: {message}", self.tag, **numbers)

    def all(self, *tags: str) -> Iterator[Element]:
        """Iterate over the children with one of the tags."""
        return (child for child in self.children if child.tag in tags)

    def find(self, *path: str) -> Element | None:
        """Return the first descendant along a path of tags, or None."""
        found: Element | None = self
        for tag in path:
            found = None if found is None else next(found.all(tag), None)
        return found

    def get(self, key: str, default: str | None = None) -> str:
        """Return an attribute or the default; raise an error without either."""
        value = self.attributes.get(key, default)
        if value is None:
            self.fail(f"attribute `{key}` is missing.")
        return value

    def numbers(self, text: str, count: int, what: str, finite: bool = True) -> tuple[float, ...]:
        """Return `count` numbers of a text, none NaN, and all finite if required."""
        try:
            values = tuple(float(word) for word in text.split())
        except ValueError:
            values = ()
        if len(values) != count or any(map(isnan, values)) or (finite and not all(map(isfinite, values))):
            word = "finite number" if finite else "number"
            expected = f"a {word}" if count == 1 else f"{count} {word}s"
            self.fail(f"{what} must be {expected}, got {short_repr(text)}.")
        return values

    def vector(self, key: str, default: str | None = None, count: int = 3) -> tuple[float, ...]:
        """Return the numbers of an attribute."""
        return self.numbers(self.get(key, default), count, f"`{key}`")

    def number(self, key: str, default: str | None = None, finite: bool = True) -> float:
        """Return the number of an attribute."""
        return self.numbers(self.get(key, default), 1, f"`{key}`", finite)[0]

    def truth(self, text: str, what: str, default: bool = False) -> bool:
        """Return the value of a text that is true, false, 1 or 0; empty is the default."""
        word = text.strip().lower()
        if word not in ("", "true", "false", "1", "0"):
            self.fail(f"{what} must be true, false, 1 or 0, got {short_repr(text)}.")
        return word in ("true", "1") if word else default

    def flag(self, key: str) -> bool:
        """Return the truth value of a child or an attribute; False without either."""
        child = self.find(key)
        if child is not None:
            return child.truth(child.text, f"<{key}>")
        return self.truth(self.get(key, ""), f"`{key}`")

    def word(self, tag: str) -> str:
        """Return the text of a child without blanks, empty if there is none."""
        child = self.find(tag)
        return "" if child is None else child.text.strip()

    def content(
        self, tag: str, count: int, default: str | None = None, finite: bool = True
    ) -> tuple[float, ...]:
        """Return the numbers in the text of a child."""
        child = self.find(tag)
        if child is None and default is None:
            self.fail(f"<{tag}> is missing.")
        text = default or "" if child is None else child.text
        return (child or self).numbers(text, count, f"<{tag}>", finite)


def read_source(given: object, kind: str) -> Source:
    """Return the source at a path, or of a text that starts with "<"."""
    if isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<"):
        data = given.encode("utf-8", "surrogatepass")
        source = Source(None, data, kind)
    elif isinstance(given, str | os.PathLike) and isinstance(os.fspath(given), str):
        source = Source(Path(given), b"", kind)
        try:
            with open(given, "rb") as file:
                source.data = file.read(XML_BYTES_MAX + 1)  # a device may have no end
        except OSError as error:
            raise source.error(0, f"cannot be read: {error.strerror}.", errno=error.errno) from None
        except ValueError as error:  # an invalid path
            raise source.error(0, f"cannot be read: {error}.") from None
    else:
        raise invalid("model", "must be a path or the text of a file", given)
    if len(source.data) > XML_BYTES_MAX:
        raise source.error(
            0, f"must have at most {XML_BYTES_MAX // 10**6} MB, got more.", limit=XML_BYTES_MAX
        )
    return source


def read_root(given: object, kind: str) -> Element:
    """Return the root element of a path or a text; return a parsed one unchanged."""
    return given if isinstance(given, Element) else parse(read_source(given, kind))


def parse(source: Source) -> Element:
    """Return the root element; raise an error for document types, entities and sizes beyond the bounds."""
    if not source.data.strip():
        raise source.error(0, "is empty.")

    def check(count: int, limit: int, rule: str, line: int = 0) -> None:
        if count > limit:
            raise source.error(line, f"must {rule}.", limit=limit)

    check(source.data.count(b"="), ATTRIBUTES_MAX, f"have at most {ATTRIBUTES_MAX:,} equals signs, got more")
    parser = expat.ParserCreate()
    top = Element(source, "", {}, 0)
    open_elements, count = [top], 0

    def refuse(*_: object) -> NoReturn:
        raise source.error(
            parser.CurrentLineNumber, "must not declare a document type or entities. Remove the DOCTYPE."
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        line = parser.CurrentLineNumber
        check(count, ELEMENTS_MAX, f"have at most {ELEMENTS_MAX:,} elements, got more. Split it", line)
        deep = f"be nested at most {DEPTH_MAX} levels deep, got more. Flatten it"
        check(len(open_elements), DEPTH_MAX, deep, line)
        rule = f"have at most {ELEMENT_ATTRIBUTES_MAX} attributes in an element, got more"
        check(len(attributes), ELEMENT_ATTRIBUTES_MAX, rule, line)
        element = Element(source, tag.rpartition(":")[2], attributes, line)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def text(data: str) -> None:
        if len(open_elements[-1].text) < TEXT_MAX:  # adding to a long text takes time with its square
            open_elements[-1].text += data

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.buffer_text = True
    try:
        parser.Parse(source.data, True)
    except expat.ExpatError as error:
        raise source.error(error.lineno, f"is not XML: {expat.ErrorString(error.code)}.") from None
    except ModelFileError:
        raise
    except (LookupError, ValueError) as error:  # an unknown encoding
        raise source.error(0, f"is not XML: {error}.") from None
    return top.children[0]
