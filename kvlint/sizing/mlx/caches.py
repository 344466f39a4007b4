"""Which cache class each layer of a model has in a release of mlx-lm, and what that class can and cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.facts import Unknown, quantity
from kvlint.models.architecture import Architecture, Attention, Latent, Part, State, UnknownArchitecture
from kvlint.sizing.kv import ELEMENT_BYTES
from kvlint.sizing.mlx import kv
from kvlint.sizing.mlx.releases import meaning

CACHES = "mlx_lm/models/cache.py and the model files, by release"


def parts(architecture: Architecture, release: str) -> Iterator[tuple[Part, str]]:
    """Every part that keeps something, with the class of its cache.  Raises `UnknownArchitecture`."""
    layout = kv.Layout(architecture, kv.release(release), ELEMENT_BYTES["bfloat16"], None, 64)
    for layer in architecture.layers:
        for part in layer:
            if isinstance(part, Attention) and part.shared:
                continue
            indexed = isinstance(part, Latent) and part.indexer_dim is not None
            if len(layer) > 1 or indexed:
                yield part, "CacheList"
            elif isinstance(part, State):
                yield part, "MambaCache" if "MambaCache" in layout.classes else "ArraysCache"
            elif isinstance(part, Attention) and part.window is not None and layout.rotates():
                yield part, "RotatingKVCache"
            elif isinstance(part, Attention) and part.chunk is not None and "ChunkedKVCache" in layout.classes:
                yield part, "ChunkedKVCache"
            elif isinstance(part, Attention | Latent):
                yield part, "KVCache"
            else:
                raise UnknownArchitecture("model_type", "how mlx-lm keeps these layers is not known")


def _listed(architecture: Architecture, release: str) -> list[tuple[Part, str]] | Unknown:
    try:
        return list(parts(architecture, release))
    except UnknownArchitecture as error:
        return Unknown(f"model.{error.field}", str(error), "[[model]] config in kvlint.toml")


@quantity("rotating_layers", unit="layers", formula="layers whose cache rotates", source=CACHES)
def rotating_layers(architecture: Architecture, release: str) -> int | Unknown:
    """Layers whose cache cannot be quantized: its class refuses to be."""
    found = _listed(architecture, release)
    return found if isinstance(found, Unknown) else sum(name == "RotatingKVCache" for _, name in found)


@quantity(
    "kv_group_remainder",
    unit="elements",
    formula="largest of head dimension mod group size, over the caches that are quantized",
    source="mlx.core.quantize refuses a last dimension that the group size does not divide",
)
def kv_group_remainder(architecture: Architecture, release: str, kv_group_size: int) -> int | Unknown:
    found = _listed(architecture, release)
    if isinstance(found, Unknown) or kv_group_size <= 0:
        return found if isinstance(found, Unknown) else 0
    plain = (part for part, name in found if name == "KVCache" and isinstance(part, Attention))
    return max((size % kv_group_size for part in plain for size in (part.key_dim, part.value_dim)), default=0)


@quantity("unmergeable_caches", unit="", formula="cache classes of the model without `merge`", source=CACHES)
def unmergeable_caches(architecture: Architecture, release: str) -> tuple[str, ...] | Unknown:
    found = _listed(architecture, release)
    if isinstance(found, Unknown):
        return found
    refused = meaning(release).unmergeable
    return tuple(dict.fromkeys(name for _, name in found if name in refused))


@quantity(
    "entries_per_conversation",
    unit="entries",
    formula="1 where a longer entry replaces its beginning, else one for each segment",
    source="server.py of 0.31.2 and newer: system, user and assistant segments are stored apart",
)
def entries_per_conversation(architecture: Architecture, release: str, window: int) -> int | Unknown:
    """A recurrent state cannot be cut back, a rotating cache not once it is full."""
    found = _listed(architecture, release)
    if isinstance(found, Unknown):
        return found
    stuck = any(
        isinstance(part, State)
        or (name == "RotatingKVCache" and isinstance(part, Attention) and window >= (part.window or 0))
        for part, name in found
    )
    return meaning(release).segments if stuck else 1
