"""optimizer.fused at run time: the choice is made when an optimiser is constructed, from its defaults."""

from _unidle_shim.host import guard
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import put

KNOB = "optimizer.fused"


def install(torch, wanted, say):
    """`say(status, why)` is called for each optimiser that stays unchanged."""
    Optimizer = torch.optim.Optimizer
    original = Optimizer.__init__

    def init(optimizer, params, defaults, *args, **kwargs):
        if wanted:
            params = _lists_of(params)
        was = defaults.get("fused") if isinstance(defaults, dict) else None
        try:
            if not guard.failed:
                defaults = _chosen(torch, wanted, say, optimizer, params, defaults)
        except BaseException as failure:
            caught(failure)
        original(optimizer, params, defaults, *args, **kwargs)
        try:
            if wanted and optimizer.defaults.get("fused"):
                optimizer._step_supports_amp_scaling = True
                _keep_out_of_checkpoints(optimizer, was)
                _unless_sparse(optimizer, was, say)
        except BaseException as failure:
            caught(failure)

    put(Optimizer, "__init__", init)


def _keep_out_of_checkpoints(optimizer, was):
    """Saves the program's own choice in checkpoints, for a run without us."""
    hook = getattr(optimizer, "register_state_dict_post_hook", None)  # since torch 2.1
    if hook is None:
        return

    def put_back(_, state):
        try:
            for group in state["param_groups"]:
                if group.get("fused"):
                    group["fused"] = was
        except BaseException as failure:
            caught(failure)

    hook(put_back)


def _unless_sparse(optimizer, was, say):
    """Sparse gradients show only in the first step, and fused updates do not support them."""
    hook = getattr(optimizer, "register_step_pre_hook", None)  # since torch 2.0
    if hook is None:
        return

    def look(one, *given):
        try:
            handle.remove()
            if any(p.grad is not None and p.grad.is_sparse for g in one.param_groups for p in g["params"]):
                for group in one.param_groups:
                    group["fused"] = was
                say("refused", "%s has sparse gradients" % type(one).__name__)
        except BaseException as failure:
            caught(failure)

    handle = hook(look)


def _lists_of(params):
    """Generators can be read only once. Torch would read them now, too: exceptions from them are the
    program's."""
    if hasattr(params, "__next__"):
        params = list(params)
    for one in params if isinstance(params, (list, tuple)) else ():
        if isinstance(one, dict) and hasattr(one.get("params"), "__next__"):
            one["params"] = list(one["params"])
    return params


def _chosen(torch, wanted, say, optimizer, params, defaults):
    """The defaults with the requested choice, if it is possible."""
    if not wanted:
        return dict(defaults, fused=False) if "fused" in defaults else defaults
    if "fused" not in defaults or defaults.get("foreach") or defaults.get("differentiable"):
        say("refused", "%s has no fused form" % type(optimizer).__name__)
        return defaults
    if not _can_fuse(torch, params):
        say("refused", "this torch has no fused form for parameters on this device")
        return defaults
    return dict(defaults, fused=True)


def _can_fuse(torch, params):
    """Checked beforehand: where the class does not check it, the program's first step would fail."""
    try:
        from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

        kinds = _get_fused_kernels_supported_devices()
    except ImportError:
        kinds = ["cuda"]
    tensors = []
    for one in params:
        inner = one["params"] if isinstance(one, dict) else [one]
        tensors += [inner] if isinstance(inner, torch.Tensor) else inner
    tensors = [one[1] if isinstance(one, tuple) else one for one in tensors]  # named parameters
    return all(
        isinstance(p, torch.Tensor) and p.device.type in kinds and p.is_floating_point() for p in tensors
    )
