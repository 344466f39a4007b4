"""From -c, -np and their kin to slots, cells and the window of a slot, as llama-server works them out when it starts."""

from __future__ import annotations

from kvlint.facts import Unknown
from kvlint.records import dataclass
from kvlint.sizing.llama.releases import data, unknown_build
from kvlint.sizing.llama.settings import Refusal, Start


@dataclass(frozen=True, slots=True)
class Slots:
    """`unified`: one buffer for all slots.  `whole`: a slot may use all of that buffer, not only its share."""

    count: int
    unified: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Request:
    """Tokens of context that are asked for, all slots together; `shrinks`: fitting may take less, down to `least`."""

    tokens: int
    shrinks: bool
    least: int


@dataclass(frozen=True, slots=True)
class Cells:
    """`context` of all slots, `sequence` of one, `window` of a request; `buffers` of `sequence` cells each."""

    context: int
    sequence: int
    window: int
    buffers: int


def slots(start: Start) -> Slots | Refusal | Unknown:
    """How many sequences are decoded together, and whether they share one buffer."""
    settings, rules = start.settings, start.rules
    written = settings.parallel
    if written is None or (written < 0 and rules.automatic):
        return Slots(rules.slots, rules.automatic or bool(settings.unified), rules.automatic)
    if written < 0:
        return Unknown(
            "parallel", "what a negative --parallel meant in builds with one slot is not known", "name a count"
        )
    if not written:
        if not rules.automatic:
            return unknown_build("what --parallel 0 does")
        return Refusal("parallel", "--parallel 0 is refused; -1 chooses the number of slots", ("parallel",))
    if rules.max_sequences and written > rules.max_sequences:
        return Refusal("too-many-slots", f"at most {rules.max_sequences} slots are possible", ("parallel",))
    return Slots(written, bool(settings.unified) or (written > 1 and not rules.streams), rules.automatic)


def request(start: Start, found: Slots) -> Request | Refusal | Unknown:
    """The context asked for: written, from --kv-unified-per-slot, or the trained one, which fitting may shrink."""
    settings, rules = start.settings, start.rules
    written = settings.context
    if written is not None and written < 0:
        return Refusal("context-size", f"a context of {written} tokens leaves no cells", ("context",))
    if written:
        return Request(written, False, written)
    if written is None and rules.per_slot and (settings.per_slot or 0) > 0:
        total = found.count * int(settings.per_slot or 0)
        return Request(total, False, total)
    if written is None and rules.context:
        return Request(rules.context, False, rules.context)
    trained = start.shape.trained
    if not trained:
        return Unknown("model.context_length", "the trained context of the model is not known", "state --ctx-size")
    # a tensor split is not fitted: the context stays at what one sequence was trained for
    fits = rules.fit and settings.fit is not False and not settings.split_tensor
    streams = found.count if fits and rules.fit_counts_streams and not found.unified else 1
    total = trained * streams
    least = streams * (
        settings.fit_context if settings.fit_context is not None else int(data()["constants"]["fit_context"])
    )
    forbidden = written == 0 and rules.zero_forbids_fit
    shrinks = fits and not forbidden and least < total
    return Request(total, shrinks, least if shrinks else total)


def cells(start: Start, found: Slots, tokens: int, pad: int) -> Cells | Refusal:
    """Round `tokens` to whole cells and divide them (B:src/llama-context.cpp:288, A:src/llama-model.cpp:18085)."""
    if not start.rules.streams or (found.unified and not found.whole):
        context = _round_up(tokens, pad)
        return Cells(context, context, _capped(start, found, context // found.count), 1)
    if found.unified:
        context = _round_up(tokens, pad)
        return _checked(Cells(context, context, _capped(start, found, context), 1))
    share = _round_up(tokens, pad) // found.count if found.whole else -(-tokens // found.count)
    sequence = _round_up(share, pad)
    return _checked(Cells(sequence * found.count, sequence, _capped(start, found, sequence), found.count))


def sliding_cells(start: Start, found: Slots, sequence: int, ubatch: int, pad: int) -> int:
    """Cells of each buffer of the sliding layers: window x sequences that share it, and one micro-batch."""
    if start.settings.swa_full or start.rules.sliding == "full":
        return sequence
    sharing = found.count if found.unified else 1
    wanted = start.shape.window * sharing + ubatch
    if start.rules.automatic:
        return _round_up(min(sequence, wanted), max(pad, int(data()["constants"]["sliding_pad"])))
    return min(sequence, _round_up(wanted, pad))


def micro_batch(start: Start, context: int) -> int:
    """Tokens of one micro-batch: at most the batch, which is at most the context."""
    constants = data()["constants"]
    settings = start.settings
    ubatch = settings.ubatch if settings.ubatch is not None else int(constants["ubatch"])
    batch = settings.batch if settings.batch is not None else int(constants["batch"])
    if settings.embedding:
        batch = min(batch, ubatch)
    batch = min(context, batch)
    return min(batch, ubatch or batch)


def _capped(start: Start, found: Slots, sequence: int) -> int:
    """The window of a slot: never above the trained context, nor above --kv-unified-per-slot."""
    limit = start.settings.per_slot if start.rules.per_slot else None
    limits = [sequence, *([limit] if limit and limit > 0 else [])]
    if found.whole and start.shape.trained:
        limits.append(start.shape.trained)
    return min(limits)


def _checked(result: Cells) -> Cells | Refusal:
    if result.sequence:
        return result
    return Refusal("context-size", "the context leaves no cell for a slot", ("context",))


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
