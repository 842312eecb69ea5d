#include "unidle/trace/detail/flops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "unidle/base/numbers.h"

namespace unidle::trace::detail {

namespace {

using Shape = std::vector<double>;

double size_of(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); }

/// Whole, and exact as a double.
bool is_size(double value) { return value >= 0 && value < 9007199254740992.0 && value == std::floor(value); }

bool all_sizes(const Shape& shape) { return std::ranges::all_of(shape, is_size); }

/// The shape of an argument; empty when it is missing.
const Shape& shape_at(const TraceEvent& event, std::size_t number) {
  static const Shape kNone;
  return number < event.shapes.size() ? event.shapes[number] : kNone;
}

std::string_view value_at(const TraceEvent& event, std::size_t number) {
  return number < event.values.size() ? std::string_view(event.values[number]) : std::string_view();
}

/// `first`: the number of the argument that is the left matrix. `dimensions`: 2, or 3 for a batch of matrices.
std::optional<double> of_product(const TraceEvent& event, std::size_t first, std::size_t dimensions) {
  const Shape& a = shape_at(event, first);
  const Shape& b = shape_at(event, first + 1);
  if (a.size() != dimensions || b.size() != dimensions || a.back() != b[dimensions - 2] ||
      (dimensions == 3 && a[0] != b[0])) {
    return std::nullopt;
  }
  return 2 * size_of(a) * b.back();
}

/// "[2, 2]" -> 2, 2, or "[2]" for both; nothing for another text.
std::optional<Shape> sizes_in(std::string_view text, std::size_t count) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return std::nullopt;
  }
  text = text.substr(1, text.size() - 2);
  Shape sizes;
  while (!text.empty()) {
    const std::size_t end = text.find(", ");
    sizes.push_back(parse_number<double>(text.substr(0, end)).value_or(-1));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
  if (sizes.size() == 1) {
    sizes.resize(count, sizes.front());
  }
  return sizes.size() == count && all_sizes(sizes) ? std::optional(sizes) : std::nullopt;
}

std::optional<bool> bool_in(std::string_view text) {
  return text == "True" ? std::optional(true) : text == "False" ? std::optional(false) : std::nullopt;
}

struct Convolution {
  double flops = 0;
  Shape output;  // without its channels
  double channels = 0;
};

/// Arguments from `first` on: input, weight, bias, stride, padding, dilation, transposed, output padding, groups.
std::optional<Convolution> convolution(const TraceEvent& event, std::size_t first) {
  const Shape& input = shape_at(event, first);
  const Shape& weight = shape_at(event, first + 1);
  if (input.size() < 3 || weight.size() != input.size()) {
    return std::nullopt;
  }
  const std::size_t places = input.size() - 2;
  const auto stride = sizes_in(value_at(event, first + 3), places);
  const auto padding = sizes_in(value_at(event, first + 4), places);
  const auto dilation = sizes_in(value_at(event, first + 5), places);
  const auto transposed = bool_in(value_at(event, first + 6));
  const auto more = sizes_in(value_at(event, first + 7), places);
  const double groups = parse_number<double>(value_at(event, first + 8)).value_or(0);
  if (!stride || !padding || !dilation || !transposed || !more || !is_size(groups) || groups < 1 ||
      std::fmod(weight[0], groups) != 0 || input[1] != (*transposed ? weight[0] : weight[1] * groups)) {
    return std::nullopt;
  }
  Convolution result{0, {input[0]}, *transposed ? weight[1] * groups : weight[0]};
  for (std::size_t i = 0; i < places; ++i) {
    const double reach = (*dilation)[i] * (weight[i + 2] - 1) + 1;
    const double step = (*stride)[i];
    if (step < 1 || (*dilation)[i] < 1 || weight[i + 2] < 1) {
      return std::nullopt;
    }
    const double all = input[i + 2] + 2 * (*padding)[i];
    const double size = *transposed ? (input[i + 2] - 1) * step - 2 * (*padding)[i] + reach + (*more)[i]
                                    : std::floor((all - reach) / step) + 1;
    if (size < 1) {
      return std::nullopt;  // smaller than its kernel
    }
    result.output.push_back(size);
  }
  // Each place of the input, or of the output, meets each weight of its group once.
  const double met = *transposed ? size_of(input) / std::max(input[1], 1.0) : size_of(result.output);
  result.flops = 2 * met * size_of(weight);
  return result;
}

std::optional<double> of_convolution(const TraceEvent& event) {
  const auto forward = convolution(event, 0);
  return forward ? std::optional(forward->flops) : std::nullopt;
}

/// Arguments: gradient, then those of the convolution with sizes instead of the bias, then which of the gradients of
/// input, weight and bias are wanted: "[True, True, False]".
std::optional<double> of_convolution_backward(const TraceEvent& event) {
  const auto forward = convolution(event, 1);
  const Shape& gradient = shape_at(event, 0);
  std::string_view wanted = value_at(event, 10);
  if (!forward || gradient.size() != forward->output.size() + 1 || gradient[0] != forward->output[0] ||
      gradient[1] != forward->channels ||
      !std::equal(gradient.begin() + 2, gradient.end(), forward->output.begin() + 1) || !wanted.starts_with('[') ||
      !wanted.ends_with(']')) {
    return std::nullopt;
  }
  wanted = wanted.substr(1, wanted.size() - 2);
  const std::size_t comma = wanted.find(", ");
  const std::size_t second = comma == std::string_view::npos ? comma : wanted.find(", ", comma + 2);
  if (second == std::string_view::npos) {
    return std::nullopt;
  }
  const auto of_input = bool_in(wanted.substr(0, comma));
  const auto of_weight = bool_in(wanted.substr(comma + 2, second - comma - 2));
  if (!of_input || !of_weight || !bool_in(wanted.substr(second + 2))) {
    return std::nullopt;
  }
  return forward->flops * ((*of_input ? 1 : 0) + (*of_weight ? 1 : 0));
}

enum class Layout { kHeadsFirst, kLengthFirst };  // batch, heads, length, width; batch, length, heads, width

/// `query`: the number of that argument; key and value follow. Several heads of the query may share one of the key.
std::optional<double> of_attention(const TraceEvent& event, std::size_t query, Layout layout, double passes) {
  const Shape& q = shape_at(event, query);
  const Shape& k = shape_at(event, query + 1);
  const Shape& v = shape_at(event, query + 2);
  const std::size_t heads = layout == Layout::kHeadsFirst ? 1 : 2;
  const std::size_t length = 3 - heads;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[0] != k[0] || k[0] != v[0] || k[heads] != v[heads] ||
      k[length] != v[length] || q[3] != k[3] || (q[heads] > 0 && std::fmod(q[heads], k[heads]) != 0)) {
    return std::nullopt;
  }
  return passes * 2 * q[0] * q[heads] * q[length] * k[length] * (q[3] + v[3]);
}

/// Attention that `begins` may tell where sequences begin in a batch, which a trace does not say.
std::optional<double> of_sequences(const TraceEvent& event, std::size_t query, std::size_t begins, double passes) {
  return shape_at(event, begins).empty() ? of_attention(event, query, Layout::kLengthFirst, passes) : std::nullopt;
}

/// The input is length x batch x width or batch x length x width. For each row of the input, each weight matrix is
/// multiplied once, by the row or by the state. oneDNN has the weights in two arguments. cuDNN has them in a list, and
/// no other argument of it is a matrix.
std::optional<double> of_recurrent(const TraceEvent& event, std::size_t last_weight, double passes) {
  const Shape& input = shape_at(event, 0);
  if (input.size() != 3) {
    return std::nullopt;
  }
  double weights = 0;
  for (std::size_t i = 1; i <= last_weight && i < event.shapes.size(); ++i) {
    const Shape& weight = event.shapes[i];
    if (weight.size() == 2 && weights == 0 && weight[1] != input[2]) {
      return std::nullopt;  // the first one takes the input
    }
    weights += weight.size() == 2 ? size_of(weight) : 0;
  }
  return weights > 0 ? std::optional(passes * 2 * input[0] * input[1] * weights) : std::nullopt;
}

/// With a matrix of two dimensions, offsets divide it into groups, and rows behind the last offset are left out: the
/// trace does not have their values.
std::optional<double> of_grouped(const TraceEvent& event) { return of_product(event, 0, 3); }

constexpr std::size_t kAll = kMostArguments;

struct Operator {
  std::string_view name;
  std::optional<double> (*flops)(const TraceEvent& event);
  std::size_t typed;  // the argument whose type counts
};

std::optional<double> sdpa(const TraceEvent& event) { return of_attention(event, 0, Layout::kHeadsFirst, 1); }
std::optional<double> sdpa_backward(const TraceEvent& event) { return of_attention(event, 1, Layout::kHeadsFirst, 2); }

/// The backward pass of a product is products. Some of them call others of the list.
constexpr std::array kOperators = {
    Operator{"aten::mm", [](const TraceEvent& event) { return of_product(event, 0, 2); }, 0},
    Operator{"aten::bmm", [](const TraceEvent& event) { return of_product(event, 0, 3); }, 0},
    Operator{"aten::addmm", [](const TraceEvent& event) { return of_product(event, 1, 2); }, 1},
    Operator{"aten::baddbmm", [](const TraceEvent& event) { return of_product(event, 1, 3); }, 1},
    Operator{"aten::_addmm_activation", [](const TraceEvent& event) { return of_product(event, 1, 2); }, 1},
    Operator{"aten::_scaled_mm", [](const TraceEvent& event) { return of_product(event, 0, 2); }, 0},
    Operator{"aten::_grouped_mm", of_grouped, 0},
    Operator{"aten::_scaled_grouped_mm", of_grouped, 0},
    Operator{"aten::convolution", of_convolution, 0},
    Operator{"aten::convolution_backward", of_convolution_backward, 0},
    Operator{"aten::_scaled_dot_product_flash_attention", sdpa, 0},
    Operator{"aten::_scaled_dot_product_efficient_attention", sdpa, 0},
    Operator{"aten::_scaled_dot_product_cudnn_attention", sdpa, 0},
    Operator{"aten::_scaled_dot_product_flash_attention_for_cpu", sdpa, 0},
    Operator{"aten::_scaled_dot_product_fused_attention_overrideable", sdpa, 0},
    Operator{"aten::_scaled_dot_product_flash_attention_backward", sdpa_backward, 1},
    Operator{"aten::_scaled_dot_product_efficient_attention_backward", sdpa_backward, 1},
    Operator{"aten::_scaled_dot_product_cudnn_attention_backward", sdpa_backward, 1},
    Operator{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", sdpa_backward, 1},
    Operator{"aten::_scaled_dot_product_fused_attention_overrideable_backward", sdpa_backward, 1},
    Operator{"aten::_flash_attention_forward", [](const TraceEvent& event) { return of_sequences(event, 0, 3, 1); }, 0},
    Operator{"aten::_flash_attention_backward", [](const TraceEvent& event) { return of_sequences(event, 1, 6, 2); },
             1},
    Operator{"aten::_efficient_attention_forward", [](const TraceEvent& event) { return of_sequences(event, 0, 4, 1); },
             0},
    Operator{"aten::_efficient_attention_backward",
             [](const TraceEvent& event) { return of_sequences(event, 1, 6, 2); }, 1},
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
  const Operator* known = find(event.name);
  // A list that is full may have been cut off.
  if (known == nullptr || event.shapes.empty() || event.shapes.size() >= kMostArguments ||
      !std::ranges::all_of(event.shapes, all_sizes) || number_type(event).find("complex") != std::string::npos) {
    return std::nullopt;
  }
  const std::optional<double> flops = known->flops(event);
  return flops && std::isfinite(*flops) && *flops >= 0 ? flops : std::nullopt;
}

bool multiplies_sparse(const TraceEvent& event) {
  const std::string_view name = event.name;
  return name.starts_with("aten::") && name.find("sparse") != std::string_view::npos &&
         (name.find("mm") != std::string_view::npos || name.find("matmul") != std::string_view::npos);
}

std::string number_type(const TraceEvent& event) {
  const Operator* known = find(event.name);
  const std::size_t argument = known != nullptr ? known->typed : 0;
  const std::string_view written =
      argument < event.types.size() ? std::string_view(event.types[argument]) : std::string_view();
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"float", "fp32"}, {"double", "fp64"}, {"c10::BFloat16", "bf16"}, {"c10::Half", "fp16"}});
  for (const auto& [name, type] : kNames) {
    if (written == name) {
      return std::string(type);
    }
  }
  return std::string(written.starts_with("c10::Float8") ? "fp8" : written);
}

}  // namespace unidle::trace::detail
