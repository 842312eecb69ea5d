#include "unidle/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "unidle/base/terminal.h"

namespace unidle {

namespace {

/// Messages quote exceptions and paths, so they need the same escaping as all text.
class SafeSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto level = spdlog::level::to_string_view(message.level);
    say_error(fmt::format("unidle: {}", std::string_view(level.data(), level.size())),
              std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override { std::fflush(stderr); }
};

}  // namespace

void init_log() {
  auto logger = std::make_shared<spdlog::logger>("unidle", std::make_shared<SafeSink>());
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
  if (const char* level = std::getenv("UNIDLE_LOG")) {
    spdlog::set_level(spdlog::level::from_str(level));
  }
}

void say(std::string_view text) { say_error("unidle", text); }

}  // namespace unidle
