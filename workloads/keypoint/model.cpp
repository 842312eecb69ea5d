#include "workloads/keypoint/model.h"

#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

namespace unidle::workloads::keypoint {

namespace {

constexpr std::array<int, 4> kBlocks = {2, 2, 3, 1};  // most of the parameters are in the low-resolution branches

torch::nn::Conv2d plain_conv(std::int64_t from, std::int64_t to) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 1));
}

at::Tensor upsample_to(const at::Tensor& x, const at::Tensor& like) {
  return at::upsample_nearest2d(x, {like.size(2), like.size(3)});
}

}  // namespace

ConvNorm::ConvNorm(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride, bool relu)
    : conv_(register_module(
          "conv", torch::nn::Conv2d(
                      torch::nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false)))),
      norm_(register_module("norm", torch::nn::BatchNorm2d(to))),
      relu_(relu) {}

at::Tensor ConvNorm::forward(const at::Tensor& x) {
  const at::Tensor y = norm_->forward(conv_->forward(x));
  return relu_ ? y.relu() : y;
}

Block::Block(std::int64_t width)
    : first_(register_module("first", std::make_shared<ConvNorm>(width, width, 3))),
      second_(register_module("second", std::make_shared<ConvNorm>(width, width, 3, 1, false))) {}

at::Tensor Block::forward(const at::Tensor& x) { return (x + second_->forward(first_->forward(x))).relu(); }

Model::Model(std::int64_t width) {
  stem_[0] = register_module("stem0", std::make_shared<ConvNorm>(kChannels, width, 3, 2));
  stem_[1] = register_module("stem1", std::make_shared<ConvNorm>(width, width, 3, 2));
  add_branches(width);
  add_fusion(width);
  add_pyramid(width);
}

void Model::add_branches(std::int64_t width) {
  for (std::size_t branch = 0; branch < kBranches; ++branch) {
    for (int block = 0; block < kBlocks[branch]; ++block) {
      blocks_[branch].push_back(
          register_module(fmt::format("branch{}_block{}", branch, block), std::make_shared<Block>(width << branch)));
    }
    if (branch + 1 < kBranches) {
      down_[branch] = register_module(fmt::format("down{}", branch),
                                      std::make_shared<ConvNorm>(width << branch, width << (branch + 1), 3, 2));
    }
  }
}

void Model::add_fusion(std::int64_t width) {
  for (std::size_t to = 0; to < kBranches; ++to) {
    for (std::size_t from = to + 1; from < kBranches; ++from) {
      fuse_up_[to][from] = register_module(fmt::format("fuse{}_from{}", to, from),
                                           std::make_shared<ConvNorm>(width << from, width << to, 1, 1, false));
    }
    if (to > 0) {
      fuse_down_[to - 1] = register_module(fmt::format("fuse{}_from{}", to, to - 1),
                                           std::make_shared<ConvNorm>(width << (to - 1), width << to, 3, 2, false));
    }
  }
}

void Model::add_pyramid(std::int64_t width) {
  const std::int64_t pyramid = 4 * width;
  for (std::size_t branch = 0; branch < kBranches; ++branch) {
    lateral_.push_back(register_module(fmt::format("lateral{}", branch), plain_conv(width << branch, pyramid)));
  }
  smooth_ = register_module("smooth", std::make_shared<ConvNorm>(pyramid, pyramid, 3));
  heat_hidden_ = register_module("heat_hidden", std::make_shared<ConvNorm>(pyramid, pyramid / 2, 3));
  heat_ = register_module("heat", plain_conv(pyramid / 2, kPoints));
  offset_hidden_ = register_module("offset_hidden", std::make_shared<ConvNorm>(pyramid, pyramid / 2, 3));
  offset_ = register_module("offset", plain_conv(pyramid / 2, 2 * kPoints));
}

Model::Features Model::branches(const at::Tensor& picture) {
  Features x;
  x[0] = stem_[1]->forward(stem_[0]->forward(picture));
  for (std::size_t branch = 0; branch < kBranches; ++branch) {
    if (branch > 0) {
      x[branch] = down_[branch - 1]->forward(x[branch - 1]);
    }
    for (const std::shared_ptr<Block>& block : blocks_[branch]) {
      x[branch] = block->forward(x[branch]);
    }
  }
  return x;
}

Model::Features Model::fuse(const Features& x) {
  Features y;
  for (std::size_t to = 0; to < kBranches; ++to) {
    at::Tensor sum = x[to];
    if (to > 0) {
      sum = sum + fuse_down_[to - 1]->forward(x[to - 1]);
    }
    for (std::size_t from = to + 1; from < kBranches; ++from) {
      sum = sum + upsample_to(fuse_up_[to][from]->forward(x[from]), x[to]);
    }
    y[to] = sum.relu();
  }
  return y;
}

at::Tensor Model::pyramid(const Features& x) {
  at::Tensor top = lateral_.back()->forward(x.back());
  for (std::size_t branch = kBranches - 1; branch-- > 0;) {
    top = lateral_[branch]->forward(x[branch]) + upsample_to(top, x[branch]);
  }
  return smooth_->forward(top);
}

Maps Model::forward(const at::Tensor& picture) {
  const at::Tensor features = pyramid(fuse(branches(picture)));
  const at::Tensor offsets = offset_->forward(offset_hidden_->forward(features));
  return {heat_->forward(heat_hidden_->forward(features)), offsets.unflatten(1, {kPoints, 2})};
}

void Model::use_channels_last() {
  for (at::Tensor& parameter : parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.detach().contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

std::int64_t Model::width() const { return lateral_.front()->options.in_channels(); }

}  // namespace unidle::workloads::keypoint
