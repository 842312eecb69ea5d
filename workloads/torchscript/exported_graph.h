// A graph of torch.export, run operation by operation.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace unidle::workloads::torchscript {

/// Calls of torch's operations in order, through its dispatcher: autograd, autocast and devices are what they are in
/// Python. Dropout, batch normalisation and what else has two modes were recorded in one of them; here they follow the
/// mode that run() is given. One thread.
class ExportedGraph {
 public:
  /// What a graph has beside its input: parameters, buffers, constants.
  struct State {
    std::string name;  // in the graph
    at::Tensor value;
    bool is_buffer = false;
  };

  /// `graph`: a Graph of schema version 8, as torch.export.save writes it. What it makes, it makes on `device`. Throws
  /// std::runtime_error saying what it has that cannot be run, and what nlohmann::json throws where it is no graph.
  ExportedGraph(const nlohmann::json& graph, const std::vector<State>& state, const std::string& input,
                const std::string& output, at::Device device);

  at::Tensor run(const at::Tensor& input, bool training);

  /// It was recorded with model.eval(): all that has two modes is in the other one.
  bool was_recorded_in_evaluation() const { return trained_ == 0 && evaluated_ > 0; }

 private:
  using Place = std::size_t;  // in values_

  struct Argument {
    enum class Kind { kOne, kInts, kTensors, kOptionalTensors };
    c10::Argument wanted;  // of the operation's schema
    Kind kind = Kind::kOne;
    std::vector<Place> places;
  };
  struct Result {
    bool is_list = false;
    std::vector<Place> places;  // none where nobody asks for it
  };
  struct Call {
    std::function<void(torch::jit::Stack&)> work;
    std::vector<Argument> arguments;
    std::vector<Result> results;
    std::optional<std::pair<std::size_t, c10::IValue>> in_evaluation;  // an argument, and what it is there
    std::optional<Place> written;                                      // a buffer
    std::vector<Place> done_with;                                      // values that no later call needs
  };

  Place place_of(const std::string& name);
  Place known_place(const std::string& name) const;
  Place place_for(c10::IValue constant);
  Place place_of_part(const nlohmann::json& part);
  Argument argument_of(const nlohmann::json& given, const c10::Argument& wanted);
  void take_list(const std::string& kind, const nlohmann::json& parts, Argument& argument);
  c10::IValue constant_of(const std::string& kind, const nlohmann::json& value) const;
  std::vector<Result> results_of(const nlohmann::json& node);
  Call operation_of(const nlohmann::json& node);
  Call arithmetic_of(const nlohmann::json& node);
  void find_mode(Call& call);
  void find_written(Call& call) const;
  void find_ends();
  c10::IValue value_of(const Argument& argument) const;
  void make(const Call& call, bool training);

  at::Device device_;
  std::map<std::string, Place> places_;
  std::vector<c10::IValue> values_;
  std::vector<bool> lasting_;  // state and constants: kept from run to run
  std::vector<Place> buffers_;
  std::vector<Call> calls_;
  Place input_ = 0;
  Place output_ = 0;
  int trained_ = 0;    // what has two modes and was recorded in training
  int evaluated_ = 0;  // and in evaluation
  torch::jit::Stack stack_;
};

/// torch's type by its number in the schema. Throws std::runtime_error for one that has no name here.
at::ScalarType exported_type(int number);

}  // namespace unidle::workloads::torchscript
