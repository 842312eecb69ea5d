"""Writes a step as one event. docs/probe-format.md has its layout."""

import struct

from _unidle_shim.host.event_kinds import (
    SEEN_BACKWARD,
    SEEN_FORWARD,
    SEEN_INPUT,
    SEEN_LOSS,
    SEEN_OPTIMIZER,
    SEEN_SYNC,
    SEEN_TRANSFER,
    STEP,
)

# Arguments are packed one by one: unpacking a tuple would double the cost.
_pack = struct.Struct("=QQQQQdIIIIQQQQQQQQ").pack_into
_pack_marked = struct.Struct("=QQQQ16xIIIIQ56x").pack_into  # without the fields of steps observed in full
_USUAL = SEEN_INPUT | SEEN_FORWARD | SEEN_BACKWARD | SEEN_OPTIMIZER


def write(ring, parts, step, samples_before, samples, micro):
    """Writes a step that was observed in full."""
    if parts.input and parts.forward and parts.backward and parts.optimizer and not parts.rare:
        seen = _USUAL | SEEN_LOSS if parts.losses else _USUAL
    else:
        seen = (
            (SEEN_INPUT if parts.input else 0)
            | (SEEN_TRANSFER if parts.transfer else 0)
            | (SEEN_FORWARD if parts.forward else 0)
            | (SEEN_BACKWARD if parts.backward else 0)
            | (SEEN_OPTIMIZER if parts.optimizer else 0)
            | (SEEN_SYNC if parts.syncs else 0)
            | (SEEN_LOSS if parts.losses else 0)
        )
    place = ring.room()
    if place is None:
        return
    try:
        _pack(
            ring.view,
            place,
            parts.begin,
            parts.end - parts.begin,
            step,
            samples,
            samples_before,
            parts.loss,
            STEP,
            seen,
            micro,
            parts.syncs,
            parts.input,
            parts.transfer,
            parts.forward,
            parts.backward,
            parts.optimizer,
            parts.sync,
            parts.log,
            parts.flush,
        )
    except struct.error:  # a clock went back
        parts.leave_out_negatives()
        write(ring, parts, step, samples_before, samples, micro)
    else:
        ring.publish()


def write_marked(ring, begin, length, step, samples, micro, waited, shared=None):
    """Writes a step that was only marked. `waited`: None if it fetched no batch. `shared`: its share of the
    stretch's times, in ns: copies, waits and their number, logging, flushing."""
    place = ring.room()
    if place is None:
        return
    view, seen = ring.view, 0 if waited is None else SEEN_INPUT
    if shared is None:
        _pack_marked(view, place, begin, length, step, samples, STEP, seen, micro, 0, waited or 0)
    else:
        transfer, sync, syncs, log, flush = shared
        seen |= (SEEN_TRANSFER if transfer else 0) | (SEEN_SYNC if syncs else 0)
        head = (begin, length, step, samples, 0, 0.0, STEP, seen, micro, syncs, waited or 0)
        _pack(view, place, *head, transfer, 0, 0, 0, sync, log, flush)
    ring.publish()
