#include "unidle/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdio>
#include <cstdlib>

namespace unidle {

void init_log() {
  auto logger = std::make_shared<spdlog::logger>("unidle", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("unidle: %l: %v");
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
  if (const char* level = std::getenv("UNIDLE_LOG")) {
    spdlog::set_level(spdlog::level::from_str(level));
  }
}

void say(std::string_view text) {
  const std::string line = fmt::format("unidle: {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace unidle
