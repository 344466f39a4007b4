"""The bundled facts of known models, one row a repository, found by bisection in a sorted file.

A lookup reads a few dozen blocks of the file, whatever its size.  Rows are facts in this project's own form, with their
source; scripts/build_models.py makes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlint.compiled import DIRECTORY, load
from kvlint.facts import Range, Unknown
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.models.config import NESTED, POSITIONS, positions, text_config
from kvlint.models.config import architecture as read_architecture
from kvlint.models.config import dtype as read_dtype
from kvlint.models.weights import Quantization, quantization, weight_bytes
from kvlint.patterns import regex
from kvlint.records import dataclass, replace

if TYPE_CHECKING:
    import re

# Labels of repositories whose group size is not known: 32 to 128 weights share a scale and a zero.
LABELS = {
    "AWQ-4bit": Quantization("awq", 4 + Fraction(20, 128), 4 + Fraction(20, 32)),
    "GPTQ-Int4": Quantization("gptq", 4 + Fraction(20, 128), 4 + Fraction(20, 32)),
    "GPTQ-Int8": Quantization("gptq", 8 + Fraction(24, 128), 8 + Fraction(24, 32)),
}

# What an organisation adds to the name of a model of its own that it tuned.
TUNED = regex(r"([^/]+/.+)-(?:it|instruct|chat)")

# Names that say that a weight has eight bits; that all of them do is not certain, embeddings often have sixteen.
EIGHT_BITS = regex(r"(?i)(?:^|[-_.])(?:fp8|float8|int8|w8a8|w8a16|8bit)(?:[-_.]|$)")
SIXTEEN_BITS = regex(r"(?i)(?:^|[-_.])(?:bf16|fp16|f16|bfloat16|float16)(?:[-_.]|$)")

# Names that say that a weight has fewer bits, or leave it to the file.
FEWER_BITS = regex(
    r"(?i)(?:^|[-_./])(?:(?:u?int|nf|(?:mx|nv)?fp|i?q)[1-7](?![0-9])|w[1-7]a|[1-7](?:\.[0-9]+)?[-_]?(?:bit|bpw)"
    r"|(?:awq|gptq|bnb|exl[23]|gguf|hqq|aqlm|quip|auto-?round)(?![a-z0-9]))"
)

# How a repository of GGUF files is named after the model: the name, how it was made smaller, and the format.
OF_GGUF = regex(
    r"(?P<name>.+?)(?:[-_.](?:qat|mtp|i1|imatrix|ud|iq[1-4]_\w+|q[2-8]_\w+|mxfp4(?:_moe)?|bf16|f16|fp16))*[-_]gguf"
)

_PART = regex(r"[-.]\d{5}-of-\d{5}$")  # of a file that was split

# How a repository for MLX is named after the model; a recipe behind the bits leaves their number.
OF_MLX = regex(r"(?P<name>.+?)(?P<mlx>[-_.]mlx)?[-_.](?:(?P<bits>[2-8])[-_]?bit|bf16|fp16)(?:[-_]dwq(?:[-_.]\w+)*)?")
# Bits of a weight beside its own: a 16-bit scale and offset for each group of 128, 64 (the default) or 32.
OF_GROUPS = (Fraction(32, 128), Fraction(32, 64), Fraction(32, 32))

# What a scraped table writes where it finds no length under the usual key.
UNSTATED = 4096

COMPILED = DIRECTORY / "models-catalogue.tsv"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one repository or file.

    `confidence`: real config.json, transcribed, transformers default, same shape, scraped, weights only, given.
    `parameters`: exact count of the served model; `hub_parameters`: the hub's own count (drafts, vision, packed words included).
    `file_bytes`: exact size of the repository's weights.  `own`: dtype and quantization are of this repository itself; an alias
    borrows shape and context from `like` and states neither.  `like_layout`: how `like` is quantized, which a copy may keep.
    """

    id: str
    architecture: Architecture | Unknown
    source: str
    confidence: str
    parameters: int | None = None
    text_parameters: int | None = None
    hub_parameters: int | None = None
    file_bytes: int | None = None
    dtype: str | None = None
    quantization: Quantization | None = None
    context: int | None = None
    like: str | None = None
    own: bool = True
    label: str | None = None
    like_layout: Quantization | None = None

    @property
    def kv_cache_dtype(self) -> str | None:
        """What the checkpoint makes `auto` mean; None where it says nothing."""
        return self.quantization.kv_cache if self.quantization else None

    def weight_bytes(self) -> int | Range | Unknown:
        """Bytes of one copy of the weights, as far as this repository's own facts determine them."""
        if self.file_bytes is not None:
            return self.file_bytes
        if isinstance(self.architecture, Unknown):
            return self.architecture
        if self.own:
            return weight_bytes(self.parameters, self.architecture, self.quantization)
        return self.borrowed_bytes(self.architecture)

    def borrowed_bytes(self, shape: Architecture) -> Range | Unknown:
        """What a count borrowed with the shape bounds: a labelled layout, or 8 to 16 bits where nothing speaks for fewer.

        Layouts below 8 bits pack several weights into a stored word, so that the hub counts fewer than the model has; some
        of its counts are of unpacked weights all the same, so a name with fewer bits is believed.
        """
        bits = _mlx_bits(self.id)
        if bits is not None and self.parameters:
            return self._of_mlx(bits, self.parameters)
        labelled = LABELS.get(self.label or "")
        if labelled and self.parameters:
            found = weight_bytes(self.parameters, shape, labelled)
            return Range(found, found, found) if isinstance(found, int) else found
        if (
            self.label
            or FEWER_BITS.search(self.id)
            or not self.parameters
            or not self.hub_parameters
            or self.hub_parameters * 50 < self.parameters * 49
        ):
            return Unknown("model.weights", f"only the shape of {self.id} is known", "set weights in [[model]]")
        eight = EIGHT_BITS.search(self.id)
        low, nominal = self.parameters, self.parameters if eight else 2 * self.parameters
        if self.like_layout is not None:
            found = weight_bytes(self.parameters, shape, self.like_layout)
            least = found.low if isinstance(found, Range) else found
            middle = found.nominal if isinstance(found, Range) else found
            if isinstance(least, int) and isinstance(middle, int):
                low = min(low, least)
                nominal = nominal if eight or SIXTEEN_BITS.search(self.id) else max(low, middle)
        return Range(low, nominal, 2 * self.parameters)

    def _of_mlx(self, bits: int, parameters: int) -> Range:
        """All of the text model in groups, embeddings too; what sees or hears keeps 16 bits, or is left out.

        A twentieth more where some modules are given more bits: the most among the 60 sizes of exo's model cards is 4.3 % above.
        """
        text = self.text_parameters or parameters
        least, usual, most = (int(text * (bits + more) / 8) for more in OF_GROUPS)
        beside = 2 * (parameters - text)
        return Range(least, usual + beside, (most + beside) * 21 // 20)


def _mlx_bits(name: str) -> int | None:
    """The bits that the name of a repository for MLX states."""
    made = _for_mlx(name.lower())
    return int(made["bits"]) if made is not None and made["bits"] else None


def _for_mlx(key: str) -> re.Match[str] | None:
    """The parts of a repository's name that says that it is for MLX, or whose organisation publishes nothing else."""
    organisation, _, rest = key.partition("/")
    made = OF_MLX.fullmatch(rest)
    return made if made is not None and (made["mlx"] or organisation in repositories()["mlx"]["only"]) else None


def says_bits(name: str) -> bool:
    """Whether a name says how its weights were stored anew, unlike that of a model published in its only layout."""
    return any(pattern.search(name) is not None for pattern in (FEWER_BITS, EIGHT_BITS, SIXTEEN_BITS))


def find(model_id: str) -> Entry | None:
    """The entry of a repository id, in any case, or of another name of it; None where the catalogue has none."""
    key = model_id.strip().strip("/").lower()
    own = entry(key)
    if own is not None or not key:
        return own
    known = (each for name in other_names(key) if (each := entry(name)) is not None)
    found = next(known, None) or _of_base(key)
    if found is None:
        return None
    found = replace(found, id=model_id, like=found.like or found.id)
    return _stored_anew(found) if key.endswith("gguf") or _for_mlx(key) else found


@lru_cache(maxsize=256)
def of_path(path: str) -> Entry | None:
    """The model that the last name of a path says, in its shape; None where it says none, or those of several publishers."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    if name.endswith(".gguf"):
        table = repositories()["gguf"]
        names = list(_converted(f"{table['converters'][0]}/{_PART.sub('', name.removesuffix('.gguf'))}-gguf"))
    else:
        names = _published(name) or list(_converted(f"{repositories()['mlx']['converters'][0]}/{name}"))
    found = [each for key in dict.fromkeys(names) if (each := entry(key)) is not None]
    return found[0] if len(found) == 1 else None


def _published(name: str) -> list[str]:
    """The rows of that name among publishers of models; where they have none, among those who publish copies."""
    table = repositories()
    copies = dict.fromkeys(each for mirrors in table["mirrors"].values() for each in mirrors)
    publishers = [each for each in table["gguf"]["publishers"] if each not in copies]
    for organisations in (publishers, copies):
        keys = (f"{organisation}/{name}" for organisation in organisations)
        rows = dict.fromkeys(known for key in keys for known in (key, *_moved(key)) if known in _keys())
        if rows:
            return list(rows)
    return []


@lru_cache(maxsize=1)
def _keys() -> frozenset[str]:
    """The keys of all rows, for those who ask for many at once."""
    return frozenset([line.partition(b"\t")[0].decode() for line in COMPILED.read_bytes().splitlines()])


def _stored_anew(found: Entry) -> Entry:
    """The shape of a model whose files hold other types than its own repository's."""
    return replace(found, own=False, dtype=None, quantization=None, file_bytes=None, hub_parameters=None, label=None)


def _of_base(key: str) -> Entry | None:
    """The model that an organisation tuned to follow instructions, in its shape; how long its texts may be is another matter."""
    tuned = TUNED.fullmatch(key)
    names = (tuned[1], *other_names(tuned[1])) if tuned is not None else ()
    return next((each for name in names if (each := entry(name, lengths=False)) is not None), None)


def other_names(key: str) -> Iterator[str]:
    """Names that the hub redirects to or from, then copies that others publish under the same name."""
    moved = _moved(key)
    yield from moved
    mirrors = repositories()["mirrors"]
    for name in (key, *moved):
        organisation, _, rest = name.partition("/")
        yield from (f"{mirror}/{rest}" for mirror in mirrors.get(organisation, ()))
    yield from _converted(key)


def _moved(key: str) -> list[str]:
    pairs = [each for pair in repositories()["moved"].items() for each in (pair, pair[::-1])]
    return [new + key.removeprefix(old) for old, new in pairs if key.startswith(old)]


def _converted(key: str) -> Iterator[str]:
    """The model that a repository of GGUF or MLX files was made of: its publisher's own, or the one publisher's of that name.

    A converter writes the publisher into the name (`qwen_qwen3-8b-gguf`), or leaves it out.
    """
    organisation, _, rest = key.partition("/")
    table = repositories()["gguf"]
    made, converters = OF_GGUF.fullmatch(rest), table["converters"]
    if made is None:
        made, converters = _for_mlx(key), repositories()["mlx"]["converters"]
    if made is None:
        return
    if organisation not in converters:
        yield f"{organisation}/{made['name']}"
        return
    publisher, _, named = made["name"].partition("_")
    if publisher in table["publishers"]:
        yield f"{publisher}/{named}"
        return
    found = _published(made["name"])
    yield from found if len(found) == 1 else ()


@lru_cache(maxsize=1)
def repositories() -> dict[str, Any]:
    found: dict[str, Any] = load("models-repositories.json")
    return found


@lru_cache(maxsize=256)
def entry(key: str, *, lengths: bool = True) -> Entry | None:
    """The catalogue's row of a repository; without `lengths`, as the shape of another repository."""
    row = lookup(COMPILED, key)
    if row is None:
        return None
    like = row.get("like")
    base = lookup(COMPILED, like.lower()) if like else None
    shape = base or row
    root = configuration(shape)
    if not lengths or doubted(text_config(root), row.get("context")):
        root = without_lengths(root)
    own = lengths and base is None and "fields" in row
    known = described(root, shape.get("source", "")) if root else weights_only(row["id"])
    text = text_config(root) if root else {}
    return Entry(
        id=row["id"],
        architecture=known,
        source=row.get("source", ""),
        confidence=row["confidence"],
        parameters=shape.get("parameters"),
        text_parameters=shape.get("text_parameters"),
        hub_parameters=row.get("hub_parameters"),
        file_bytes=row.get("file_bytes") if lengths else None,
        dtype=read_dtype(root, text) if own else None,
        quantization=quantization(root, text) if own else None,
        context=row.get("context") if lengths else None,
        like=like,
        own=own,
        label=row.get("label"),
        like_layout=quantization(root, text) if like and not says_bits(like) else None,
    )


def doubted(text: Mapping[str, Any], context: int | None) -> bool:
    """Whether another source states a length of this repository that is neither the positions here nor a multiple by rope.

    An alias borrows the shape of another repository, whose positions a fine-tune may have extended; and some sources of
    configurations shortened them for a build of their own.
    """
    length = positions(text)
    if context is None or length is None or context == length:
        return False
    if context == UNSTATED and "max_position_embeddings" not in text:
        return False
    ropes = (text.get(key) for key in ("rope_scaling", "rope_parameters"))
    factors = {rope.get("factor") for rope in ropes if isinstance(rope, Mapping)}
    return context not in {int(length * each) for each in factors if isinstance(each, int | float)}


def without_lengths(root: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with every length of the positions taken out."""
    kept = {key: value for key, value in root.items() if key not in POSITIONS}
    return {key: without_lengths(value) if key in NESTED else value for key, value in kept.items()}


def lookup_config(config: Mapping[str, Any], *, name: str = "", source: str = "") -> Entry:
    """The entry that a parsed `config.json` itself makes; its parameters are not known from it."""
    text = text_config(config)
    return Entry(
        id=name,
        architecture=described(config, source),
        source=source,
        confidence="given",
        dtype=read_dtype(config, text),
        quantization=quantization(config, text),
    )


def described(config: Mapping[str, Any], source: str) -> Architecture | Unknown:
    try:
        return read_architecture(config, source=source)
    except UnknownArchitecture as error:
        return Unknown("model", f"{error.field}: {error}", "give the model's config.json in [[model]]")


def weights_only(model_id: str) -> Unknown:
    return Unknown("model", f"only the weights of {model_id} are known", "give the model's config.json in [[model]]")


def configuration(row: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration's fields as the readers expect them: nested where the file had them nested."""
    fields: dict[str, Any] = dict(row.get("fields") or row.get("shape") or {})
    if "text" in row:
        fields[row.get("nested", "text_config")] = row["text"]
    return fields


def lookup(path: Path, key: str) -> dict[str, Any] | None:
    """The JSON beside a key in a file of sorted `key<TAB>JSON` lines."""
    wanted = key.encode() + b"\t"
    with path.open("rb") as file:
        low, high = 0, os.fstat(file.fileno()).st_size
        while low < high:
            middle = (low + high) // 2
            file.seek(middle)
            if middle:
                file.readline()
            line = file.readline()
            if line and line.split(b"\t", 1)[0] + b"\t" < wanted:
                low = middle + 1
            else:
                high = middle
        file.seek(low)
        if low:
            file.readline()
        line = file.readline()
    if not line.startswith(wanted):
        return None
    row: dict[str, Any] = json.loads(line[len(wanted) :])
    return row
