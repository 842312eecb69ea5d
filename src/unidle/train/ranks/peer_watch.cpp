#include "unidle/train/ranks/peer_watch.h"

#include <chrono>
#include <utility>

#include "unidle/base/log.h"

namespace unidle::train {

namespace {

constexpr int kTag = 0;
constexpr std::chrono::hours kLongerThanAnyRun{24 * 365};

}  // namespace

PeerWatch::PeerWatch(c10::intrusive_ptr<c10d::Backend> gloo, std::function<void()> on_loss)
    : gloo_(std::move(gloo)), word_{at::zeros({1}, at::kByte)} {
  const int before = (gloo_->getRank() + gloo_->getSize() - 1) % gloo_->getSize();
  coming_ = gloo_->recv(word_, before, kTag);
  thread_ = std::thread([this, on_loss = std::move(on_loss)] { watch(on_loss); });
}

PeerWatch::~PeerWatch() {
  coming_->abort();  // ends wait(), even one that begins later
  thread_.join();
}

void PeerWatch::watch(const std::function<void()>& on_loss) {
  try {
    coming_->wait(kLongerThanAnyRun);
  } catch (const std::exception& failure) {
    spdlog::debug("another process is gone: {}", failure.what());
    try {
      on_loss();
    } catch (const std::exception& more) {  // an exception in this thread would end the process
      spdlog::debug("the connection was not ended: {}", more.what());
    }
  }
}

void PeerWatch::done() {
  std::vector<at::Tensor> word = {at::zeros({1}, at::kByte)};
  try {
    gloo_->send(word, (gloo_->getRank() + 1) % gloo_->getSize(), kTag)->wait();
  } catch (const std::exception& failure) {
    spdlog::debug("the next process is gone: {}", failure.what());
  }
}

}  // namespace unidle::train
