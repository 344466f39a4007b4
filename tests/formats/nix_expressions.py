"""Random Nix expressions, well-typed but for a few, to compare the evaluator with Nix itself.

`expression(seed)` is one expression, the same for the same seed.  Names in scope carry their type, so that most expressions
have a value; `wild` ones do not care.
"""

from __future__ import annotations

import random
from collections.abc import Callable

NAMES = ["a", "b", "c", "d", "window", "port", "model", "x1", "foo-bar", "q'"]
WORDS = [
    "vllm",
    "--port",
    "qwen3",
    "a b",
    "",
    "8080",
    "/models/x",
    "it's",
    "é",
    "$",
    "$$",
    "{x}",
    "\\n",
    "'",
    '"',
    "#",
    "\t",
]


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scope: list[tuple[str, str]] = []

    def pick(self, options: list[Callable[[], str]]) -> str:
        return self.random.choice(options)()

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def of(self, kind: str, depth: int) -> str:
        """An expression of a type: int, float, str, bool, null, ints, strs, set."""
        names = [name for name, known in self.scope if known == kind and self.visible(name, kind)]
        if names and self.chance(3):
            return self.random.choice(names)
        if depth <= 0:
            return self.atom(kind)
        if self.chance(6):
            return self.scoped(kind, depth)
        make: Callable[[int], str] = getattr(self, kind)
        return make(depth - 1)

    def visible(self, name: str, kind: str) -> bool:
        """The innermost binding of the name has this type."""
        return next(known for found, known in reversed(self.scope) if found == name) == kind

    def atom(self, kind: str) -> str:
        rand = self.random
        if kind == "int":
            return str(rand.choice([0, 1, 2, 3, 7, 64, 1024, 131072, rand.randrange(10**6), 2**40]))
        if kind == "float":
            return rand.choice(
                ["0.5", "1.5", "0.9", "2.25", ".25", "1.0e3", "12.", "0.0", f"{rand.randrange(1, 999)}.75"]
            )
        if kind == "bool":
            return rand.choice(["true", "false"])
        if kind == "str":
            return self.quoted(rand.choice(WORDS))
        if kind == "ints":
            return "[ " + " ".join(self.atom("int") for _ in range(rand.randrange(4))) + " ]"
        if kind == "strs":
            return "[ " + " ".join(self.atom("str") for _ in range(rand.randrange(4))) + " ]"
        if kind == "set":
            return "{ " + " ".join(f"{name} = {self.atom('int')};" for name in self.some_names(3)) + " }"
        return "null"

    def some_names(self, most: int) -> list[str]:
        return self.random.sample(NAMES, self.random.randrange(most + 1))

    def quoted(self, text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${").replace("\t", "\\t")
        return f'"{escaped}"'

    def group(self, kind: str, depth: int) -> str:
        return f"({self.of(kind, depth)})"

    def scoped(self, kind: str, depth: int) -> str:
        return self.pick(
            [
                lambda: self.let(kind, depth),
                lambda: self.with_(kind, depth),
                lambda: self.called(kind, depth),
                lambda: self.selected(kind, depth),
                lambda: (
                    f"(if {self.of('bool', depth - 1)} then {self.of(kind, depth - 1)} else {self.of(kind, depth - 1)})"
                ),
                lambda: f"(assert {self.of('bool', 0)} || true; {self.of(kind, depth - 1)})",
                lambda: f'(builtins.head [ {self.group(kind, depth - 1)} (throw "not needed") ])',
            ]
        )

    def bindings(self, depth: int, recursive: bool) -> tuple[str, list[tuple[str, str]]]:
        made: list[str] = []
        bound: list[tuple[str, str]] = []
        before = list(self.scope)
        for name in self.some_names(3):
            kind = self.random.choice(["int", "str", "bool", "ints", "set", "float"])
            made.append(f"{name} = {self.of(kind, depth - 1)};")
            bound.append((name, kind))
            if recursive:
                self.scope.append((name, kind))
        self.scope = before
        self.random.shuffle(made)
        return " ".join(made), bound

    def closed(self) -> list[tuple[str, str]]:
        """Leave only names that a new recursive scope cannot capture: none, to stay well-typed."""
        outer, self.scope = self.scope, []
        return outer

    def let(self, kind: str, depth: int) -> str:
        outer = self.closed()
        text, bound = self.bindings(depth, recursive=True)
        self.scope = outer + bound
        body = self.of(kind, depth - 1)
        self.scope = outer
        return f"(let {text} in {body})"

    def with_(self, kind: str, depth: int) -> str:
        text, bound = self.bindings(depth, recursive=False)
        taken = {name for name, _ in self.scope}
        outer = self.scope
        self.scope = [pair for pair in bound if pair[0] not in taken] + outer
        body = self.of(kind, depth - 1)
        self.scope = outer
        return f"(with {{ {text} }}; {body})"

    def called(self, kind: str, depth: int) -> str:
        other = self.random.choice(["int", "str", "ints", "set"])
        name = self.random.choice(NAMES)
        argument = self.group(other, depth - 1)
        default = self.of(other, depth - 1)
        outer = list(self.scope)
        self.scope.append((name, other))
        body = self.of(kind, depth - 1)
        self.scope = outer
        return self.random.choice(
            [
                f"(({name}: {body}) {argument})",
                f"(({{ {name} }}: {body}) {{ {name} = {argument}; }})",
                f"(({{ {name} ? {default}, ... }}: {body}) {{ }})",
                f'(({{ {name} ? throw "no", ... }}@all: {body}) {{ {name} = {argument}; more = 1; }})',
                f"((all@{{ {name}, ... }}: {body}) ({{ {name} = 0; }} // {{ {name} = {argument}; }}))",
                f'((ignored: {name}: {body}) (throw "not needed") {argument})',
            ]
        )

    def selected(self, kind: str, depth: int) -> str:
        value = self.of(kind, depth - 1)
        name, other = self.random.sample(NAMES, 2)
        return self.random.choice(
            [
                f"{{ {name} = {value}; }}.{name}",
                f"({{ {name}.{other} = {value}; }}.{name}.{other})",
                f"({{ {name}.{other} = 1; {name}.z = {value}; }}.{name}.z or null)",
                f"({{ {other} = 1; }}.{name} or ({value}))",
                f'({{ "{name}" = {value}; }}.${{"{name}"}})',
                f"(rec {{ {other} = 1; inherit ({{ {name} = {value}; }}) {name}; }}.{name})",
                f"(builtins.getAttr {self.quoted(name)} {{ {name} = {value}; }})",
                f"((builtins.listToAttrs [ {{ name = {self.quoted(name)}; value = {value}; }} ]).{name})",
            ]
        )

    def int(self, depth: int) -> str:
        rand = self.random
        two = ["add", "sub", "mul", "bitAnd", "bitOr", "bitXor"]
        return self.pick(
            [
                lambda: f"({self.of('int', depth)} {rand.choice(['+', '-', '*', '+', '-'])} {self.of('int', depth)})",
                lambda: f"{self.of('int', depth)} / {rand.choice(['1', '2', '3', '(-2)', '7', '1024'])}",
                lambda: f"(-{self.group('int', depth)})",
                lambda: f"(builtins.length {self.group('ints', depth)})",
                lambda: f"(builtins.stringLength {self.group('str', depth)})",
                lambda: f"(builtins.foldl' (x: y: x {rand.choice(['+', '-'])} y) 0 {self.group('ints', depth)})",
                lambda: f"(builtins.elemAt ({self.of('ints', depth)} ++ [ 5 6 ]) {rand.randrange(2)})",
                lambda: f"(builtins.{rand.choice(['floor', 'ceil'])} {self.group('float', depth)})",
                lambda: f"(builtins.{rand.choice(two)} {self.group('int', depth)} {self.group('int', depth)})",
                lambda: f"(builtins.fromJSON {self.quoted(str(rand.randrange(-50, 10**6)))})",
                lambda: f"(builtins.compareVersions {self.version()} {self.version()})",
                lambda: f"(builtins.length (builtins.attrNames {self.group('set', depth)}))",
            ]
        )

    def version(self) -> str:
        part = lambda: self.random.choice(["1", "2", "10", "0", "pre", "a", "rc1"])  # noqa: E731
        return '"' + self.random.choice([".", "-"]).join(part() for _ in range(self.random.randrange(1, 4))) + '"'

    def float(self, depth: int) -> str:
        sign = self.random.choice(["+", "-", "*"])
        return self.pick(
            [
                lambda: f"({self.of('float', depth)} {sign} {self.of('float', depth)})",
                lambda: f"({self.of('int', depth)} {sign} {self.of('float', depth)})",
                lambda: f"({self.of('float', depth)} {sign} {self.of('int', depth)})",
                lambda: f"({self.of('float', depth)} / {self.random.choice(['2', '0.5', '4.0'])})",
                lambda: f"(-{self.group('float', depth)})",
            ]
        )

    def str(self, depth: int) -> str:
        scalar = self.random.choice(["int", "float", "bool", "str", "ints", "strs"])
        return self.pick(
            [
                lambda: f"({self.of('str', depth)} + {self.of('str', depth)})",
                lambda: self.interpolated(depth),
                lambda: self.indented(depth),
                lambda: f"(toString {self.group(scalar, depth)})",
                lambda: f"(builtins.concatStringsSep {self.atom('str')} {self.group('strs', depth)})",
                lambda: (
                    f'(builtins.substring {self.random.randrange(5)} {self.random.randrange(-1, 6)} "llama-server")'
                ),
                lambda: f'(builtins.replaceStrings [ "a" "l" " " ] [ "b" "LL" "_" ] {self.group("str", depth)})',
                lambda: (
                    f"(builtins.toJSON {self.group(self.random.choice(['int', 'str', 'ints', 'strs', 'set', 'bool']), depth)})"
                ),
                lambda: (
                    f"(builtins.typeOf {self.group(self.random.choice(['int', 'str', 'set', 'ints', 'bool', 'float']), depth)})"
                ),
                lambda: "(baseNameOf " + self.random.choice(["/a/b.c", '"x/y/"', '"z"']) + ")",
            ]
        )

    def interpolated(self, depth: int) -> str:
        text = self.random.choice(WORDS).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text} ${{{self.of("str", depth)}}}{self.random.choice(["", " ", "$", "-x", "$$"])}"'

    def indented(self, depth: int) -> str:
        lines = []
        for _ in range(self.random.randrange(1, 5)):
            indent = " " * self.random.choice([0, 2, 4, 4, 6])
            text = self.random.choice(
                ["", "serve", "''${X}", "'''", "''\\n", "$$", "a  b", "\t", "'x'", "''\\\\", "  "]
            )
            hole = f"${{{self.of('str', depth)}}}" if self.chance(3) else ""
            lines.append(indent + self.random.choice([text + hole, hole + text]))
        start = self.random.choice(["\n", " \n", "", " "])
        body = start + "\n".join(lines) + self.random.choice(["", "\n", "\n  ", " "])
        return f"''{body}''" if not body.endswith(("'", "$")) else f"''{body} ''"

    def bool(self, depth: int) -> str:
        kind = self.random.choice(["int", "str", "float", "ints", "strs"])
        sign = self.random.choice(["<", ">", "<=", ">=", "==", "!="])
        other = "set" if self.chance(3) else kind
        return self.pick(
            [
                lambda: f"({self.of(kind, depth)} {sign} {self.of(kind, depth)})",
                lambda: f"({self.of('int', depth)} {sign} {self.of('float', depth)})",
                lambda: f"({self.of(kind, depth)} {self.random.choice(['==', '!='])} {self.of(other, depth)})",
                lambda: f"({self.of('bool', depth)} {self.random.choice(['&&', '||', '->'])} {self.of('bool', depth)})",
                lambda: f"(!{self.group('bool', depth)})",
                lambda: f"({self.group('set', depth)} ? {self.random.choice(NAMES)})",
                lambda: f"(builtins.elem {self.group('int', depth)} {self.group('ints', depth)})",
                lambda: f"(builtins.{self.random.choice(['any', 'all'])} (x: x > 3) {self.group('ints', depth)})",
                lambda: (
                    f'({self.of("bool", depth)} || (throw "maybe"))' if self.chance(3) else '(false && (throw "no"))'
                ),
            ]
        )

    def ints(self, depth: int) -> str:
        items = " ".join(self.group("int", depth) for _ in range(self.random.randrange(3)))
        return self.pick(
            [
                lambda: f"[ {items} ]",
                lambda: f"({self.of('ints', depth)} ++ {self.of('ints', depth)})",
                lambda: f"(map (x: x * 2 + {self.of('int', depth)}) {self.group('ints', depth)})",
                lambda: f"(builtins.filter (x: x > {self.atom('int')}) {self.group('ints', depth)})",
                lambda: f"(builtins.genList (i: i * {self.atom('int')}) {self.random.randrange(4)})",
                lambda: f"(builtins.sort (x: y: x {self.random.choice('<>')} y) {self.group('ints', depth)})",
                lambda: f"(builtins.concatLists [ {self.group('ints', depth)} {self.group('ints', depth)} ])",
                lambda: f"(builtins.concatMap (x: [ x (x + 1) ]) {self.group('ints', depth)})",
                lambda: f"(builtins.tail ([ 0 ] ++ {self.of('ints', depth)}))",
                lambda: f"(builtins.partition (x: x > 2) {self.group('ints', depth)}).right",
            ]
        )

    def strs(self, depth: int) -> str:
        items = " ".join(self.group("str", depth) for _ in range(self.random.randrange(3)))
        return self.pick(
            [
                lambda: f"[ {items} ]",
                lambda: f"({self.of('strs', depth)} ++ {self.of('strs', depth)})",
                lambda: f"(map toString {self.group('ints', depth)})",
                lambda: f'(map (x: "--${{x}}") {self.group("strs", depth)})',
                lambda: f"(builtins.attrNames {self.group('set', depth)})",
                lambda: f"(builtins.sort builtins.lessThan {self.group('strs', depth)})",
                lambda: f"(builtins.splitVersion {self.version()})",
            ]
        )

    def set(self, depth: int) -> str:
        return self.pick(
            [
                lambda: f"{{ {self.bindings(depth, recursive=False)[0]} }}",
                lambda: self.recursive(depth),
                lambda: f"({self.of('set', depth)} // {self.of('set', depth)})",
                lambda: f"(builtins.mapAttrs (n: v: [ n v ]) {self.group('set', depth)})",
                lambda: f'(builtins.removeAttrs {self.group("set", depth)} [ "a" "b" ])',
                lambda: f"(builtins.intersectAttrs {self.group('set', depth)} {self.group('set', depth)})",
                lambda: (
                    f"{{ a.b = {self.of('int', depth)}; a.c.d = {self.of('str', depth)}; a.e = {self.of('set', depth)}; }}"
                ),
                lambda: f"{{ ${{{self.of('str', depth)}}} = {self.of('int', depth)}; ${{null}} = 1; }}",
                lambda: f'(builtins.groupBy (x: if x > 5 then "big" else "small") {self.group("ints", depth)})',
                lambda: f"(builtins.fromJSON (builtins.toJSON {self.group('set', depth)}))",
            ]
        )

    def recursive(self, depth: int) -> str:
        outer = self.closed()
        text, _ = self.bindings(depth, recursive=True)
        self.scope = outer
        return f"(rec {{ {text} }})"

    def wild(self, depth: int) -> str:
        """Anything beside anything, without parentheses: precedence, coercions and errors."""
        kinds = ["int", "str", "bool", "ints", "set", "float", "null", "strs"]
        signs = ["+", "-", "*", "/", "++", "//", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "->"]
        first = self.of(self.random.choice(kinds[:7]), depth) if depth else self.atom(self.random.choice(kinds))
        parts = [self.random.choice(["", "", "!", "-"]) + first]
        kind = self.random.choice(kinds)
        for _ in range(self.random.randrange(1, 4)):
            parts += [self.random.choice(signs), self.random.choice(["", "", "", "!", "-"]) + self.atom(kind)]
        return " ".join(parts)

    def null(self, depth: int) -> str:
        return "null"


def expression(seed: int) -> str:
    """One expression; every tenth is wild."""
    generator = Generator(seed)
    depth = 1 + seed % 5
    if seed % 10 == 9:
        return generator.wild(depth % 3)
    return generator.of(generator.random.choice(["int", "float", "str", "bool", "ints", "strs", "set"]), depth)
