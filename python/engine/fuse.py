"""Compiles the loss that unidle's engine traced, with its gradients, into a package for the engine.

    fuse.py FOLDER

FOLDER has `loss.pt`, a TorchScript module that maps tensors to the loss, and `loss.json`, which describes
the tensors. The package is written to FOLDER/loss.pt2; on failure the reason is written as one line to
FOLDER/failure.txt. The package takes the same tensors and a factor, and returns the loss and the gradients
of loss x factor, in the order of the parameters that have one; its metadata lists those parameters.
"""

import contextlib
import json
import logging
import os
import sys
import traceback

import torch
from torch.fx.experimental.proxy_tensor import make_fx

# The runtime of packages cannot pass an empty list of numbers, which these operators take, and runs them
# without gradient mode, which one of them needs. The engine has variants under its own names (see
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
    """Replaces recurrent layers with the engine's variants."""
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
    """Turns views into reshapes: the compiler may choose another layout for a convolution's result, of
    which a view may then be impossible."""
    views = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target in views:
            node.target = torch.ops.aten.reshape.default
    graph.recompile()


def convolution(*given):
    """TorchScript's convolution, which inductor does not support on a GPU, as an operator that it
    supports."""
    return torch.ops.aten.convolution.default(*given[:9])


SIMPLER = {torch.ops.aten._convolution.default: convolution}


def like(tensor, parameter):
    """Returns `tensor` with the type and memory layout of its parameter, which fused updates need."""
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
    """Returns the loss and all gradients as a graph of ATen operators, and the parameters with gradients."""
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
        # cuDNN checks the addresses of a recurrent layer's weights.
        graph = make_fx(step, SIMPLER, tracing_mode="real")(*inputs)
    return graph, found


def compile_loss(folder, spec):
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    library = define_operations()  # kept alive while the operators are in use
    torch.library.register_fake("unidle::mkldnn_rnn_layer", describe_mkldnn, lib=library)
    torch.library.register_fake("unidle::mkldnn_rnn_layer_backward", describe_mkldnn_backward, lib=library)
    torch.library.register_fake("unidle::cudnn_rnn_backward", describe_cudnn_backward, lib=library)
    torch._C._set_graph_executor_optimize(False)
    torch._C._jit_set_autocast_mode(False)  # use the casts of the context manager, not of the script
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
        "fallback_random": True,  # torch's own random numbers, as without a package
        "triton.cudagraphs": False,  # the engine captures graphs itself
        "aot_inductor.metadata": {"gradients": ",".join(map(str, found))},
    }
    torch._inductor.aoti_compile_and_package(
        program, package_path=os.path.join(folder, "loss.pt2"), inductor_configs=options
    )


def reason_of(failure):
    """Returns the first informative line: the compiler's message when a compiler failed, and the operation
    with the last line when TorchScript's interpreter did."""
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
