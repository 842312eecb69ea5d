// Graphs without a device: a replay runs the work again.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "unidle/train/step/graph_capture.h"

namespace unidle::train::testing {

class FakeGraphCapture final : public GraphCapture {
 public:
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    ++captures;
    if (refuses) {
      throw std::runtime_error("operation not permitted when stream is capturing\nand a second line");
    }
    return std::make_unique<Graph>(*this, work);
  }

  int captures = 0;
  int alive = 0;  // graphs that have memory
  bool refuses = false;
  /// Runs before each replay.
  std::function<void()> before_replay = [] {};
  /// Runs after each replay: what a faulty graph does.
  std::function<void()> after_replay = [] {};

 private:
  class Graph final : public CapturedGraph {
   public:
    Graph(FakeGraphCapture& owner, std::function<void()> work) : owner_(owner), work_(std::move(work)) {
      ++owner_.alive;
    }
    ~Graph() override { --owner_.alive; }
    void replay() override {
      owner_.before_replay();
      work_();
      owner_.after_replay();
    }

   private:
    FakeGraphCapture& owner_;
    std::function<void()> work_;
  };
};

}  // namespace unidle::train::testing
