#include "unidle/trace/detail/flops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "unidle/base/numbers.h"

namespace unidle::trace::detail {

namespace {

using Shape = std::vector<double>;

double size_of(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); }

/// The shape of an argument; empty when it is missing.
const Shape& shape_at(const TraceEvent& event, std::size_t number) {
  static const Shape kNone;
  return number < event.shapes.size() ? event.shapes[number] : kNone;
}

/// `first`: the number of the argument that is the left matrix.
std::optional<double> of_product(const TraceEvent& event, std::size_t first) {
  const Shape& a = shape_at(event, first);
  const Shape& b = shape_at(event, first + 1);
  if (a.size() < 2 || b.size() < 2) {
    return std::nullopt;
  }
  return 2 * size_of(a) * b.back();
}

/// "[2, 2]" -> 2, 2; nothing for another text.
Shape numbers_in(std::string_view text) {
  Shape numbers;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return numbers;
  }
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t end = text.find(", ");
    numbers.push_back(parse_number<double>(text.substr(0, end)).value_or(0));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
  return numbers;
}

std::string_view value_at(const TraceEvent& event, std::size_t number) {
  return number < event.values.size() ? std::string_view(event.values[number]) : std::string_view();
}

double at_or(const Shape& numbers, std::size_t number, double otherwise) {
  return number < numbers.size() ? numbers[number] : (numbers.size() == 1 ? numbers.front() : otherwise);
}

/// Arguments: input, weight, bias, stride, padding, dilation, transposed, output padding, groups.
std::optional<double> of_convolution(const TraceEvent& event) {
  const Shape& input = shape_at(event, 0);
  const Shape& weight = shape_at(event, 1);
  const std::string_view transposed = value_at(event, 6);
  if (input.size() < 3 || weight.size() != input.size() || weight[0] <= 0 || transposed.empty()) {
    return std::nullopt;
  }
  if (transposed == "True") {
    return 2 * size_of(input) * size_of(weight) / weight[0];
  }
  const Shape stride = numbers_in(value_at(event, 3));
  const Shape padding = numbers_in(value_at(event, 4));
  const Shape dilation = numbers_in(value_at(event, 5));
  double places = input[0];
  for (std::size_t i = 2; i < input.size(); ++i) {
    const double kernel = at_or(dilation, i - 2, 1) * (weight[i] - 1) + 1;
    const double steps = at_or(stride, i - 2, 1);
    places *= steps > 0 ? std::floor((input[i] + 2 * at_or(padding, i - 2, 0) - kernel) / steps) + 1 : 0;
  }
  return 2 * places * size_of(weight);
}

/// Arguments: gradient, input, weight, bias sizes, stride, padding, dilation, transposed, output padding, groups, and
/// which of the gradients of input, weight and bias are wanted.
std::optional<double> of_convolution_backward(const TraceEvent& event) {
  const Shape& gradient = shape_at(event, 0);
  const Shape& input = shape_at(event, 1);
  const Shape& weight = shape_at(event, 2);
  const std::string_view wanted = value_at(event, 10);
  if (gradient.size() < 3 || weight.size() != gradient.size() || weight[0] <= 0 || wanted.empty()) {
    return std::nullopt;
  }
  const double forward = 2 * size_of(value_at(event, 7) == "True" ? input : gradient) * size_of(weight) / weight[0];
  const bool of_input = wanted.starts_with("[True");
  const bool of_weight = wanted.find(", True,") != std::string_view::npos;
  return forward * ((of_input ? 1 : 0) + (of_weight ? 1 : 0));
}

/// `query`: the number of that argument; key and value follow. Shapes are batch, heads, length, width.
std::optional<double> of_attention(const TraceEvent& event, std::size_t query, double passes) {
  const Shape& q = shape_at(event, query);
  const Shape& k = shape_at(event, query + 1);
  const Shape& v = shape_at(event, query + 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) {
    return std::nullopt;
  }
  return passes * 2 * q[0] * q[1] * q[2] * k[2] * (q[3] + v[3]);
}

/// The input is length x batch x width or batch x length x width. For each row of the input, each weight matrix is
/// multiplied once, by the row or by the state. oneDNN has the weights in two arguments. cuDNN has them in a list, and
/// no other argument of it is a matrix.
std::optional<double> of_recurrent(const TraceEvent& event, std::size_t last_weight, double passes) {
  const Shape& input = shape_at(event, 0);
  double weights = 0;
  for (std::size_t i = 1; i <= last_weight && i < event.shapes.size(); ++i) {
    weights += event.shapes[i].size() == 2 ? size_of(event.shapes[i]) : 0;
  }
  return input.size() == 3 && weights > 0 ? std::optional(passes * 2 * input[0] * input[1] * weights) : std::nullopt;
}

constexpr std::size_t kAll = 1000;

struct Operator {
  std::string_view name;
  std::optional<double> (*flops)(const TraceEvent& event);
  std::size_t typed;  // the argument whose type counts
};

/// Operators that other operators of this list never call. The backward pass of a product is products.
constexpr std::array kOperators = {
    Operator{"aten::mm", [](const TraceEvent& event) { return of_product(event, 0); }, 0},
    Operator{"aten::bmm", [](const TraceEvent& event) { return of_product(event, 0); }, 0},
    Operator{"aten::addmm", [](const TraceEvent& event) { return of_product(event, 1); }, 1},
    Operator{"aten::baddbmm", [](const TraceEvent& event) { return of_product(event, 1); }, 1},
    Operator{"aten::_addmm_activation", [](const TraceEvent& event) { return of_product(event, 1); }, 1},
    Operator{"aten::_scaled_mm", [](const TraceEvent& event) { return of_product(event, 0); }, 0},
    Operator{"aten::_grouped_mm", [](const TraceEvent& event) { return of_product(event, 0); }, 0},
    Operator{"aten::convolution", of_convolution, 0},
    Operator{"aten::convolution_backward", of_convolution_backward, 0},
    Operator{"aten::_scaled_dot_product_flash_attention",
             [](const TraceEvent& event) { return of_attention(event, 0, 1); }, 0},
    Operator{"aten::_scaled_dot_product_efficient_attention",
             [](const TraceEvent& event) { return of_attention(event, 0, 1); }, 0},
    Operator{"aten::_scaled_dot_product_cudnn_attention",
             [](const TraceEvent& event) { return of_attention(event, 0, 1); }, 0},
    Operator{"aten::_scaled_dot_product_flash_attention_for_cpu",
             [](const TraceEvent& event) { return of_attention(event, 0, 1); }, 0},
    Operator{"aten::_scaled_dot_product_flash_attention_backward",
             [](const TraceEvent& event) { return of_attention(event, 1, 2); }, 1},
    Operator{"aten::_scaled_dot_product_efficient_attention_backward",
             [](const TraceEvent& event) { return of_attention(event, 1, 2); }, 1},
    Operator{"aten::_scaled_dot_product_cudnn_attention_backward",
             [](const TraceEvent& event) { return of_attention(event, 1, 2); }, 1},
    Operator{"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
             [](const TraceEvent& event) { return of_attention(event, 1, 2); }, 1},
    Operator{"aten::mkldnn_rnn_layer", [](const TraceEvent& event) { return of_recurrent(event, 2, 1); }, 0},
    Operator{"aten::mkldnn_rnn_layer_backward", [](const TraceEvent& event) { return of_recurrent(event, 2, 2); }, 0},
    Operator{"aten::_cudnn_rnn", [](const TraceEvent& event) { return of_recurrent(event, kAll, 1); }, 0},
    Operator{"aten::_cudnn_rnn_backward", [](const TraceEvent& event) { return of_recurrent(event, kAll, 2); }, 0},
};

const Operator* find(std::string_view name) {
  const auto* found = std::ranges::find(kOperators, name, &Operator::name);
  return found == kOperators.end() ? nullptr : found;
}

}  // namespace

bool has_flops(std::string_view name) { return name.starts_with("aten::") && find(name) != nullptr; }

std::optional<double> flops_of(const TraceEvent& event) {
  const Operator* known = event.shapes.empty() ? nullptr : find(event.name);
  const std::optional<double> flops = known != nullptr ? known->flops(event) : std::nullopt;
  return flops && std::isfinite(*flops) && *flops >= 0 ? flops : std::nullopt;
}

std::string number_type(const TraceEvent& event) {
  const Operator* known = find(event.name);
  const std::size_t argument = known != nullptr ? known->typed : 0;
  const std::string_view written =
      argument < event.types.size() ? std::string_view(event.types[argument]) : std::string_view();
  if (written == "float") {
    return "fp32";
  }
  if (written.find("BFloat16") != std::string_view::npos) {
    return "bf16";
  }
  if (written.find("Half") != std::string_view::npos) {
    return "fp16";
  }
  if (written.find("Float8") != std::string_view::npos) {
    return "fp8";
  }
  return written == "double" ? "fp64" : std::string(written);
}

}  // namespace unidle::trace::detail
