#include "unidle/account/ranks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "unidle/base/stats.h"
#include "unidle/record/note_types.h"

namespace unidle::account {

namespace {

constexpr std::size_t kFewestExchanges = 5;

/// How the mean step of a process is spent; nothing without steps.
std::optional<StepMeans> means_of(const RunData& run, std::int64_t process) {
  RunData own;
  own.meta = run.meta;
  const auto is_own = [process](const auto& event) { return event.process == process; };
  std::copy_if(run.steps.begin(), run.steps.end(), std::back_inserter(own.steps), is_own);
  std::copy_if(run.spans.begin(), run.spans.end(), std::back_inserter(own.spans), is_own);
  const Timeline timeline = make_timeline(own);
  return step_means(timeline, make_periods(timeline));
}

/// Stack samples of the steps of a process, and those of them in calls of torch.distributed.
struct Looks {
  std::map<std::string, std::int64_t, std::less<>> by_phase;

  std::int64_t of(std::string_view phase) const {
    const auto found = by_phase.find(phase);
    return found == by_phase.end() ? 0 : found->second;
  }
  std::int64_t exchange() const { return of("exchange"); }
  std::int64_t all() const { return exchange() + of("between") + of("train") + of("logging"); }
};

/// By process; empty where no rank exchanges by hand.
std::map<std::int64_t, Looks> looks_of(const RunData& run) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // sums of damaged records stay whole numbers
  std::map<std::int64_t, Looks> looks;
  record::each_note<record::NoteType::kHot>(run.notes, [&](const auto& note) {
    if (note.text("role") != "worker") {
      std::int64_t& total = looks[note.process()].by_phase[note.text("phase")];
      total = std::max(total, std::clamp<std::int64_t>(note.whole("total").value_or(0), 0, kMost));
    }
  });
  const bool by_hand = std::ranges::any_of(looks, [](const auto& of) { return of.second.exchange() > 0; });
  return by_hand ? looks : std::map<std::int64_t, Looks>{};
}

/// What the rank exchanges by hand, if enough stack samples tell.
void add_by_hand(const Looks& looks, RankTime& rank) {
  constexpr std::int64_t kEnoughLooks = 40;
  if (looks.all() < kEnoughLooks || !rank.parts) {
    return;
  }
  const auto all = static_cast<double>(looks.all());
  const double part = static_cast<double>(looks.exchange()) / all;
  const double sampled_s = rank.step_s - (*rank.parts)[kInput];
  rank.by_hand_s = std::min(part * sampled_s, (*rank.parts)[kOther]);
  rank.error_s = std::sqrt(part * (1 - part) / all) * sampled_s;
}

std::map<std::int64_t, double> waits_of(const nlohmann::json& rows, double exchanges_per_step) {
  std::map<std::int64_t, double> waits;
  for (const nlohmann::json& row : rows.is_array() ? rows : nlohmann::json::array()) {
    if (row.is_array() && row.size() == 2 && row[0].is_number_integer() && row[1].is_number()) {
      waits[row[0].get<std::int64_t>()] = row[1].get<double>() * 1e-6 * exchanges_per_step;
    }
  }
  return waits;
}

/// The last recorded note of each rank counts: notes hold totals, and a launcher may start ranks again.
std::map<std::int64_t, RankTime> reported(const RunData& run) {
  std::map<std::int64_t, RankTime> newest;
  record::each_note<record::NoteType::kParallel>(run.notes, [&](const auto& note) {
    const auto rank = note.whole("rank");
    if (rank && note.whole("world_size").value_or(1) > 1) {
      newest[*rank] = RankTime{.rank = static_cast<int>(*rank), .process = note.process()};
    }
  });
  std::map<std::int64_t, std::int64_t> process;
  for (const auto& [rank, time] : newest) {
    process[rank] = time.process;
  }
  record::each_note<record::NoteType::kRank>(run.notes, [&](const auto& note) {
    const auto rank = note.whole("rank");
    const auto wait_s = note.number("wait_seconds");
    if (rank && wait_s && process.try_emplace(*rank, note.process()).first->second == note.process()) {
      const double per_step = note.number("exchanges_per_step").value_or(1);
      RankTime& time = newest[*rank];
      time = RankTime{.rank = static_cast<int>(*rank), .wait_s = *wait_s * per_step, .process = note.process()};
      time.step_s = note.number("step_seconds").value_or(0);
      time.waits = waits_of(note.value("waits_us"), per_step);
      if (const auto exchange_s = note.number("exchange_seconds")) {
        time.exchange_s = *exchange_s * per_step;
      }
    }
  });
  return newest;
}

/// Numbers of exchanges that all ranks timed.
std::vector<std::int64_t> common_exchanges(const std::vector<RankTime>& ranks) {
  std::vector<std::int64_t> common;
  for (const auto& [number, wait_s] : ranks.front().waits) {
    if (std::ranges::all_of(ranks, [&](const RankTime& rank) { return rank.waits.contains(number); })) {
      common.push_back(number);
    }
  }
  return common;
}

/// The middle one of the others; of an even number the smaller one.
double middle_of_others(std::vector<double> waits_s, std::size_t without) {
  waits_s.erase(waits_s.begin() + static_cast<std::ptrdiff_t>(without));
  const auto middle = waits_s.begin() + static_cast<std::ptrdiff_t>((waits_s.size() - 1) / 2);
  std::nth_element(waits_s.begin(), middle, waits_s.end());
  return *middle;
}

std::vector<double> waits_in(const std::vector<RankTime>& ranks, std::int64_t exchange) {
  std::vector<double> waits_s;
  std::ranges::transform(ranks, std::back_inserter(waits_s),
                         [&](const RankTime& rank) { return rank.waits.at(exchange); });
  return waits_s;
}

}  // namespace

std::vector<RankTime> rank_times(const RunData& run) {
  std::vector<RankTime> ranks;
  auto known = reported(run);
  const bool measured = std::ranges::any_of(known, [](const auto& one) { return one.second.wait_s.has_value(); });
  const std::map<std::int64_t, Looks> looks = measured ? std::map<std::int64_t, Looks>{} : looks_of(run);
  for (auto& [key, rank] : known) {
    const auto means = means_of(run, rank.process);
    if (rank.step_s <= 0 && means) {
      rank.step_s = means->step_s;
      rank.parts = means->parts;
    }
    // Waits are of some steps and the mean is of all, so a rank that nearly only waits may seem to wait longer.
    if (rank.wait_s) {
      rank.wait_s = std::clamp(*rank.wait_s, 0.0, rank.step_s);
    } else if (const auto seen = looks.find(rank.process); seen != looks.end()) {
      add_by_hand(seen->second, rank);
    }
    if (rank.step_s > 0) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<RankTime> ranks_that_wait(const std::vector<RankTime>& ranks) {
  std::vector<RankTime> waiting;
  for (RankTime rank : ranks) {
    if (!rank.wait_s && rank.by_hand_s) {
      rank.wait_s = rank.by_hand_s;
      (*rank.parts)[kCompute] += *rank.by_hand_s;
      (*rank.parts)[kOther] -= *rank.by_hand_s;
    }
    if (rank.wait_s) {
      waiting.push_back(std::move(rank));
    }
  }
  return waiting;
}

std::optional<Arrivals> arrivals(const std::vector<RankTime>& ranks) {
  if (ranks.size() < 2) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> common = common_exchanges(ranks);
  if (common.size() < kFewestExchanges) {
    return std::nullopt;
  }
  std::vector<std::size_t> times_last(ranks.size());
  std::vector<double> least_s;
  double others_wait_s = 0;
  for (const std::int64_t exchange : common) {
    const std::vector<double> waits_s = waits_in(ranks, exchange);
    const auto least = std::ranges::min_element(waits_s);
    ++times_last[static_cast<std::size_t>(least - waits_s.begin())];
    least_s.push_back(*least);
    others_wait_s += mean(waits_s) - *least;
  }
  Arrivals found;
  found.compared = common.size();
  found.exchange_s = median(least_s);
  found.others_wait_s = others_wait_s / static_cast<double>(common.size());
  found.last = static_cast<std::size_t>(std::ranges::max_element(times_last) - times_last.begin());
  found.last_share = static_cast<double>(times_last[found.last]) / static_cast<double>(common.size());
  std::vector<double> late_s;
  for (const std::int64_t exchange : common) {
    const std::vector<double> waits_s = waits_in(ranks, exchange);
    late_s.push_back(middle_of_others(waits_s, found.last) - waits_s[found.last]);
  }
  found.late_s = median(late_s);
  return found;
}

}  // namespace unidle::account
