#include "unidle/train/fuse/rnn_operations.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

namespace unidle::train {

namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

// Arguments are torch's, in its order.
// NOLINTBEGIN(readability-function-size)
std::tuple<Tensor, Tensor, Tensor, Tensor> mkldnn_forward(const Tensor& input, const Tensor& weight0,
                                                          const Tensor& weight1, const Tensor& weight2,
                                                          const Tensor& weight3, const Tensor& hx, const Tensor& cx,
                                                          bool reverse, std::int64_t mode, std::int64_t hidden_size,
                                                          std::int64_t num_layers, bool has_biases, bool bidirectional,
                                                          bool batch_first, bool train) {
  const at::AutoDispatchBelowAutograd below;  // nothing is recorded
  const at::AutoGradMode with_grad(true);
  return at::mkldnn_rnn_layer(input, weight0, weight1, weight2, weight3, hx, cx, reverse, /*batch_sizes=*/{}, mode,
                              hidden_size, num_layers, has_biases, bidirectional, batch_first, train);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> mkldnn_backward(
    const Tensor& input, const Tensor& weight1, const Tensor& weight2, const Tensor& weight3, const Tensor& weight4,
    const Tensor& hx, const Tensor& cx, const Tensor& output, const Tensor& hy, const Tensor& cy,
    const MaybeTensor& grad_output, const MaybeTensor& grad_hy, const MaybeTensor& grad_cy, bool reverse,
    std::int64_t mode, std::int64_t hidden_size, std::int64_t num_layers, bool has_biases, bool train,
    bool bidirectional, bool batch_first, const Tensor& workspace) {
  return at::mkldnn_rnn_layer_backward(input, weight1, weight2, weight3, weight4, hx, cx, output, hy, cy, grad_output,
                                       grad_hy, grad_cy, reverse, mode, hidden_size, num_layers, has_biases, train,
                                       bidirectional, /*batch_sizes=*/{}, batch_first, workspace);
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> cudnn_backward(
    const Tensor& input, const std::vector<Tensor>& weight, std::int64_t weight_stride0, const Tensor& weight_buf,
    const Tensor& hx, const MaybeTensor& cx, const Tensor& output, const MaybeTensor& grad_output,
    const MaybeTensor& grad_hy, const MaybeTensor& grad_cy, std::int64_t mode, std::int64_t hidden_size,
    std::int64_t proj_size, std::int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional,
    const Tensor& reserve) {
  auto [of_input, of_hx, of_cx, of_weights] =
      at::_cudnn_rnn_backward(input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy, grad_cy,
                              mode, hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional,
                              /*batch_sizes=*/{}, /*dropout_state=*/{}, reserve, {true, true, true, true});
  return {of_input, of_hx, of_cx.defined() ? of_cx : at::empty_like(of_hx), of_weights};
}
// NOLINTEND(readability-function-size)

}  // namespace

void register_rnn_operations() {
  static const bool kDone = [] {
    static torch::Library library(torch::Library::DEF, "unidle", std::nullopt, __FILE__, __LINE__);
    library.def("mkldnn_rnn_layer", &mkldnn_forward);
    library.def("mkldnn_rnn_layer_backward", &mkldnn_backward);
    library.def("cudnn_rnn_backward", &cudnn_backward);
    return true;
  }();
  static_cast<void>(kDone);
}

}  // namespace unidle::train
