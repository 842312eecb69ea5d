#include "workloads/timeseries/model.h"

#include <ATen/autocast_mode.h>

#include <optional>

#include "workloads/timeseries/fast_lstm.h"

namespace unidle::workloads::timeseries {

namespace {

/// Whether torch has a 16-bit LSTM on this device: oneDNN's needs AVX-512.
bool has_half_lstm(at::Device device) {
#if defined(__x86_64__)
  return !device.is_cpu() || __builtin_cpu_supports("avx512f") != 0;
#else
  return !device.is_cpu();
#endif
}

class WithoutAutocast {
 public:
  explicit WithoutAutocast(at::DeviceType device)
      : device_(device), was_enabled_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device_, false);
  }
  ~WithoutAutocast() { at::autocast::set_autocast_enabled(device_, was_enabled_); }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
};

}  // namespace

Forecaster::Forecaster(const Options& options)
    : lstm_(register_module(
          "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(options.features, options.width).num_layers(options.depth)))),
      attention_hidden_(register_module("attention_hidden", torch::nn::Linear(options.width, options.width))),
      attention_score_(register_module("attention_score",
                                       torch::nn::Linear(torch::nn::LinearOptions(options.width, 1).bias(false)))),
      head_hidden_(register_module("head_hidden", torch::nn::Linear(2 * options.width, options.width / 2))),
      head_(register_module("head", torch::nn::Linear(options.width / 2, 1))) {}

at::Tensor Forecaster::seen(const at::Tensor& days) {
  const std::vector<at::Tensor> all = lstm_->all_weights();
  const auto weights = [&](std::int64_t layer) {
    const at::Tensor* first = all.data() + 4 * layer;
    return LstmWeights{first[0], first[1], first[2], first[3]};
  };
  std::optional<WithoutAutocast> in_fp32;
  if (!has_half_lstm(days.device())) {
    in_fp32.emplace(days.device().type());
  }
  at::Tensor outputs = days.transpose(0, 1);
  if (!fast_lstm_fits(outputs, weights(0))) {
    return std::get<0>(lstm_->forward(outputs));
  }
  for (std::int64_t layer = 0; layer < depth(); ++layer) {
    outputs = fast_lstm(outputs, weights(layer));
  }
  return outputs;
}

at::Tensor Forecaster::forward(const at::Tensor& days) {
  const at::Tensor seen = this->seen(days);
  const at::Tensor weights = attention_score_->forward(attention_hidden_->forward(seen).tanh()).softmax(0);
  const at::Tensor context = (weights * seen).sum(0);
  const at::Tensor last = seen.select(0, seen.size(0) - 1);
  return head_->forward(head_hidden_->forward(at::cat({context, last}, 1)).relu()).squeeze(1);
}

std::int64_t Forecaster::width() const { return lstm_->options.hidden_size(); }
std::int64_t Forecaster::depth() const { return lstm_->options.num_layers(); }

}  // namespace unidle::workloads::timeseries
