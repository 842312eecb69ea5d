"""What the backward pass fills for slices of tensors: the gradient of each slice is a tensor of the whole
size, with zeros outside of it."""

from _unidle_shim.host.shapes import unseen

_LOOKS = (4, 7, 12, 20, 32, 50)  # the backward passes that are inspected: batches differ in length
_SLICES = ("SelectBackward0", "SliceBackward0", "IndexBackward0", "IndexSelectBackward0")
_LEAST = 1 << 14  # elements: smaller tensors cost no more than the call
_DIMENSIONS = 3  # torch itself slices packed sequences, which have two
_MOST = 20_000  # nodes of the graph


class Slices:
    """Used by the training thread alone. `most`: (bytes of all slices, number of slices, shape) of the pass
    that fills most, the latter two of the tensor with most of these bytes."""

    def __init__(self):
        self.passes = self.looks = self.bytes = 0
        self.most = None

    def backward_begins(self, torch, loss):
        self.passes += 1
        if self.passes not in _LOOKS:
            return
        self.looks += 1
        found = _look(torch, loss)
        if found is not None:
            self.bytes += found[0]
            self.most = max(found, self.most or found)

    def note(self):
        if self.most is None:
            return None
        _, slices, shape = self.most
        return {"type": "slices", "bytes": self.bytes // self.looks, "slices": slices, "shape": shape}


@unseen
def _look(torch, loss):
    size, by_shape = loss.element_size(), {}
    waiting, seen = [loss.grad_fn], set()
    while waiting and len(seen) < _MOST:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)
        if node.name() in _SLICES:
            shape = tuple(getattr(node, "_saved_self_sym_sizes", ()))  # torch 2.0 and later
            elements = 1
            for extent in shape:
                elements *= int(extent)
            if elements >= _LEAST and len(shape) >= _DIMENSIONS:
                # Slices of slices differ in the first extent.
                by_shape.setdefault(shape[1:], []).append((int(shape[0]), elements * size))
    if not by_shape:
        return None
    rest, most = max(by_shape.items(), key=lambda item: sum(filled for _, filled in item[1]))
    filled = sum(one for some in by_shape.values() for _, one in some)
    shape = [max(extent for extent, _ in most), *map(int, rest)]
    return filled, len(most), "x".join(map(str, shape))
