// A stretch file for tests, word by word as in docs/probe-format.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace unidle::probe::testing {

/// Holds 8 marks of each kind; of process 77, started at 4321.
class StretchFile {
 public:
  StretchFile() : words_(32 + 4 * 8) {
    words_[0] = 0x31525453444e5500;
    words_[1] = 1;
    words_[2] = 77;
    words_[3] = 4321;
    words_[4] = 8;
    words_[5] = 1;
  }
  std::uint64_t& operator[](std::size_t word) { return words_[word]; }
  StretchFile& batch(std::size_t number, std::uint64_t asked, std::uint64_t got) {
    words_[32 + 2 * number] = asked;
    words_[33 + 2 * number] = got;
    return *this;
  }
  StretchFile& size(std::size_t number, std::uint64_t samples) {
    words_[32 + 16 + number] = samples;
    return *this;
  }
  StretchFile& stepped(std::size_t number, std::uint64_t time) {
    words_[32 + 24 + number] = time;
    return *this;
  }
  std::string bytes() const {
    return {reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(std::uint64_t)};
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace unidle::probe::testing
