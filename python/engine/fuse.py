"""Compiles the loss that unidle's engine traced, with its gradients, into a package that the engine runs.

    fuse.py FOLDER

FOLDER has `loss.pt`, a TorchScript module that maps tensors to the loss, and `loss.json`, which describes
them. The package becomes FOLDER/loss.pt2; a failure leaves its reason as one line in FOLDER/failure.txt. The
package takes the same tensors and a factor, and gives the loss and the gradients of loss x factor, in the
order of the parameters that have one; those that have none are named in its metadata.
"""

import contextlib
import json
import logging
import os
import sys
import traceback

import torch
from torch.fx.experimental.proxy_tensor import make_fx

# The runtime of packages cannot pass an empty list of numbers, which these operations take, and runs them
# without gradient mode, which one of them asks for. The engine has them under names of its own (see
# rnn_operations.cpp); here they have no kernels.
RNN = {
    torch.ops.aten.mkldnn_rnn_layer.default: (
        "mkldnn_rnn_layer",
        "(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, "
        "Tensor cx_, bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, "
        "bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
    ),
    torch.ops.aten.mkldnn_rnn_layer_backward.default: (
        "mkldnn_rnn_layer_backward",
        "(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, "
        "Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, "
        "Tensor? grad_cy, bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, "
        "bool train, bool bidirectional, bool batch_first, Tensor workspace) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    ),
    torch.ops.aten._cudnn_rnn_backward.default: (
        "cudnn_rnn_backward",
        "(Tensor input, Tensor[] weight, int weight_stride0, Tensor weight_buf, Tensor hx, Tensor? cx, "
        "Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, int mode, int hidden_size, "
        "int proj_size, int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, "
        "Tensor reserve) -> (Tensor, Tensor, Tensor, Tensor[])",
    ),
}
LEFT_OUT = ("batch_sizes", "dropout_state", "output_mask")


def define_operations():
    library = torch.library.Library("unidle", "DEF")
    for name, schema in RNN.values():
        library.define(name + schema)
    return library


def describe_mkldnn(*given):
    return torch.ops.aten.mkldnn_rnn_layer(*given[:8], [], *given[8:])


def describe_mkldnn_backward(input, *others):
    weights, (hx, cx) = others[:4], others[4:6]
    bias = torch.empty_like(weights[2])
    return (
        torch.empty_like(input),
        torch.empty_like(weights[0]),
        torch.empty_like(weights[1]),
        bias,
        torch.empty_like(bias),
        torch.empty_like(hx),
        torch.empty_like(cx),
    )


def describe_cudnn_backward(input, weight, weight_stride0, weight_buf, hx, cx, *others):
    return (
        torch.empty_like(input, memory_format=torch.contiguous_format),
        torch.empty_like(hx, memory_format=torch.contiguous_format),
        torch.empty_like(hx if cx is None else cx, memory_format=torch.contiguous_format),
        [torch.empty_like(each, memory_format=torch.contiguous_format) for each in weight],
    )


def replace_rnn(graph):
    """Recurrent layers by the engine's own names for them."""
    for node in graph.graph.nodes:
        if node.op != "call_function" or node.target not in RNN:
            continue
        names = [argument.name for argument in node.target._schema.arguments]
        given = dict(zip(names, node.args)) | node.kwargs
        if given.get("batch_sizes") or given.get("dropout_state") is not None:
            raise RuntimeError("recurrent layers over sequences of several lengths, or with dropout")
        node.target = getattr(torch.ops.unidle, RNN[node.target][0]).default
        node.args = tuple(given[name] for name in names if name not in LEFT_OUT)
        node.kwargs = {}
    graph.recompile()


def allow_other_layouts(graph):
    """The compiler may lay out a convolution's result in another way than it was here: what was a view then
    may have to be a copy."""
    views = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target in views:
            node.target = torch.ops.aten.reshape.default
    graph.recompile()


def convolution(*given):
    """TorchScript's convolution is one that inductor cannot describe on a GPU; this one it can."""
    return torch.ops.aten.convolution.default(*given[:9])


SIMPLER = {torch.ops.aten._convolution.default: convolution}


def like(tensor, parameter):
    """`tensor` with the type and the memory layout of its parameter, which the fused updates need."""
    if tensor.dtype == parameter.dtype and tensor.stride() == parameter.stride():
        return tensor
    made = torch.empty_strided(
        parameter.shape, parameter.stride(), dtype=parameter.dtype, device=parameter.device
    )
    return made.copy_(tensor)


def inputs_of(spec):
    made = []
    for number, entry in enumerate(spec["inputs"]):
        dtype = getattr(torch, entry["dtype"])
        tensor = torch.empty_strided(entry["shape"], entry["stride"], dtype=dtype, device=spec["device"])
        made.append(tensor.zero_().requires_grad_(number < spec["parameters"]))
    return made


def joint_graph(spec, loss_of, inputs):
    """The loss and all gradients as one graph of ATen operations, and which parameters have a gradient."""
    count = spec["parameters"]
    kind = torch.device(spec["device"]).type
    found = []

    def step(*tensors):
        *tensors, factor = tensors
        lower = (
            torch.autocast(kind, getattr(torch, spec["autocast"]))
            if spec["autocast"]
            else contextlib.nullcontext()
        )
        with lower:
            loss = loss_of(*tensors)
        gradients = torch.autograd.grad(
            (loss * factor.to(loss.dtype)).sum(), tensors[:count], allow_unused=True
        )
        found[:] = [number for number in range(count) if gradients[number] is not None]
        return (loss.detach(), *(like(gradients[number], tensors[number]) for number in found))

    try:
        graph = make_fx(step, SIMPLER, tracing_mode="fake", _allow_non_fake_inputs=True)(*inputs)
    except Exception:
        # cuDNN looks at the addresses of a recurrent layer's weights.
        graph = make_fx(step, SIMPLER, tracing_mode="real")(*inputs)
    return graph, found


def compile_loss(folder, spec):
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    library = define_operations()  # lives as long as they are needed
    torch.library.register_fake("unidle::mkldnn_rnn_layer", describe_mkldnn, lib=library)
    torch.library.register_fake("unidle::mkldnn_rnn_layer_backward", describe_mkldnn_backward, lib=library)
    torch.library.register_fake("unidle::cudnn_rnn_backward", describe_cudnn_backward, lib=library)
    torch._C._set_graph_executor_optimize(False)
    torch._C._jit_set_autocast_mode(False)  # the casts of the context manager, not those of the script
    torch.set_float32_matmul_precision("high" if spec["tf32"] else "highest")
    torch.backends.cudnn.allow_tf32 = spec["tf32"]
    loss_of = torch.jit.load(os.path.join(folder, "loss.pt"), map_location=spec["device"])
    inputs = [*inputs_of(spec), torch.ones(1, device=spec["device"])]
    graph, found = joint_graph(spec, loss_of, inputs)
    replace_rnn(graph)
    allow_other_layouts(graph)
    detached = tuple(each.detach() for each in inputs)
    with torch.no_grad():
        program = torch.export.export(graph, detached)
    options = {
        "fallback_random": True,  # torch's own numbers, as without a package
        "triton.cudagraphs": False,  # the engine captures
        "aot_inductor.metadata": {"gradients": ",".join(map(str, found))},
    }
    torch._inductor.aoti_compile_and_package(
        program, package_path=os.path.join(folder, "loss.pt2"), inductor_configs=options
    )


def reason_of(failure):
    """Its first line that says something; the compiler's own word where a compiler failed, and the operation
    and the last words where TorchScript's interpreter did."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    if not errors and any("TorchScript interpreter" in line for line in lines):
        at = next((number for number, line in enumerate(lines) if "<--- HERE" in line), 0)
        errors = [f"{lines[max(0, at - 1)]}: {lines[-1]}"]
    return f"{type(failure).__name__}: {(errors or lines or ['no reason was given'])[0]}"


def main():
    folder = sys.argv[1]
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with open(os.path.join(folder, "loss.json")) as file:
            spec = json.load(file)
        compile_loss(folder, spec)
    except Exception as failure:
        traceback.print_exc()
        with open(os.path.join(folder, "failure.txt"), "w") as file:
            file.write(reason_of(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
