// The terminal of the live view.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "unidle/monitor/screen.h"

namespace unidle::monitor {

/// Owns the terminal until destroyed and then restores it, also after an exception. At most one may exist.
class LiveTerminal {
 public:
  /// Returns null when the terminal is unsuitable (TERM is unset, "dumb" or unknown).
  static std::unique_ptr<LiveTerminal> open();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  int rows() const;
  int columns() const;
  bool unicode() const { return unicode_; }
  void draw(const std::vector<ScreenLine>& lines);
  /// Returns the key that was pressed, or kResized after the window changed. Does not wait.
  std::optional<int> key();
  static const int kResized;

 private:
  LiveTerminal() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool unicode_ = false;
};

}  // namespace unidle::monitor
