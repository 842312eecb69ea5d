// Programs of torch.export as models that the engine trains.
#pragma once

#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "workloads/torchscript/exported_archive.h"
#include "workloads/torchscript/exported_graph.h"
#include "workloads/torchscript/table_model.h"

namespace unidle::workloads::torchscript {

/// A program that torch.export.save wrote, exported in training mode: one tensor in, [rows, features] in float32 with
/// any number of rows, one tensor out. Its parameters and buffers have their names in Python; of a parameter with
/// several names, the first.
class ExportedModel final : public TableModel {
 public:
  /// Throws kInput, with what to export otherwise, for a program that is none of these or that is damaged.
  ExportedModel(std::string path, std::int64_t features, at::Device device);

  at::Tensor forward(const at::Tensor& rows) override;

 private:
  void open(std::int64_t features, at::Device device);
  /// What the graph has beside the rows: the model takes its parameters and buffers from it.
  std::vector<ExportedGraph::State> state_of(const nlohmann::json& input_specs, ExportedArchive& archive);
  /// The name in the graph of the one tensor that goes in, or comes out.
  std::string user_tensor(const nlohmann::json& specs, const std::string& kind) const;
  void check_rows(const nlohmann::json& program, const std::string& input, std::int64_t features);
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;

  std::string path_;
  std::unique_ptr<ExportedGraph> graph_;
  std::int64_t fewest_ = 0;  // rows
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace unidle::workloads::torchscript
