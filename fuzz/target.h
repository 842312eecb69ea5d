// What the fuzz programs share: a parser may refuse its input with an Error about that input, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/logs/source.h"

namespace unidle::fuzz {

/// Calls `parse` with the bytes as a source. An error about anything but the input is a bug, and so is one of several
/// lines: the command line prints it as one.
template <typename Parse>
int one_input(const std::uint8_t* data, std::size_t size, Parse parse) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    logs::Source source("input", bytes);
    parse(source);
  } catch (const Error& error) {
    const bool one_line = std::string_view(error.what()).find('\n') == std::string_view::npos;
    if (error.code() != ErrorCode::kInput || error.subject() != "input" || !one_line) {
      std::abort();
    }
  }
  return 0;
}

}  // namespace unidle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
