// A predictor that runs as a separate program in any language.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/process.h"
#include "unidle/cache/predictor.h"
#include "unidle/cache/protocol.h"

namespace unidle::cache {

struct CommandOptions {
  std::vector<std::string> command;
  nlohmann::json parameters = nlohmann::json::object();  // sent in the hello
  std::int64_t start_limit_ns = 300'000'000'000;         // loading a model takes time
  std::int64_t batch_limit_ns = 300'000'000'000;
  protocol::Limits limits;
};

/// Speaks docs/predictor-protocol.md with a child process. Exceptions include the last line of its standard error.
class CommandPredictor final : public Predictor {
 public:
  /// Starts the program and waits until it is ready. Throws kInput when it cannot be started, or exits with code 2
  /// before it is ready; otherwise like predict().
  CommandPredictor(CommandOptions options, std::stop_token stop);
  ~CommandPredictor() override;

  const PredictorFacts& facts() const override { return facts_; }
  std::vector<Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override;

 private:
  /// Sends `message` and waits for a frame, both within the limit.
  protocol::Frame exchange(std::string_view message, std::int64_t limit_ns, std::stop_token stop);
  void read_output();
  std::optional<ExitStatus> end_of_child();
  void read_errors();
  [[noreturn]] void fail(const std::string& why, ErrorCode code = ErrorCode::kChild);
  [[noreturn]] void fail_ended();

  CommandOptions options_;
  ChildProcess child_;
  protocol::FrameReader reader_;
  bool output_ended_ = false;
  bool errors_ended_ = false;
  bool failed_ = false;  // do not wait for it any more
  std::string last_words_;
  PredictorFacts facts_;
  std::uint64_t batches_ = 0;
};

}  // namespace unidle::cache
