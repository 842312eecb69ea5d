// The one exception family of unidle.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace unidle {

/// Stable failure codes; tests and callers match these, never the text.
enum class ErrorCode {
  kUsage,        // wrong command line or value: the caller's mistake
  kInput,        // a file is missing, truncated or malformed
  kMissing,      // a required library, program or device is missing
  kIo,           // the operating system refused: permission, full disk, broken pipe
  kCorrupt,      // unidle's own data is damaged
  kChild,        // a child process failed or could not be started
  kOutOfMemory,  // host or device memory ran out
  kCancelled,    // stopped on request
  kInternal,     // a broken invariant: a bug in unidle
};

std::string_view to_string(ErrorCode code);

/// What happened to which subject, what was expected, what to do. `what()` is always one line: "subject: message
/// (hint)".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string subject, std::string message, std::string hint = {});

  ErrorCode code() const { return code_; }
  /// The subject: a path, "file:line: key", an option, a device.
  const std::string& subject() const { return subject_; }
  const std::string& message() const { return message_; }
  /// What to do about it; may be empty.
  const std::string& hint() const { return hint_; }

  /// The exit code of the program: 2 for usage, input and a file system that refuses, 3 for a missing requirement,
  /// otherwise 1.
  int exit_code() const;

 private:
  ErrorCode code_;
  std::string subject_;
  std::string message_;
  std::string hint_;
};

/// An Error for a failed system call: appends strerror(error_number).
Error system_error(ErrorCode code, std::string subject, std::string_view action, int error_number);

}  // namespace unidle
