"""The events of one step, written at once: all of them or none."""

from _unidle_shim.host.event_kinds import (
    BACKWARD,
    FLUSH,
    FORWARD,
    INPUT,
    LOG,
    LOSS,
    OPTIMIZER,
    STEP,
    SYNC,
    TRANSFER,
)


def write(ring, parts, step, samples_before, samples, micro):
    begin = parts.begin
    if not (parts.input and parts.forward and parts.backward and parts.optimizer) or parts.rare:
        return _write_any(ring, parts, step, samples_before, samples, micro)
    values = (
        begin,
        parts.input,
        step,
        INPUT,
        begin,
        parts.forward,
        step,
        FORWARD,
        begin,
        parts.backward,
        step,
        BACKWARD,
        begin,
        parts.optimizer,
        step,
        OPTIMIZER,
    )
    whole = (begin, parts.end - begin, step, samples, micro, STEP)
    if parts.losses:
        ring.emit_all("pppplS", values + (parts.last, step, samples_before, parts.loss, LOSS) + whole)
    else:
        ring.emit_all("ppppS", values + whole)


def _write_any(ring, parts, step, samples_before, samples, micro):
    begin, layout, values = parts.begin, "", []
    for duration_ns, kind in (
        (parts.input, INPUT),
        (parts.forward, FORWARD),
        (parts.backward, BACKWARD),
        (parts.optimizer, OPTIMIZER),
    ):
        if duration_ns:
            layout += "p"
            values += (begin, duration_ns, step, kind)
    if parts.rare:
        layout += _rare(parts, step, values)
    if parts.losses:
        layout += "l"
        values += (parts.last, step, samples_before, parts.loss, LOSS)
    values += (begin, parts.end - begin, step, samples, micro, STEP)
    ring.emit_all(layout + "S", values)


def _rare(parts, step, values):
    begin, layout = parts.begin, ""
    if parts.transfer or parts.moved:
        layout += "e"
        values += (begin, parts.transfer, step, parts.moved, parts.pinned, 0.0, TRANSFER)
    if parts.syncs:
        layout += "e"
        values += (begin, parts.sync, step, 0, 0, float(parts.syncs), SYNC)
    if parts.log:
        layout += "p"
        values += (begin, parts.log, step, LOG)
    if parts.flush:
        layout += "p"
        values += (begin, parts.flush, step, FLUSH)
    return layout
