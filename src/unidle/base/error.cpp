#include "unidle/base/error.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace unidle {

namespace {

/// Text quoted from a file may contain line ends.
std::string one_line(std::string text) {
  for (std::size_t at = text.find_first_of("\n\r"); at != std::string::npos; at = text.find_first_of("\n\r", at)) {
    text.replace(at, 1, text[at] == '\n' ? "\\n" : "\\r");
  }
  return text;
}

std::string compose(const std::string& subject, const std::string& message, const std::string& hint) {
  std::string text = subject.empty() ? message : fmt::format("{}: {}", subject, message);
  if (!hint.empty()) {
    text += fmt::format(" ({})", hint);
  }
  return one_line(std::move(text));
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return "usage";
    case ErrorCode::kInput: return "input";
    case ErrorCode::kMissing: return "missing";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kChild: return "child";
    case ErrorCode::kOutOfMemory: return "out-of-memory";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

Error::Error(ErrorCode code, std::string subject, std::string message, std::string hint)
    : std::runtime_error(compose(subject, message, hint)),
      code_(code),
      subject_(std::move(subject)),
      message_(std::move(message)),
      hint_(std::move(hint)) {}

int Error::exit_code() const {
  switch (code_) {
    case ErrorCode::kUsage:
    case ErrorCode::kInput:
    case ErrorCode::kIo: return 2;
    case ErrorCode::kMissing: return 3;
    default: return 1;
  }
}

Error system_error(ErrorCode code, std::string subject, std::string_view action, int error_number) {
  return Error(code, std::move(subject), fmt::format("{}: {}", action, std::generic_category().message(error_number)));
}

}  // namespace unidle
