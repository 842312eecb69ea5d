#include "workloads/torchscript/exported_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/train/failure.h"

namespace unidle::workloads::torchscript {

namespace {

using nlohmann::json;

constexpr const char* kForward = "its forward takes one tensor, float32 [rows, features], and gives one";
constexpr const char* kAnyRows = "torch.export.export(model, (rows,), dynamic_shapes=({0: torch.export.Dim('rows')},))";

/// The name in "Symbol('s31', integer=True)" or "s31"; of any other expression, nothing that has a range.
std::string symbol_of(const std::string& expression) {
  constexpr std::string_view kSymbol = "Symbol('";
  return expression.starts_with(kSymbol)
             ? expression.substr(kSymbol.size(), expression.find('\'', kSymbol.size()) - kSymbol.size())
             : expression;
}

}  // namespace

ExportedModel::ExportedModel(std::string path, std::int64_t features, at::Device device) : path_(std::move(path)) {
  try {
    open(features, device);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {  // torch throws several kinds
    if (train::is_out_of_memory(failure)) {
      throw;
    }
    refuse("is damaged, or cannot be trained here: " + train::last_words(failure), "");
  }
}

void ExportedModel::refuse(const std::string& what, const std::string& hint) const {
  throw Error(ErrorCode::kInput, path_, what, hint);
}

void ExportedModel::open(std::int64_t features, at::Device device) {
  ExportedArchive archive(path_, device);
  const json& graph = archive.program().at("graph_module").at("graph");
  const json& signature = archive.program().at("graph_module").at("signature");
  const json& inputs = signature.at("input_specs");
  const std::string input = user_tensor(inputs, "user_input");
  const std::string output = user_tensor(signature.at("output_specs"), "user_output");
  for (const json& spec : signature.at("output_specs")) {
    if (!spec.contains("user_output")) {
      refuse("was decomposed, so that what it writes to its buffers comes out of it",
             "save what torch.export.export gave, without run_decompositions()");
    }
  }
  check_rows(archive.program(), input, features);
  graph_ = std::make_unique<ExportedGraph>(graph, state_of(inputs, archive), input, output, device);
  if (graph_->was_recorded_in_evaluation()) {
    refuse("was exported in evaluation mode, in which nothing is dropped or normalised by its batch",
           "call model.train() before torch.export.export");
  }
}

std::vector<ExportedGraph::State> ExportedModel::state_of(const json& input_specs, ExportedArchive& archive) {
  std::vector<ExportedGraph::State> state;
  std::set<const void*> known;
  for (const json& spec : input_specs) {
    const std::string kind = spec.items().begin().key();
    const json& said = spec.front();
    ExportedGraph::State each;
    if (kind == "parameter") {
      const std::string name = said.at("parameter_name").get<std::string>();
      each.value = archive.weight(name);
      if (known.insert(each.value.unsafeGetTensorImpl()).second) {
        add_parameter(name, each.value);
      }
    } else if (kind == "buffer") {
      const std::string name = said.at("buffer_name").get<std::string>();
      const bool is_saved = said.at("persistent").get<bool>();
      each.value = is_saved ? archive.weight(name) : archive.constant(name);
      each.is_buffer = true;
      if (is_saved) {
        add_buffer(name, each.value);
      }
    } else if (kind == "tensor_constant") {
      each.value = archive.constant(said.at("tensor_constant_name").get<std::string>());
    } else if (kind == "user_input") {
      continue;
    } else {
      refuse("has an input of the kind " + kind, kForward);
    }
    each.name = said.at("arg").at("name").get<std::string>();
    state.push_back(std::move(each));
  }
  return state;
}

std::string ExportedModel::user_tensor(const json& specs, const std::string& kind) const {
  std::string name;
  for (const json& spec : specs) {
    if (!spec.contains(kind)) {
      continue;
    }
    const json& said = spec.at(kind).at("arg");
    if (!name.empty() || !said.contains("as_tensor")) {
      refuse("takes or gives more than one tensor", kForward);
    }
    name = said.at("as_tensor").at("name").get<std::string>();
  }
  if (name.empty()) {
    refuse("takes or gives no tensor", kForward);
  }
  return name;
}

void ExportedModel::check_rows(const json& program, const std::string& input, std::int64_t features) {
  const json& meta = program.at("graph_module").at("graph").at("tensor_values").at(input);
  const json& sizes = meta.at("sizes");
  if (sizes.size() != 2 || exported_type(meta.at("dtype").get<int>()) != at::kFloat) {
    refuse(fmt::format("takes a tensor of {} axes, or of another type", sizes.size()), kForward);
  }
  const json& rows = sizes[0];
  const json& row = sizes[1];
  if (row.contains("as_int") && row.at("as_int") != features) {
    refuse(
        fmt::format("takes rows of {} features, and the table has {}", row.at("as_int").get<std::int64_t>(), features),
        "export it with rows as the table has them, without the targets");
  }
  if (rows.contains("as_int")) {
    refuse(fmt::format("was exported for {} rows and no other number", rows.at("as_int").get<std::int64_t>()),
           kAnyRows);
  }
  const auto range = program.at("range_constraints").find(symbol_of(rows.at("as_expr").at("expr_str")));
  if (range == program.at("range_constraints").end()) {
    return;
  }
  constexpr std::int64_t kAnyNumber = 2;  // torch.export takes it for that, too: 0 and 1 are numbers of their own
  if (const json& fewest = range->at("min_val"); fewest.is_number_integer() && fewest > kAnyNumber) {
    fewest_ = fewest.get<std::int64_t>();
  }
  if (const json& most = range->at("max_val"); most.is_number_integer()) {
    most_ = most.get<std::int64_t>();
  }
}

at::Tensor ExportedModel::forward(const at::Tensor& rows) {
  if (rows.size(0) < fewest_ || rows.size(0) > most_) {
    refuse(fmt::format("was exported for {} to {} rows, and this batch has {}", fewest_, most_, rows.size(0)),
           kAnyRows);
  }
  return graph_->run(rows, is_training());
}

}  // namespace unidle::workloads::torchscript
