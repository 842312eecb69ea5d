#include "workloads/torchscript/exported_graph.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace unidle::workloads::torchscript {

namespace {

using nlohmann::json;
using Whole = std::int64_t;
using Arithmetic = c10::IValue (*)(Whole, Whole);

[[noreturn]] void cannot_run(const std::string& what) { throw std::runtime_error("it has " + what); }

/// The one key of a union of the schema, e.g. {"as_int": 3}.
std::pair<std::string, json> variant_of(const json& value) {
  if (!value.is_object() || value.size() != 1) {
    cannot_run("a value of no known kind");
  }
  return {value.begin().key(), value.begin().value()};
}

/// JSON has no infinities.
double real_of(const json& value) {
  if (!value.is_string()) {
    return value.get<double>();
  }
  const std::string& text = value.get_ref<const std::string&>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return text == "Infinity" ? kInfinity : text == "-Infinity" ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
}

Whole floor_divided(Whole a, Whole b) {
  if (b == 0) {
    cannot_run("a division by zero");
  }
  return a / b - static_cast<Whole>((a % b != 0) && ((a < 0) != (b < 0)));
}

/// What Python does with sizes between the operations; null for what is none of that.
Arithmetic arithmetic_named(const std::string& name) {
  static const std::map<std::string, Arithmetic> kAll = {
      {"_operator.add", [](Whole a, Whole b) -> c10::IValue { return a + b; }},
      {"_operator.sub", [](Whole a, Whole b) -> c10::IValue { return a - b; }},
      {"_operator.mul", [](Whole a, Whole b) -> c10::IValue { return a * b; }},
      {"_operator.floordiv", [](Whole a, Whole b) -> c10::IValue { return floor_divided(a, b); }},
      {"_operator.mod", [](Whole a, Whole b) -> c10::IValue { return a - floor_divided(a, b) * b; }},
      {"_operator.eq", [](Whole a, Whole b) -> c10::IValue { return a == b; }},
      {"_operator.ne", [](Whole a, Whole b) -> c10::IValue { return a != b; }},
      {"_operator.lt", [](Whole a, Whole b) -> c10::IValue { return a < b; }},
      {"_operator.le", [](Whole a, Whole b) -> c10::IValue { return a <= b; }},
      {"_operator.gt", [](Whole a, Whole b) -> c10::IValue { return a > b; }},
      {"_operator.ge", [](Whole a, Whole b) -> c10::IValue { return a >= b; }},
      {"torch.sym_max", [](Whole a, Whole b) -> c10::IValue { return std::max(a, b); }},
      {"torch.sym_min", [](Whole a, Whole b) -> c10::IValue { return std::min(a, b); }},
  };
  const auto found = kAll.find(name);
  return found != kAll.end() ? found->second : nullptr;
}

/// "torch.ops.aten.add.Tensor" -> aten::add, Tensor.
c10::OperatorHandle operation_named(const std::string& target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  const std::size_t space = target.find('.', kPrefix.size());
  const std::size_t name = space == std::string::npos ? space : target.find('.', space + 1);
  if (!target.starts_with(kPrefix) || name == std::string::npos) {
    cannot_run(target);
  }
  const std::string overload = target.substr(name + 1);
  const auto found = c10::Dispatcher::singleton().findSchema(
      {target.substr(kPrefix.size(), space - kPrefix.size()) + "::" + target.substr(space + 1, name - space - 1),
       overload == "default" ? "" : overload});
  if (!found) {
    cannot_run(target + ", which is not an operation of torch itself");
  }
  return *found;
}

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType ? *type.expectRef<c10::OptionalType>().getElementType() : type;
}

/// The value as the operation wants it, where Python would have converted it.
c10::IValue fitted(c10::IValue value, const c10::Argument& wanted) {
  if (value.isTensor() || value.isNone()) {
    return value;
  }
  const c10::Type& type = without_optional(*wanted.type());
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return value.isScalar() ? at::native::wrapped_scalar_tensor(value.toScalar()) : value;
    case c10::TypeKind::FloatType: return value.isInt() ? static_cast<double>(value.toInt()) : value;
    case c10::TypeKind::ListType: break;
    default: return value;
  }
  const bool of_reals = type.containedType(0)->kind() == c10::TypeKind::FloatType;
  if (value.isInt() && !of_reals) {
    return std::vector<Whole>(static_cast<std::size_t>(wanted.N().value_or(1)), value.toInt());
  }
  if (value.isIntList() && of_reals) {
    const std::vector<Whole> whole = value.toIntVector();
    return std::vector<double>(whole.begin(), whole.end());
  }
  return value;
}

}  // namespace

at::ScalarType exported_type(int number) {
  constexpr int kBool = 12;
  constexpr int kBFloat16 = 13;
  if (number >= 1 && number <= kBool) {
    return static_cast<at::ScalarType>(number - 1);  // the same order as far as that
  }
  if (number != kBFloat16) {
    cannot_run(fmt::format("a tensor of type {}", number));
  }
  return at::kBFloat16;
}

ExportedGraph::ExportedGraph(const json& graph, const std::vector<State>& state, const std::string& input,
                             const std::string& output, at::Device device)
    : device_(device) {
  for (const State& each : state) {
    const Place place = places_[each.name] = place_for(each.value);
    if (each.is_buffer) {
      buffers_.push_back(place);
    }
  }
  input_ = place_of(input);
  for (const json& node : graph.at("nodes")) {
    const auto& target = node.at("target").get_ref<const std::string&>();
    // What it holds true of types, autocast may change.
    if (target != "torch.ops.aten._assert_tensor_metadata.default") {
      calls_.push_back(arithmetic_named(target) != nullptr ? arithmetic_of(node) : operation_of(node));
    }
  }
  output_ = known_place(output);
  find_ends();
}

ExportedGraph::Place ExportedGraph::place_of(const std::string& name) {
  const auto [place, is_new] = places_.try_emplace(name, values_.size());
  if (is_new) {
    values_.emplace_back();
    lasting_.push_back(false);
  }
  return place->second;
}

ExportedGraph::Place ExportedGraph::known_place(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    cannot_run(fmt::format("no '{}', which it needs", name));
  }
  return found->second;
}

ExportedGraph::Place ExportedGraph::place_for(c10::IValue constant) {
  values_.push_back(std::move(constant));
  lasting_.push_back(true);
  return values_.size() - 1;
}

/// Of a list: {"as_name": "s"}, {"as_int": 3}, {"as_tensor": {"name": "x"}}, {"as_none": true} or {"name": "x"}.
ExportedGraph::Place ExportedGraph::place_of_part(const json& part) {
  const auto [kind, value] = variant_of(part);
  if (kind == "as_name" || kind == "name") {
    return known_place(value.get<std::string>());
  }
  return kind == "as_tensor" ? known_place(value.at("name").get<std::string>()) : place_for(constant_of(kind, value));
}

c10::IValue ExportedGraph::constant_of(const std::string& kind, const json& value) const {
  if (kind == "as_none") {
    return {};
  }
  if (kind == "as_int") {
    return value.get<Whole>();
  }
  if (kind == "as_float") {
    return real_of(value);
  }
  if (kind == "as_bool") {
    return value.get<bool>();
  }
  if (kind == "as_string") {
    return value.get<std::string>();
  }
  if (kind == "as_ints") {
    return value.get<std::vector<Whole>>();
  }
  if (kind == "as_floats") {
    std::vector<double> numbers;
    std::transform(value.begin(), value.end(), std::back_inserter(numbers), real_of);
    return numbers;
  }
  if (kind == "as_bools") {
    c10::List<bool> truths;
    for (const json& each : value) {
      truths.push_back(each.get<bool>());
    }
    return truths;
  }
  if (kind == "as_scalar_type") {
    return exported_type(value.get<int>());
  }
  if (kind == "as_memory_format") {
    constexpr std::array kFormats = {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
                                     at::MemoryFormat::ChannelsLast3d, at::MemoryFormat::Preserve};
    return kFormats.at(value.get<std::size_t>() - 1);
  }
  if (kind == "as_device") {
    return device_;  // not the one that it was exported on
  }
  constexpr int kStrided = 7;
  if (kind == "as_layout" && value == kStrided) {
    return at::Layout::Strided;
  }
  cannot_run("an argument of the kind " + kind);
}

void ExportedGraph::take_list(const std::string& kind, const json& parts, Argument& argument) {
  const c10::Type& element = *without_optional(*argument.wanted.type()).containedType(0);
  argument.kind = kind == "as_sym_ints"                           ? Argument::Kind::kInts
                  : element.kind() == c10::TypeKind::OptionalType ? Argument::Kind::kOptionalTensors
                                                                  : Argument::Kind::kTensors;
  for (const json& part : parts) {
    argument.places.push_back(place_of_part(part));
  }
}

ExportedGraph::Argument ExportedGraph::argument_of(const json& given, const c10::Argument& wanted) {
  Argument argument{.wanted = wanted, .places = {}};
  const auto [kind, value] = variant_of(given);
  if (kind == "as_tensor") {
    argument.places = {known_place(value.at("name").get<std::string>())};
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool" || kind == "as_optional_tensor") {
    argument.places = {place_of_part(value)};
  } else if (kind == "as_tensors" || kind == "as_optional_tensors" || kind == "as_sym_ints") {
    take_list(kind, value, argument);
  } else {
    argument.places = {place_for(fitted(constant_of(kind, value), wanted))};
  }
  return argument;
}

std::vector<ExportedGraph::Result> ExportedGraph::results_of(const json& node) {
  std::vector<Result> results;
  for (const json& output : node.at("outputs")) {
    const auto [kind, value] = variant_of(output);
    Result result;
    if (kind == "as_tensor") {
      result.places.push_back(place_of(value.at("name").get<std::string>()));
    } else if (kind == "as_tensors") {
      result.is_list = true;
      for (const json& each : value) {
        result.places.push_back(place_of(each.at("name").get<std::string>()));
      }
    } else if (value.is_object() && value.contains("as_name")) {  // as_sym_int and the like
      result.places.push_back(place_of(value.at("as_name").get<std::string>()));
    }
    results.push_back(std::move(result));
  }
  return results;
}

ExportedGraph::Call ExportedGraph::operation_of(const json& node) {
  const c10::OperatorHandle operation = operation_named(node.at("target").get<std::string>());
  const c10::FunctionSchema& schema = operation.schema();
  const json& inputs = node.at("inputs");
  Call call;
  for (const c10::Argument& wanted : schema.arguments()) {
    const auto given =
        std::find_if(inputs.begin(), inputs.end(), [&](const json& each) { return each.at("name") == wanted.name(); });
    if (given != inputs.end()) {
      call.arguments.push_back(argument_of(given->at("arg"), wanted));
    } else if (wanted.default_value()) {
      call.arguments.push_back({.wanted = wanted, .places = {place_for(*wanted.default_value())}});
    } else {
      cannot_run(fmt::format("{} without its '{}'", schema.name(), wanted.name()));
    }
  }
  call.results = results_of(node);
  if (call.results.size() != schema.returns().size()) {
    cannot_run(fmt::format("{} with {} results", schema.name(), call.results.size()));
  }
  call.work = [operation](torch::jit::Stack& stack) { operation.callBoxed(stack); };
  find_mode(call);
  find_written(call);
  return call;
}

ExportedGraph::Call ExportedGraph::arithmetic_of(const json& node) {
  const c10::Argument number("number", c10::IntType::get());
  Call call;
  for (const json& input : node.at("inputs")) {
    call.arguments.push_back(argument_of(input.at("arg"), number));
  }
  call.results = results_of(node);
  if (call.arguments.size() != 2 || call.results.size() != 1) {
    cannot_run("a sum of other than two numbers");
  }
  call.work = [arithmetic = arithmetic_named(node.at("target").get<std::string>())](torch::jit::Stack& stack) {
    stack[0] = arithmetic(stack[0].toInt(), stack[1].toInt());
    stack.pop_back();
  };
  return call;
}

/// Operations with two modes are told which one by an argument.
void ExportedGraph::find_mode(Call& call) {
  const auto given = [&](std::size_t argument) -> const c10::IValue& {
    return values_[call.arguments[argument].places.front()];
  };
  bool without_running_statistics = false;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const std::string& name = call.arguments[i].wanted.name();
    if (call.arguments[i].kind != Argument::Kind::kOne) {
      continue;
    }
    without_running_statistics |= name == "running_mean" && given(i).isNone();
    const bool is_flag = given(i).isBool() && (name == "train" || name == "training" || name == "use_input_stats");
    if (is_flag && !given(i).toBool()) {
      ++evaluated_;
    } else if (is_flag && !without_running_statistics) {  // without them both modes are one
      ++trained_;
      call.in_evaluation = {i, false};
    } else if (name == "dropout_p" && given(i).isDouble() && given(i).toDouble() > 0) {
      ++trained_;
      call.in_evaluation = {i, 0.0};
    }
  }
}

void ExportedGraph::find_written(Call& call) const {
  for (const Argument& argument : call.arguments) {
    const c10::AliasInfo* alias = argument.wanted.alias_info();
    if (alias != nullptr && alias->isWrite() && argument.kind == Argument::Kind::kOne &&
        std::find(buffers_.begin(), buffers_.end(), argument.places[0]) != buffers_.end()) {
      call.written = argument.places[0];
    }
  }
}

void ExportedGraph::find_ends() {
  std::vector<bool> needed = lasting_;
  needed[output_] = true;
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const auto end_here = [&](const std::vector<Place>& places) {
      for (const Place place : places) {
        if (!needed[place]) {
          needed[place] = true;
          call->done_with.push_back(place);
        }
      }
    };
    for (const Result& result : call->results) {
      end_here(result.places);
    }
    for (const Argument& argument : call->arguments) {
      end_here(argument.places);
    }
  }
}

c10::IValue ExportedGraph::value_of(const Argument& argument) const {
  switch (argument.kind) {
    case Argument::Kind::kOne: return fitted(values_[argument.places[0]], argument.wanted);
    case Argument::Kind::kInts: {
      std::vector<Whole> numbers;
      for (const Place place : argument.places) {
        numbers.push_back(values_[place].toInt());
      }
      return numbers;
    }
    case Argument::Kind::kTensors: {
      std::vector<at::Tensor> tensors;
      for (const Place place : argument.places) {
        tensors.push_back(values_[place].toTensor());
      }
      return tensors;
    }
    case Argument::Kind::kOptionalTensors: break;
  }
  c10::List<std::optional<at::Tensor>> tensors;
  for (const Place place : argument.places) {
    tensors.push_back(values_[place].toOptional<at::Tensor>());
  }
  return tensors;
}

void ExportedGraph::make(const Call& call, bool training) {
  stack_.clear();
  for (const Argument& argument : call.arguments) {
    stack_.push_back(value_of(argument));
  }
  if (!training && call.in_evaluation) {
    stack_[call.in_evaluation->first] = call.in_evaluation->second;
  }
  call.work(stack_);
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const std::vector<Place>& places = call.results[i].places;
    if (call.results[i].is_list) {
      const std::vector<at::Tensor> tensors = stack_[i].toTensorVector();
      TORCH_CHECK(tensors.size() == places.size(), "a list of ", tensors.size(), " tensors where ", places.size(),
                  " were recorded");
      for (std::size_t part = 0; part < places.size(); ++part) {
        values_[places[part]] = tensors[part];
      }
    } else if (!places.empty()) {
      values_[places[0]] = std::move(stack_[i]);
    }
  }
}

at::Tensor ExportedGraph::run(const at::Tensor& input, bool training) {
  values_[input_] = input;
  for (const Call& call : calls_) {
    if (training || !call.written) {
      make(call, training);
    } else if (!call.results.empty() && !call.results[0].places.empty()) {
      values_[call.results[0].places[0]] = values_[*call.written];  // evaluation leaves buffers alone
    }
    for (const Place place : call.done_with) {
      values_[place] = {};
    }
  }
  stack_.clear();
  at::Tensor output = values_[output_].toTensor();
  if (!lasting_[output_]) {
    values_[output_] = {};
  }
  return output;
}

}  // namespace unidle::workloads::torchscript
