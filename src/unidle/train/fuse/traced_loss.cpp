#include "unidle/train/fuse/traced_loss.h"

#include <ATen/Context.h>
#include <ATen/TracerMode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "unidle/base/json.h"

namespace unidle::train {

namespace {

std::vector<at::Tensor> parameters_that(const torch::nn::Module& model, bool learn) {
  std::vector<at::Tensor> found;
  std::set<const at::TensorImpl*> known;  // a parameter with two names occurs twice
  for (const at::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad() == learn && known.insert(parameter.unsafeGetTensorImpl()).second) {
      found.push_back(parameter);
    }
  }
  return found;
}

std::string traced_script(Workload& workload, const std::vector<at::Tensor>& inputs, std::size_t first_field,
                          const Precision& precision) {
  // A workload's own TorchScript must run operation by operation.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  const AutocastGuard autocast = precision.autocast();
  torch::jit::Module script("__torch__.Loss");
  const auto loss = [&](const torch::jit::Stack& given) -> torch::jit::Stack {
    const torch::jit::tracer::NoWarn quiet;  // sizes as constants are intended
    std::vector<at::Tensor> fields;
    for (std::size_t i = first_field; i < given.size(); ++i) {
      fields.push_back(given[i].toTensor());
    }
    return {workload.loss(fields)};
  };
  const torch::jit::Stack stack(inputs.begin(), inputs.end());
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  const auto traced =
      torch::jit::tracer::trace(stack, loss, no_name, /*strict=*/true, /*force_outplace=*/false, &script);
  const std::shared_ptr<torch::jit::Graph>& graph = traced.first->graph;
  torch::jit::EliminateDeadCode(graph);
  const c10::QualifiedName name(*script.type()->name(), "forward");
  script.type()->addMethod(script._ivalue()->compilation_unit()->create_function(name, graph));
  std::ostringstream file;
  script.save(file);
  return file.str();
}

nlohmann::json described(const at::Tensor& tensor) {
  return {{"shape", tensor.sizes().vec()},
          {"stride", tensor.strides().vec()},
          {"dtype", c10::getDtypeNames(tensor.scalar_type()).first}};
}

}  // namespace

std::vector<at::Tensor> learning_parameters(const torch::nn::Module& model) { return parameters_that(model, true); }

std::vector<at::Tensor> other_state(const torch::nn::Module& model) {
  std::vector<at::Tensor> others = parameters_that(model, false);
  for (const at::Tensor& buffer : model.buffers()) {
    if (buffer.defined()) {
      others.push_back(buffer);
    }
  }
  return others;
}

bool tracing_a_loss() { return at::tracer::impl::is_dispatch_enabled(); }

TracedLoss trace_loss(Workload& workload, const std::vector<at::Tensor>& fields, const Precision& precision,
                      at::Device device) {
  std::vector<at::Tensor> inputs = learning_parameters(workload.model());
  const std::size_t parameters = inputs.size();
  for (const auto& more : {other_state(workload.model()), fields}) {
    inputs.insert(inputs.end(), more.begin(), more.end());
  }
  nlohmann::json tensors = nlohmann::json::array();
  for (const at::Tensor& tensor : inputs) {
    tensors.push_back(described(tensor));
  }
  const std::string lower = precision.effective();
  nlohmann::json description = {
      {"inputs", std::move(tensors)},
      {"parameters", parameters},
      {"device", device.str()},
      {"autocast", lower == "off" ? nlohmann::json() : nlohmann::json(lower == "bf16" ? "bfloat16" : "float16")},
      {"tf32", at::globalContext().allowTF32CuDNN()}};
  return {traced_script(workload, inputs, inputs.size() - fields.size(), precision), json_text(description, -1)};
}

}  // namespace unidle::train
