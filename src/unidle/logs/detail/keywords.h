// The words that carry information in a log, and a matcher that finds all of them in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace unidle::logs::detail {

enum class Word : std::uint8_t {
  kTraceback,
  kFailure,  // may be in a line that failure_in() knows
  kError,
  kCancelled,
  kTimeLimit,
  kEpoch,
  kStep,
  kIteration,
  kEpisode,
  kRound,
  kBatch,
  kLoss,
  kTrain,
  kSamples,
  kStepTime,
  kUpdateTime,  // of a step without its wait for data
  kDataTime,
  kStepRate,
  kSampleRate,
  kSampleRateKey,
  kTokenRate,
  kTokenRateKey,
  kGlobalBatch,
  kTotal,  // configured total of a counter
  kValidation,
  kBegin,
  kEnd,
  kMetric,
  kSaving,
  kSaved,
  kModel,
  kTrainSet,
  kSetting,
  kDevice,
  kCapability,
  kSuccess,
  kEarlyStop,
  kWeekday,
  kJobId,
  kSmiRow,
  kTimeKey,
  kDuration,
  kIgnored,
  kThread,
  kWallTime,
  kFailed,
};

/// Requirements on the characters around a word.
enum class Edge : std::uint8_t {
  kAny,
  kFront,      // no letter, digit or "_" before it
  kBoth,       // nor after it
  kFrontWord,  // none before it, and no letter after it
};

struct Keyword {
  std::string_view text;  // lower case, at least three bytes
  Word word;
  Edge edge = Edge::kAny;
  std::string_view of = {};  // of a setting its knob, of a total its counter
};

struct Hit {
  const Keyword* keyword = nullptr;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// The first kMost words found in one line, in order.
class Hits {
 public:
  static constexpr std::size_t kMost = 48;

  void clear() {
    size_ = 0;
    words_ = 0;
  }
  void add(const Hit& hit) {
    words_ |= bit(hit.keyword->word);
    if (size_ < kMost) {
      hits_[size_++] = hit;
    }
  }
  bool empty() const { return words_ == 0; }
  bool has(Word word) const { return (words_ & bit(word)) != 0; }
  template <typename... Words>
  bool has_any(Words... words) const {
    return (words_ & (bit(words) | ...)) != 0;
  }
  std::span<const Hit> all() const { return {hits_.data(), size_}; }
  /// nullptr when the word was not found.
  const Hit* first(Word word) const;

 private:
  static std::uint64_t bit(Word word) { return std::uint64_t{1} << static_cast<unsigned>(word); }

  std::array<Hit, kMost> hits_;
  std::size_t size_ = 0;
  std::uint64_t words_ = 0;
};

/// The table of words, English and Chinese.
std::span<const Keyword> log_keywords();

/// Finds keywords, ignoring the case of ASCII letters. Thread-safe once built; the keywords must outlive it.
class Matcher {
 public:
  explicit Matcher(std::span<const Keyword> keywords);
  void find(std::string_view line, Hits& hits) const;

 private:
  static constexpr unsigned kBits = 13;
  static std::uint32_t slot(std::uint32_t three_bytes) {
    return ((three_bytes | 0x202020U) * 0x9E3779B1U) >> (32U - kBits);
  }
  void verify(std::string_view line, std::size_t at, std::uint32_t entry, Hits& hits) const;

  struct Entry {
    const Keyword* keyword;
    std::uint32_t offset;  // of the three bytes within the keyword
    std::uint32_t next;    // index + 1 of the slot's next entry; 0: end
  };
  std::array<std::uint16_t, std::size_t{1} << kBits> first_{};  // index + 1 of each slot's first entry
  std::vector<Entry> entries_;
};

}  // namespace unidle::logs::detail
