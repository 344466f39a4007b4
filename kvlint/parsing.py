"""Which format a file is of, and its documents.  Formats are imported when a file of theirs is met."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import Source

if TYPE_CHECKING:
    from kvlint.formats.document import Comment, Document

EXTENSIONS = {
    "yaml": "yaml",
    "yml": "yaml",
    "json": "json",
    "jsonc": "json",
    "toml": "toml",
    "nix": "nix",
    "sh": "shell",
    "bash": "shell",
    "zsh": "shell",
    "command": "shell",
    **dict.fromkeys(("ksh", "sbatch", "slurm", "srun", "batch", "pbs", "lsf", "qsub", "job", "sub"), "script"),
    "mk": "makefile",
    "just": "justfile",
    "service": "systemd",
    "container": "systemd",
    "conf": "conf",
    "plist": "plist",
    "env": "env",
    "dockerfile": "dockerfile",
    "modelfile": "modelfile",
    "cfg": "conf",
    "ini": "ini",
    "txt": "text",
    "lock": "text",
}
# Files that something fills in, with braces or marks of whatever kind; and those that are copied first.
FILLED_ENDINGS = (".tpl", ".tmpl", ".template", ".in", ".j2", ".jinja")
TEMPLATE_ENDINGS = (".example", ".sample", *FILLED_ENDINGS, ".dist")
_NAMES = regex(
    r"(?P<dockerfile>(?:docker|container)file(?:\..*)?)|(?P<modelfile>modelfile(?:[._-].*)?)|(?P<env>\.?env(?:\..*)?|.*\.env\..*)"
    r"|(?P<shell>\.envrc|\.(?:bash|zsh)(?:rc|env|_profile|_aliases)|\.z?profile)|(?P<makefile>(?:gnu)?makefile(?:\..*)?)"
    r"|(?P<justfile>\.?justfile)|(?P<procfile>procfile(?:\..*)?)|(?P<caddy>caddyfile(?:\..*)?)",
    re.IGNORECASE,
)
# Endings of programs and prose, whatever stands before them: `modelfile.py` is no Modelfile.
_OTHER = frozenset(
    ["py", "pyi", "go", "rs", "ts", "tsx", "js", "jsx", "c", "h", "cc", "cpp", "java", "rb", "md", "rst", "html"]
)
# What stands behind `Dockerfile.` says which image is meant; a few such words are endings of other formats as well.
_IMAGES = frozenset(["nix", "service", "container", "job", "batch", "sub", "slurm", "command"])
_DROP_IN = regex(r"(?:.*/)?[^/]+\.(?:service|container)\.d/[^/]+\.conf")
_SHEBANG = regex(r"#!.*?\b(?:nix-shell|(?:ba|da|k|mk|z|a)?sh)\b")


@lru_cache(maxsize=4096)
def kind_of(path: str) -> str | None:
    """The format by a file's name; None for a name that no format of ours has.  Files without an ending may be scripts."""
    if path.endswith(".conf") and _DROP_IN.fullmatch(path):
        return "systemd"
    name = path.rpartition("/")[2]
    bare = without_ending(name) if name.endswith(TEMPLATE_ENDINGS) else name
    stem, dot, extension = bare.rpartition(".")
    if stem in ("Dockerfile", "Containerfile") and extension in _IMAGES:
        return "dockerfile"
    if dot and stem and extension.lower() in EXTENSIONS:
        return EXTENSIONS[extension.lower()]
    if dot and extension.lower() in _OTHER:
        return None
    match = _NAMES.fullmatch(bare)
    if match and match.lastgroup is not None:
        return match.lastgroup
    return "script" if not dot else None


def without_ending(path: str) -> str:
    """A path without the endings that say that its file is a template, or is copied first."""
    if path.endswith(TEMPLATE_ENDINGS):
        for ending in TEMPLATE_ENDINGS:
            path = path.removesuffix(ending)
    return path


@dataclass(slots=True)
class Parsed:
    """A file in its format.  `documents` is empty for what is no tree (shell scripts); carriers read those."""

    source: Source
    kind: str
    documents: list[Document] = field(default_factory=list)
    templated: bool = False
    _comments: list[Comment] | None = None


TEMPLATED = regex(r"\{\{|\{%|@[A-Za-z_][\w.-]*@")


def parse(source: Source) -> Parsed | None:
    kind = kind_of(source.path) or "script"
    if kind == "script":
        if not _SHEBANG.match(source.text[:128]):
            return None
        kind = "shell"
    templated = kind == "yaml" and TEMPLATED.search(source.text) is not None
    return Parsed(source, kind, list(_documents(source, kind, templated)), templated)


def _documents(source: Source, kind: str, templated: bool) -> Iterator[Document]:
    if kind == "yaml":
        from kvlint.formats import yaml

        yield from yaml.documents(source, templated=templated)
    elif kind == "json":
        from kvlint.formats import json

        yield from json.documents(source)
    elif kind == "plist":
        from kvlint.formats import plist

        yield plist.parse(source)
    elif kind == "toml":
        from kvlint.formats import toml

        yield toml.parse(source)
