#include "unidle/slurm/progress.h"

#include <algorithm>
#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/split.h"
#include "unidle/logs/failure_line.h"

namespace unidle::slurm {

namespace {

using logs::Counter;

constexpr std::streamoff kEnd_bytes = 1 << 20;  // a day's output may be large, and its end is enough

std::string end_of(const std::filesystem::path& file) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) {
    return "";  // reading a terminal or a pipe would block
  }
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = stream.tellg();
  if (!stream || size <= 0) {
    return "";
  }
  const std::streamoff taken = std::min(size, kEnd_bytes);
  stream.seekg(size - taken);
  std::string text(static_cast<std::size_t>(taken), '\0');
  stream.read(text.data(), taken);
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return taken < size ? text.substr(std::min(text.size(), text.find('\n') + 1)) : text;
}

bool has_total(const Counter* counter) { return counter != nullptr && counter->total.value_or(0) > 0; }

/// The counter within an epoch, or over all epochs.
std::optional<Progress> inner_of(const logs::TextLog& log) {
  for (const char* kind : {"step", "iteration", "batch", "sample"}) {
    if (const Counter* counter = log.counter(kind); has_total(counter)) {
      return Progress{kind, counter->last, *counter->total};
    }
  }
  for (const logs::BarUse& bar : log.bars) {
    if (!bar.validation && bar.last_total > 0) {
      return Progress{bar.counts_samples ? "sample" : "step", bar.last_done, bar.last_total};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Progress> progress_in(const logs::TextLog& log) {
  auto inner = inner_of(log);
  const Counter* epochs = log.counter("epoch");
  if (epochs == nullptr) {
    return inner;
  }
  if (!has_total(epochs)) {
    return std::nullopt;  // the number of epochs is unknown
  }
  // "epoch 1" with a loss is a finished epoch; without a loss it is one that begins.
  const double behind = std::max(0.0, epochs->last_had_loss && !inner ? epochs->last : epochs->last - 1);
  if (!inner) {
    return Progress{"epoch", behind, *epochs->total};
  }
  const bool over_all = inner->share() >= behind / *epochs->total && inner->share() <= epochs->last / *epochs->total &&
                        inner->share() > 0 && inner->total > *epochs->total && epochs->last > 1;
  if (over_all) {
    return inner;
  }
  return Progress{"epoch", std::min(*epochs->total, behind + inner->share()), *epochs->total};
}

std::optional<Progress> progress_at_end_of(const std::filesystem::path& output) {
  const std::string text = end_of(output);
  if (text.empty()) {
    return std::nullopt;
  }
  try {
    logs::Source source(output.string(), text);
    return progress_in(logs::read_text_log(source));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<double> expected_s(const Job& job, const std::optional<Progress>& progress) {
  constexpr double kEnough = 0.01;  // before that most of the time is start-up
  if (!progress || progress->share() < kEnough || !job.elapsed_s || *job.elapsed_s <= 0) {
    return std::nullopt;
  }
  return *job.elapsed_s / std::min(1.0, progress->share());
}

bool killed_for_memory(const std::filesystem::path& output) {
  using logs::Speaker;
  const std::string text = end_of(output);
  const auto lines = split(text, '\n');
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const auto failure = logs::failure_in(line);
    return failure && !failure->facts.hint && failure->facts.lack == logs::Lack::kHostMemory &&
           (failure->facts.speaker == Speaker::kScheduler || failure->facts.speaker == Speaker::kKernel);
  });
}

}  // namespace unidle::slurm
