// Turns JSON as profilers write it into JSON that a strict parser accepts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/source.h"

namespace unidle::trace::detail {

/// torch's profiler writes labels unescaped: with quotes, backslashes, control characters and invalid UTF-8; other
/// programs write NaN and Infinity. They become \", \\, a blank, U+FFFD and null. Strict JSON is passed on byte for
/// byte. Not thread-safe; memory does not grow with the file.
class LenientJson {
 public:
  explicit LenientJson(logs::Source& source);

  bool at_end() const { return out_at_ == out_.size(); }
  char current() const { return out_[out_at_]; }
  void advance() {
    if (++out_at_ == out_.size()) {
      refill();
    }
  }
  /// In the source's text; after a repair it is off by the bytes that the repair added.
  std::uint64_t position() const { return before_ + out_at_; }

 private:
  void refill();
  /// Makes at least `bytes` bytes of the source available from in_at_; fewer only at its end.
  bool have(std::size_t bytes) { return in_.size() - in_at_ >= bytes || fetch(bytes); }
  bool fetch(std::size_t bytes);
  std::string_view ahead() const { return std::string_view(in_).substr(in_at_); }
  char at(std::size_t offset) { return have(offset + 1) ? in_[in_at_ + offset] : '\0'; }
  std::size_t skip_blanks(std::size_t offset);
  /// The number of available bytes, from in_at_, that are of that kind.
  std::size_t run_of(const std::array<bool, 256>& kind) const;
  void pass(std::size_t bytes);

  void outside();
  void inside();
  void quote();
  void escape();
  bool closes();
  bool closes_container(std::size_t offset);
  bool key_follows(std::size_t offset, bool surely);

  logs::Source& source_;
  std::string in_;  // not yet passed on, from in_at_
  std::size_t in_at_ = 0;
  bool drained_ = false;
  std::string out_;
  std::size_t out_at_ = 0;
  std::uint64_t before_ = 0;

  std::vector<char> open_;  // '{' and '['
  char last_ = '\0';        // outside of strings, blanks left out
  bool in_text_ = false;
  bool in_key_ = false;
  bool bare_ = false;     // the string has quotes without a backslash
  bool of_json_ = false;  // and the first of them is where JSON has one: the label is itself JSON
  int nested_ = 0;        // brackets that the string opened
};

}  // namespace unidle::trace::detail
