#!/usr/bin/env python3
"""Writes python/pagetide/builders.py, and its names in the package's `__all__`, from the schema of
scenario files: `pagetide schema | scripts/python_builders.py`.

Creates a dataclass for each table of a scenario and for each workload, with a typed attribute for
each key. The schema is generated from the tables that the loader reads, so the classes cannot differ
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

Each attribute is a key of a scenario file (docs/scenario.md), under the same name; a dot or a dash
in it is `_`. An omitted attribute has the default of the file. The loader checks all values when
the scenario is built.

Made by scripts/python_builders.py from the schema; do not change it here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Mapping, Sequence, TypeAlias, Union

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda of: of

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


def _key(name: str) -> Any:
    """An omitted attribute whose key has another name."""
    return field(default=None, metadata={"key": name})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class _Table:
    """A table of a scenario."""

    _workload: ClassVar[str | None] = None

    def __init_subclass__(cls, workload: str | None = None) -> None:
        cls._workload = workload
        dataclass(kw_only=True, repr=False)(cls)

    def _given(self) -> dict[Any, Any]:
        of: Any = fields(self)  # type: ignore[arg-type]
        return {it: getattr(self, it.name) for it in of if getattr(self, it.name) is not None}

    def to_table(self) -> dict[str, Any]:
        """The keys that are set, as a scenario file has them."""
        table = {it.metadata.get("key", it.name): value for it, value in self._given().items()}
        return table if self._workload is None else {**table, "workload": self._workload}

    def __repr__(self) -> str:
        given = (f"{it.name}={value!r}" for it, value in self._given().items())
        return f"{type(self).__name__}({', '.join(given)})"
'''

NAMES = {"MemoryNode": "Node", "SwapTable": "Swap"}
ALIASES = {"Size", "Time", "Rate", "Percent", "Share"}
PLURALS = {"disk": "disks", "node": "nodes", "zone": "zones", "cache": "caches", "phase": "phases"}


class Schema:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.defs: dict[str, Any] = schema["$defs"]
        # Tables that a key has, in the order in which they were met.
        self.tables: list[str] = []

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
                self.note("SwapTable")
                return "Size | Swap | Sequence[Size | Swap]"
            if isinstance(target.get("additionalProperties"), dict):
                return "Mapping[str, Any]"
            if "properties" in target:
                self.note(of)
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

    def note(self, table: str) -> None:
        if table not in self.tables:
            self.tables.append(table)

    def table(
        self, name: str, table: dict[str, Any], doc: str, base: str = "_Table", workload: str | None = None
    ) -> str:
        """The class of a table."""
        keys = {k: v for k, v in table["properties"].items() if k != "workload"}
        # Keys with dots also exist as tables of their parts.
        heads = {key.split(".")[0] for key in keys if "." in key}
        keys = {key: of for key, of in keys.items() if key not in heads}
        required = [key for key in table.get("required", []) if key in keys]
        order = ["name"] if "name" in keys else []
        order += [key for key in required if key not in order]
        order += [key for key in keys if key not in order]
        bases = base if workload is None else f'{base}, workload="{workload}"'
        lines = [f"class {name}({bases}):", *quoted(doc, 4)]
        for key in order:
            of, own = self.type_of(keys[key], key), argument(key, keys[key])
            if key in required:
                default = "" if own == key else f' = field(metadata={{"key": "{key}"}})'
                if key == "name":
                    default = " = field(kw_only=False)"
            else:
                of = f"{of} | None"
                default = " = None" if own == key else f' = _key("{key}")'
                if key == "name":
                    default = " = field(default=None, kw_only=False)"
            lines += broken(f"    {own}: {of}{default}")
            lines += quoted(keys[key].get("description", "").replace("\\", "\\\\"), 4)
        return "\n".join(lines)


def argument(key: str, of: dict[str, Any]) -> str:
    """The argument for a key; a list of tables gets a plural name."""
    name = PLURALS.get(key, key) if of.get("type") == "array" else key
    name = name.replace(".", "_").replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def literal(words: list[str]) -> str:
    return "Literal[" + ", ".join(json.dumps(word) for word in words) + "]"


def broken(line: str) -> list[str]:
    """The lines of an attribute. The words of a long `Literal` get their own lines."""
    if len(line) <= WIDTH:
        return [line]
    start, rest = line.split("[", 1)
    words, end = rest.rsplit("]", 1)
    return [f"{start}[", *filled(f"{words},", 8), f"    ]{end}"]


def quoted(text: str, indent: int) -> list[str]:
    """The lines of a docstring."""
    text = " ".join(text.split())
    return filled(f'"""{text}"""', indent) if text else []


def filled(text: str, indent: int) -> list[str]:
    blanks = " " * indent
    return textwrap.wrap(
        text, WIDTH, initial_indent=blanks, subsequent_indent=blanks, break_on_hyphens=False
    )


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def render(text: dict[str, Any]) -> str:
    schema = Schema(text)
    classes: dict[str, str] = {}
    machine = schema.defs["Scenario"]["properties"]["machine"]
    classes["Machine"] = schema.table("Machine", machine, machine["description"])
    task, phase = schema.defs["Task"], schema.defs["Phase"]
    common = {key: of for key, of in task["properties"].items() if key != "phase"}
    of_scenario = schema.defs["Scenario"]["properties"].items()
    for key, of in [*(it for it in of_scenario if it[0] not in ("machine", "task")), *common.items()]:
        schema.type_of(of, key)
    # The list grows by the tables of these tables.
    for of in schema.tables:
        table, name = schema.defs[of], NAMES.get(of, of)
        classes[name] = schema.table(name, table, table["description"])
    doc = "The keys of all tasks."
    classes["_Task"] = schema.table("_Task", {"properties": common, "required": ["name"]}, doc)
    several = {"properties": {"phase": task["properties"]["phase"]}, "required": ["phase"]}
    doc = "A task with several phases, one after the other. A task with one is made by the class of its workload."
    classes["Task"] = schema.table("Task", several, doc, "_Task")
    repeat = phase["properties"]["repeat"]
    repeat = {"repeat": {**repeat, "description": "Of a phase: " + repeat["description"]}}
    doc = "A task, or a phase of one, with one workload."
    classes["_Workload"] = schema.table("_Workload", {"properties": repeat}, doc, "_Task")
    for one in phase["oneOf"]:
        word = one["properties"]["workload"]["const"]
        doc = f"A task, or a phase of one, with the workload `{word}`. {one['description']}"
        own = {key: of for key, of in one["properties"].items() if key not in common}
        classes[camel(word)] = schema.table(camel(word), {**one, "properties": own}, doc, "_Workload", word)
    names = filled(" ".join(f'"{name}",' for name in sorted(classes) if name[0] != "_"), 4)
    return HEAD.replace("@ALL@", "\n".join(names)) + "\n\n" + "\n\n\n".join(classes.values()) + "\n"


if __name__ == "__main__":
    package = __file__.rsplit("/", 2)[0] + "/python/pagetide"
    made = render(json.load(sys.stdin))
    with open(f"{package}/builders.py", "w", encoding="utf-8") as out:
        out.write(made)
    with open(f"{package}/__init__.py", "r+", encoding="utf-8") as out:
        before, rest = out.read().split("__all__ += [", 1)
        names = made.split("__all__ = [", 1)[1].split("]", 1)[0]
        out.seek(0)
        out.write(before + "__all__ += [" + names + rest[rest.index("]") :])
        out.truncate()
