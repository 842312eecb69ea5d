#include "workloads/protein/model.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "unidle/train/step/recompute.h"
#include "workloads/protein/peptides.h"

namespace unidle::workloads::protein {

namespace {

constexpr double kAngstromScale = 0.1;
constexpr double kConfidenceScale = 0.01;
constexpr std::int64_t kFeedMultiple = 32;

/// Two thirds of four times the width, rounded to a multiple of 32: the same number of parameters as without a gate.
std::int64_t feed_width(std::int64_t width) {
  return (8 * width / 3 + kFeedMultiple - 1) / kFeedMultiple * kFeedMultiple;
}

torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

torch::nn::Conv2d conv(std::int64_t from, std::int64_t to) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).padding(1));
}

/// [n, length, width] -> [n, heads, length, width / heads]
at::Tensor to_heads(const at::Tensor& x) { return x.unflatten(2, {kHeads, -1}).transpose(1, 2); }

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& allowed) {
  return at::scaled_dot_product_attention(to_heads(query), to_heads(key), to_heads(value), allowed)
      .transpose(1, 2)
      .flatten(2);
}

/// Sines and cosines of the step at falling frequencies, like position encodings (Vaswani et al. 2017): [n, width].
at::Tensor step_features(const at::Tensor& step, std::int64_t width) {
  const std::int64_t half = width / 2;
  const at::Tensor rates =
      (at::arange(half, at::TensorOptions(at::kFloat).device(step.device())) * (-std::log(10000.0) / half)).exp();
  const at::Tensor angle = step.to(at::kFloat).unsqueeze(1) * rates;
  return at::cat({angle.sin(), angle.cos()}, 1);
}

}  // namespace

StructureEncoder::StructureEncoder()
    : angle0_(register_module("angle0", torch::nn::Linear(6, kStructure))),
      angle1_(register_module("angle1", torch::nn::Linear(kStructure, kStructure))),
      residue_(register_module("residue", torch::nn::Linear(kResidueFeatures, kStructure))),
      lstm_(register_module(
          "lstm",
          torch::nn::LSTM(torch::nn::LSTMOptions(kStructure, kStructure / 2).batch_first(true).bidirectional(true)))),
      pair0_(register_module("pair0", conv(2, 16))),
      pair1_(register_module("pair1", conv(16, 32))),
      pair2_(register_module("pair2", conv(32, 32))),
      pair_(register_module("pair", torch::nn::Linear(32, kStructure))),
      norm_(register_module("norm", layer_norm(kStructure))) {}

at::Tensor StructureEncoder::forward(const at::Tensor& angles, const at::Tensor& residues, const at::Tensor& pairs,
                                     const at::Tensor& real) {
  const at::Tensor radians = angles * (std::numbers::pi / 180);
  const at::Tensor turned = angle1_->forward(angle0_->forward(at::cat({radians.sin(), radians.cos()}, 2)).relu());

  const at::Tensor scaled = at::cat({residues.narrow(2, 0, 3), residues.narrow(2, 3, 3) * kAngstromScale,
                                     residues.narrow(2, 6, 1) * kConfidenceScale},
                                    2);
  const at::Tensor along = std::get<0>(lstm_->forward(residue_->forward(scaled)));

  const at::Tensor maps = at::stack({pairs.select(3, 0) * kAngstromScale, pairs.select(3, 1)}, 1);
  at::Tensor seen = pair2_->forward(pair1_->forward(pair0_->forward(maps).relu()).relu());  // [n, 32, length, length]
  const at::Tensor count = real.sum(1).clamp_min(1).view({-1, 1, 1});
  seen = (seen * real.unsqueeze(1).unsqueeze(2)).sum(3) / count;  // [n, 32, length]
  return norm_->forward(turned + along + pair_->forward(seen.transpose(1, 2)));
}

Layer::Layer(std::int64_t width)
    : norm_self_(register_module("norm_self", layer_norm(width))),
      norm_cross_(register_module("norm_cross", layer_norm(width))),
      norm_feed_(register_module("norm_feed", layer_norm(width))),
      self_(register_module("self_attention", torch::nn::Linear(width, 3 * width))),
      self_out_(register_module("self_out", torch::nn::Linear(width, width))),
      query_(register_module("query", torch::nn::Linear(width, width))),
      key_value_(register_module("key_value", torch::nn::Linear(kStructure, 2 * width))),
      cross_out_(register_module("cross_out", torch::nn::Linear(width, width))),
      gate_up_(register_module("gate_up", torch::nn::Linear(width, 2 * feed_width(width)))),
      down_(register_module("down", torch::nn::Linear(feed_width(width), width))) {}

at::Tensor Layer::forward(const at::Tensor& input, const at::Tensor& structure, const at::Tensor& allowed) {
  const auto self = self_->forward(norm_self_->forward(input)).chunk(3, 2);
  at::Tensor x = input + self_out_->forward(attend(self[0], self[1], self[2], allowed));
  const auto other = key_value_->forward(structure).chunk(2, 2);
  x = x + cross_out_->forward(attend(query_->forward(norm_cross_->forward(x)), other[0], other[1], allowed));
  const auto feed = gate_up_->forward(norm_feed_->forward(x)).chunk(2, 2);
  return x + down_->forward(at::silu(feed[0]) * feed[1]);
}

Model::Model(std::int64_t width, std::int64_t depth, bool recompute_layers)
    : recompute_layers_(recompute_layers),
      embedding_(register_module("embedding", torch::nn::Embedding(kAminoAcids.size() + 1, width))),
      position_(register_module("position", torch::nn::Embedding(kLongest, width))),
      time0_(register_module("time0", torch::nn::Linear(width, width))),
      time1_(register_module("time1", torch::nn::Linear(width, width))),
      structure_(register_module("structure", std::make_shared<StructureEncoder>())),
      norm_(nullptr),
      output_(nullptr) {
  for (std::int64_t layer = 0; layer < depth; ++layer) {
    layers_.push_back(register_module(fmt::format("layer{}", layer), std::make_shared<Layer>(width)));
  }
  norm_ = register_module("norm", layer_norm(width));
  output_ = register_module("output", torch::nn::Linear(width, width));
}

Model::Parts Model::denoise(const Peptides& peptides, const at::Tensor& step, const at::Tensor& noise) {
  const std::int64_t length = peptides.tokens.size(1);
  const at::Tensor places = at::arange(length, peptides.tokens.options());
  const at::Tensor is_real = places.unsqueeze(0) < peptides.lengths.unsqueeze(1);
  const at::Tensor real = is_real.to(at::kFloat);
  const at::Tensor structure =
      structure_->forward(peptides.angles, peptides.residues, peptides.pairs.narrow(2, 0, length), real);

  const at::Tensor clean = embedding_->forward(peptides.tokens);
  const at::Tensor share = signal_share(step).view({-1, 1, 1});
  at::Tensor x = share.sqrt() * clean + (1 - share).sqrt() * noise;
  x = x + position_->forward(places) +
      time1_->forward(at::silu(time0_->forward(step_features(step, width())))).unsqueeze(1);
  const at::Tensor allowed = is_real.unsqueeze(1).unsqueeze(2);
  for (const std::shared_ptr<Layer>& layer : layers_) {
    x = recompute_layers_ && x.requires_grad()
            ? train::recompute(
                  [layer, allowed](const auto& inputs) { return layer->forward(inputs[0], inputs[1], allowed); },
                  {x, structure})
            : layer->forward(x, structure, allowed);
  }
  const at::Tensor told = output_->forward(norm_->forward(x)).to(at::kFloat);
  const at::Tensor logits = at::matmul(told, embedding_->weight.t()).to(at::kFloat);
  const at::Tensor surprise =
      at::cross_entropy_loss(logits.flatten(0, 1), peptides.tokens.flatten(), {}, at::Reduction::None);
  return {(told - clean).square().mean(2), surprise.view({-1, length}), real};
}

at::Tensor signal_share(const at::Tensor& step) {
  return (1 - (step.to(at::kFloat) / kSteps + 1e-4).sqrt()).clamp_min(0);
}

}  // namespace unidle::workloads::protein
