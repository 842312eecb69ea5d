#include "unidle/probe/stretch_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "unidle/base/handle.h"

namespace unidle::probe {

namespace {

constexpr std::uint64_t kMagic = 0x31525453444e5500;  // "\0UNDSTR1"
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostMarks = 1 << 20;
constexpr int kMostTries = 100;
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 60;

/// The file as 64-bit words: the header, `most` times (asked, got), `most` sizes, `most` ends of optimiser steps.
struct Header {
  std::uint64_t magic, version, pid, process_start, most, open, step, begin_ns, waited_ns, samples, batches, each, size,
      usual_samples, usual_batches, stepped_ns;
};
constexpr std::size_t kHeaderWords = 32;
static_assert(sizeof(Header) == 16 * 8 && sizeof(Header) <= kHeaderWords * 8);

bool read_exactly(int fd, std::vector<std::uint64_t>& words) {
  return ::pread(fd, words.data(), words.size() * 8, 0) == static_cast<ssize_t>(words.size() * 8);
}

std::optional<std::vector<std::uint64_t>> read_words(int fd) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size < static_cast<off_t>(kHeaderWords * 8) ||
      facts.st_size > static_cast<off_t>((kHeaderWords + 4 * kMostMarks) * 8)) {
    return std::nullopt;
  }
  const std::size_t count = static_cast<std::size_t>(facts.st_size) / 8;
  // The process may be running: a new stretch that begins meanwhile has marks that do not belong to this header.
  std::vector<std::uint64_t> words(count);
  std::vector<std::uint64_t> again(kHeaderWords);
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (!read_exactly(fd, words) || !read_exactly(fd, again)) {
      return std::nullopt;
    }
    if (std::equal(again.begin(), again.end(), words.begin())) {
      return words;
    }
  }
  return std::nullopt;
}

struct Marks {
  std::span<const std::uint64_t> times, sizes, stepped;
};

std::optional<Marks> marks_of(const std::vector<std::uint64_t>& words, const Header& header) {
  const std::size_t most = header.most;
  if (header.magic != kMagic || header.version != kVersion || most == 0 || most > kMostMarks ||
      words.size() < kHeaderWords + 4 * most) {
    return std::nullopt;
  }
  const std::span<const std::uint64_t> marks(words.data() + kHeaderWords, 4 * most);
  return Marks{marks.subspan(0, 2 * most), marks.subspan(2 * most, most), marks.subspan(3 * most, most)};
}

/// Builds steps as loop/short_steps.py does at the end of a stretch. A step ends when the next batch is requested or
/// the optimiser steps again.
class Steps {
 public:
  explicit Steps(const Header& header)
      : header_(header),
        index_(header.step),
        begin_(header.begin_ns),
        waited_(header.waited_ns),
        samples_(header.samples),
        batches_(header.batches),
        stepped_(header.each > 0 ? 0 : header.stepped_ns) {}

  void batch(std::uint64_t asked, std::uint64_t got, std::uint64_t size) {
    seen_ += 1;
    const bool counted = header_.each > 0 && (header_.batches + seen_ - 1) % header_.each == 0;
    if (counted && header_.batches + seen_ > 1) {
      stepped_ = asked;
    }
    if (stepped_ != 0) {
      end(asked);
    }
    waited_ += got - asked;
    samples_ += size;
    batches_ += 1;
  }
  void optimizer_stepped(std::uint64_t at) {
    if (stepped_ != 0) {
      end(stepped_);
    }
    stepped_ = at;
  }
  std::vector<unidle_step> take() { return std::move(steps_); }

 private:
  void end(std::uint64_t at) {
    if (at >= begin_) {
      unidle_step step{};
      step.t_ns = begin_;
      step.duration_ns = at - begin_;
      step.step = index_;
      step.samples = samples_ > 0 ? samples_ : header_.usual_samples;
      step.micro_batches = static_cast<std::uint32_t>(batches_ > 0 ? batches_ : header_.usual_batches);
      step.seen = batches_ > 0 ? UNIDLE_STEP_INPUT : 0;
      step.input_ns = waited_;
      steps_.push_back(step);
      index_ += 1;
    }
    begin_ = at;
    waited_ = samples_ = batches_ = stepped_ = 0;
  }

  const Header& header_;
  std::uint64_t index_, begin_, waited_, samples_, batches_;
  std::uint64_t stepped_;  // end of the current step's optimiser call; 0: not called yet
  std::uint64_t seen_ = 0;
  std::vector<unidle_step> steps_;
};

std::vector<unidle_step> steps_of(const Header& header, const Marks& marks) {
  Steps steps(header);
  const auto sane = [](std::uint64_t time) { return time > 0 && time < kMostCount; };
  std::size_t step = 0;
  const auto steps_until = [&](std::uint64_t time) {
    for (; step < marks.stepped.size() && sane(marks.stepped[step]) && marks.stepped[step] <= time; ++step) {
      if (header.each == 0) {
        steps.optimizer_stepped(marks.stepped[step]);
      }
    }
  };
  std::uint64_t last = header.begin_ns;
  for (std::size_t i = 0; i < header.most; ++i) {
    const std::uint64_t asked = marks.times[2 * i];
    const std::uint64_t got = marks.times[2 * i + 1];
    if (asked < last || got < asked || !sane(got)) {
      break;  // the first unmarked step, or damage
    }
    steps_until(asked);
    steps.batch(asked, got, header.size > 0 ? header.size : std::min(marks.sizes[i], kMostCount));
    last = got;
  }
  steps_until(kMostCount);
  return steps.take();
}

}  // namespace

std::optional<Stretch> read_stretch(const std::filesystem::path& path, const OpenFile& opener) {
  const UniqueFd fd(opener(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto words = fd ? read_words(fd.get()) : std::nullopt;
  if (!words) {
    return std::nullopt;
  }
  Header header{};
  std::memcpy(&header, words->data(), sizeof header);
  const auto marks = marks_of(*words, header);
  if (!marks || header.pid == 0 || header.pid > 1 << 30) {
    return std::nullopt;
  }
  Stretch stretch{static_cast<std::int64_t>(header.pid), header.process_start, {}};
  const bool possible = header.step < kMostCount && header.begin_ns < kMostCount && header.waited_ns < kMostCount &&
                        header.samples < kMostCount && header.batches < kMostCount && header.each < kMostCount &&
                        header.size < kMostCount && header.usual_samples < kMostCount &&
                        header.usual_batches < kMostCount && header.stepped_ns < kMostCount;
  if (header.open == 1 && possible) {
    stretch.steps = steps_of(header, *marks);
  }
  return stretch;
}

}  // namespace unidle::probe
