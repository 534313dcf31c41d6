#!/usr/bin/env python3
"""Writes python/pagetide/builders.py from the schema of scenario files:
`pagetide schema | scripts/python_builders.py`.

Creates a class for each table of a scenario and for each workload, with a typed argument for each
key. The schema is generated from the tables that the loader reads, so the classes cannot differ
from it; python/tests/test_builders.py checks that the file is up to date.
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from typing import Any

WIDTH = 110

HEAD = '''"""Tables of a scenario as typed values: the arguments of `pagetide.Scenario`, as in
`pagetide.Scenario(machine=..., tasks=[...])`.

Each argument is a key of a scenario file (docs/scenario.md), under the same name; a dot or a dash
in it is `_`. An omitted argument has the default of the file. The loader checks all values when the
scenario is built.

Made by scripts/python_builders.py from the schema; do not change it here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Mapping, Sequence, TypeAlias, Union

__all__ = [
@ALL@
]

Size: TypeAlias = Union[int, str]
"""Bytes, or text like `"64MiB"`."""
Time: TypeAlias = Union[int, str]
"""Text like `"100ms"`; 0 needs no unit."""
Rate: TypeAlias = Union[int, str]
"""Text like `"500MiB/s"`."""
Percent: TypeAlias = Union[int, str]
"""Text like `"10 %"`."""
Share: TypeAlias = Union[int, str]
"""Text like `"10 %"` or `"1 in 8"`."""
Value: TypeAlias = Union[int, float, str, bool]
"""The text or the number that a control file takes."""


class _Table:
    """A table of a scenario."""

    _workload: ClassVar[str | None] = None
    _keys: ClassVar[Mapping[str, str]] = {}
    """Keys that are not called as their arguments."""

    def to_table(self) -> dict[str, Any]:
        """The keys that are set, as a scenario file has them."""
        table = {self._keys.get(name, name): value for name, value in vars(self).items() if value is not None}
        if self._workload is not None:
            table["workload"] = self._workload
        return table

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]
'''

NAMES = {"MemoryNode": "Node", "SwapTable": "Swap"}
ALIASES = {"Size", "Time", "Rate", "Percent", "Share"}
PLURALS = {"disk": "disks", "node": "nodes", "zone": "zones", "cache": "caches", "phase": "phases"}


class Schema:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.defs: dict[str, Any] = schema["$defs"]

    def type_of(self, key: dict[str, Any], name: str) -> str:
        """The type of a key's value."""
        if "$ref" in key:
            of = key["$ref"].rsplit("/", 1)[1]
            if of in ALIASES:
                return of
            target = self.defs[of]
            if of == "Sysctls":
                return "Mapping[str, Value | Sequence[int]]"
            if of == "Phase":
                return "_Table | Mapping[str, Any]"
            if of == "Swap":
                return "Size | Swap | Sequence[Size | Swap]"
            if "properties" in target:
                return NAMES.get(of, of)
            return self.type_of(target, name)
        if "const" in key:
            return f"Literal[{key['const']!r}]".replace("'", '"')
        if "enum" in key and all(isinstance(one, str) for one in key["enum"]):
            return literal(key["enum"])
        if "enum" in key:
            return "int"
        if "oneOf" in key:
            return literal([one["const"] for one in key["oneOf"]])
        if "anyOf" in key:
            # A size that needs a unit, or a time: text or a number.
            return " | ".join(sorted({self.type_of(one, name) for one in key["anyOf"]}))
        kind = key.get("type")
        if isinstance(kind, list):
            return " | ".join(sorted({self.type_of({**key, "type": one}, name) for one in kind}))
        if kind == "array":
            if "prefixItems" in key:
                parts = [self.type_of(one, name) for one in key["prefixItems"]]
                return f"tuple[{', '.join(parts)}]"
            return f"Sequence[{self.type_of(key.get('items', {'type': 'integer'}), name)}]"
        if kind == "object":
            return "Mapping[str, Any]"
        simple = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
        return simple.get(str(kind), "Value")

    def table(self, name: str, table: dict[str, Any], doc: str, workload: str | None = None) -> str:
        """The class of a table."""
        keys = {k: v for k, v in table["properties"].items() if k != "workload"}
        # Keys with dots also exist as tables of their parts.
        heads = {key.split(".")[0] for key in keys if "." in key}
        keys = {key: of for key, of in keys.items() if key not in heads}
        required = [key for key in table.get("required", []) if key in keys]
        order = ["name"] if "name" in keys else []
        order += [key for key in required if key not in order]
        order += [key for key in keys if key not in order]
        lines = [f"class {name}(_Table):", *quoted(doc, 4), ""]
        if workload is not None:
            lines.append(f'    _workload: ClassVar[str | None] = "{workload}"')
        arguments = {key: argument(key, keys[key]) for key in order}
        renamed = {own: key for key, own in arguments.items() if own != key}
        if renamed:
            lines.append("    _keys: ClassVar[Mapping[str, str]] = {")
            lines += [f'        "{own}": "{key}",' for own, key in renamed.items()]
            lines.append("    }")
        if workload is not None or renamed:
            lines.append("")
        lines.append("    def __init__(")
        lines.append("        self,")
        if "name" in keys:
            lines.append("        name: str," if "name" in required else "        name: str | None = None,")
        if [key for key in order if key != "name"]:
            lines.append("        *,")
        for key in order:
            if key == "name":
                continue
            of = self.type_of(keys[key], key)
            end = "," if key in required else " | None = None,"
            lines += broken(f"        {arguments[key]}: {of}{end}")
        lines.append("    ) -> None:")
        lines.append('        """')
        for key in order:
            text = " ".join(keys[key].get("description", "").split())
            lines += wrapped(f"{arguments[key]}: {text}".rstrip(": "), 8)
        lines.append('        """')
        for key in order:
            of = "str" if key == "name" else self.type_of(keys[key], key)
            of = of if key in required else f"{of} | None"
            lines += broken(f"        self.{arguments[key]}: {of} = {arguments[key]}")
        return "\n".join(lines)


def argument(key: str, of: dict[str, Any]) -> str:
    """The argument for a key; a list of tables gets a plural name."""
    name = PLURALS.get(key, key) if of.get("type") == "array" else key
    name = name.replace(".", "_").replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def literal(words: list[str]) -> str:
    return "Literal[" + ", ".join(json.dumps(word) for word in words) + "]"


def broken(line: str) -> list[str]:
    """The lines of an annotation. The words of a long `Literal` get their own lines."""
    if len(line) <= WIDTH:
        return [line]
    start, rest = line.split("[", 1)
    words, end = rest.rsplit("]", 1)
    fill = textwrap.TextWrapper(WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 12)
    fill.break_on_hyphens = False
    return [f"{start}[", *fill.wrap(f"{words},"), f"        ]{end}"]


def wrapped(text: str, indent: int) -> list[str]:
    """Lines of a docstring; lines after the first have an additional indentation."""
    fill = textwrap.TextWrapper(WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4))
    return fill.wrap(text.replace("\\", "\\\\"))


def quoted(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        f'"""{" ".join(text.split())}"""',
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
    )


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def render(text: dict[str, Any]) -> str:
    schema = Schema(text)
    classes: dict[str, str] = {}
    machine = schema.defs["Scenario"]["properties"]["machine"]
    classes["Machine"] = schema.table("Machine", machine, machine["description"])
    for of in [
        "Disk", "Latency", "DiskFaults", "SwapTable", "MemoryNode", "Zone", "FreeArea", "Cache", "Costs",
        "Group", "File", "Policy", "Variant", "Report", "Expect",
    ]:
        table, name = schema.defs[of], NAMES.get(of, of)
        classes[name] = schema.table(name, table, table["description"])
    task, phase = schema.defs["Task"], schema.defs["Phase"]
    doc = "A task with several phases, one after the other. A task with one is made by the class of its workload."
    several = {**task, "required": ["name", "phase"]}
    classes["Task"] = schema.table("Task", several, doc)
    common = {key: of for key, of in task["properties"].items() if key != "phase"}
    common["repeat"] = phase["properties"]["repeat"]
    common["repeat"] = {**common["repeat"], "description": "Of a phase: " + common["repeat"]["description"]}
    for one in phase["oneOf"]:
        word = one["properties"]["workload"]["const"]
        table = {
            "properties": {**one["properties"], **common},
            "required": ["name", *one["required"]],
        }
        doc = f"A task, or a phase of one, with the workload `{word}`. {one['description']}"
        classes[camel(word)] = schema.table(camel(word), table, doc, word)
    names = "\n".join(f'    "{name}",' for name in sorted(classes))
    return HEAD.replace("@ALL@", names) + "\n\n" + "\n\n\n".join(classes.values()) + "\n"


if __name__ == "__main__":
    here = __file__.rsplit("/", 2)[0]
    with open(f"{here}/python/pagetide/builders.py", "w", encoding="utf-8") as out:
        out.write(render(json.load(sys.stdin)))
