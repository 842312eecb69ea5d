// The terminal of the live view.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "unidle/monitor/screen.h"

namespace unidle::monitor {

/// Holds the terminal until destroyed, also when an exception passes; then everything is as it was. One at a time.
class LiveTerminal {
 public:
  /// Nothing when the terminal cannot do it (TERM is unset, "dumb" or unknown).
  static std::unique_ptr<LiveTerminal> open();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  int rows() const;
  int columns() const;
  bool unicode() const { return unicode_; }
  void draw(const std::vector<ScreenLine>& lines);
  /// A key that was pressed; kResized after the window changed. Does not wait.
  std::optional<int> key();
  static const int kResized;

 private:
  LiveTerminal() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool unicode_ = false;
};

}  // namespace unidle::monitor
