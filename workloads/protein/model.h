// Diffusion of peptides in the space of their embeddings, with attention to structure features.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace unidle::workloads::protein {

constexpr std::int64_t kSteps = 1000;     // of the diffusion
constexpr std::int64_t kStructure = 256;  // width of the structure encoder
constexpr std::int64_t kHeads = 8;

/// Encodes angles with two layers, residues with an embedding and a bidirectional LSTM, distance and contact maps with
/// three convolutions averaged over rows; the sum of the three, normalised: [n, length, 256].
class StructureEncoder : public torch::nn::Module {
 public:
  StructureEncoder();
  /// `angles` [n, length, 3] in degrees, `residues` [n, length, 7], `pairs` [n, length, length, 2], `real` [n, length]:
  /// 1 for residues, 0 for padding.
  at::Tensor forward(const at::Tensor& angles, const at::Tensor& residues, const at::Tensor& pairs,
                     const at::Tensor& real);

 private:
  torch::nn::Linear angle0_, angle1_, residue_;
  torch::nn::LSTM lstm_;
  torch::nn::Conv2d pair0_, pair1_, pair2_;
  torch::nn::Linear pair_;
  torch::nn::LayerNorm norm_;
};

/// Self-attention, attention to the structure, a gated SiLU feed-forward (Shazeer 2020); each is normalised before and
/// added to its input.
class Layer : public torch::nn::Module {
 public:
  explicit Layer(std::int64_t width);
  /// `allowed`: [n, 1, 1, length], true for residues that may be attended to.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& structure, const at::Tensor& allowed);

 private:
  torch::nn::LayerNorm norm_self_, norm_cross_, norm_feed_;
  torch::nn::Linear self_, self_out_, query_, key_value_, cross_out_, gate_up_, down_;
};

/// Parameters have the same names as in the Python model.
class Model : public torch::nn::Module {
 public:
  /// With `recompute_layers`, the backward pass recomputes a layer's intermediate results instead of keeping them.
  Model(std::int64_t width, std::int64_t depth, bool recompute_layers = false);

  struct Peptides {
    at::Tensor tokens;    // [n, length]
    at::Tensor lengths;   // [n]
    at::Tensor residues;  // as PeptideSource provides them
    at::Tensor angles;
    at::Tensor pairs;
  };
  struct Parts {
    at::Tensor error;     // [n, length]: squared, of the embeddings
    at::Tensor surprise;  // [n, length]: cross-entropy of the predicted tokens
    at::Tensor real;      // [n, length]: 1 or 0
  };
  /// Denoises the peptides at `step` [n] (1 to 1000) with `noise` [n, length, width].
  Parts denoise(const Peptides& peptides, const at::Tensor& step, const at::Tensor& noise);
  at::Tensor embed(const at::Tensor& tokens) { return embedding_->forward(tokens); }

  std::int64_t width() const { return embedding_->options.embedding_dim(); }
  std::int64_t depth() const { return static_cast<std::int64_t>(layers_.size()); }
  bool recomputes_layers() const { return recompute_layers_; }

 private:
  bool recompute_layers_;
  torch::nn::Embedding embedding_;
  torch::nn::Embedding position_;
  torch::nn::Linear time0_, time1_;
  std::shared_ptr<StructureEncoder> structure_;
  std::vector<std::shared_ptr<Layer>> layers_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear output_;
};

/// Share of the signal at `step` (1 to 1000): 1 - sqrt(step / 1000 + 0.0001), at least 0 (the sqrt schedule of Li et
/// al. 2022, "Diffusion-LM").
at::Tensor signal_share(const at::Tensor& step);

}  // namespace unidle::workloads::protein
