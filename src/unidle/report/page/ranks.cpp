#include "unidle/report/page/ranks.h"

#include <string>
#include <vector>

#include "unidle/report/comparison_words.h"
#include "unidle/report/page/step_times.h"

namespace unidle::report {

namespace {

constexpr std::size_t kMostBars = 16;

/// A rank in the form of a run, of which only the mean step is known.
Summary as_summary(const account::RankTime& rank, const Translator& translator) {
  Summary summary;
  summary.name = translator.say("rank {}", rank.rank);
  summary.whole_step_s = rank.step_s;
  for (std::size_t part = 0; rank.parts && part < kPartCount; ++part) {
    if ((*rank.parts)[part] > 0) {
      summary.step_s[part] = (*rank.parts)[part];
    }
  }
  return summary;
}

Html bars(const std::vector<account::RankTime>& ranks, const Translator& translator) {
  std::vector<Summary> summaries;
  for (const account::RankTime& rank : ranks) {
    if (rank.parts && summaries.size() < kMostBars) {
      summaries.push_back(as_summary(rank, translator));
    }
  }
  return summaries.size() > 1 ? mean_steps(summaries, translator) : Html();
}

}  // namespace

Html ranks_html(const account::Account& account, const Translator& translator) {
  if (account.ranks.size() < 2) {
    return {};
  }
  std::vector<std::vector<std::string>> rows;
  for (const account::RankTime& rank : account.ranks) {
    const auto part = [&](Part which) {
      return step_words(rank.parts ? std::optional((*rank.parts)[which]) : std::nullopt);
    };
    rows.push_back({std::to_string(rank.rank), rank.node.empty() ? "-" : rank.node, std::to_string(rank.process),
                    step_words(rank.step_s), part(kInput), step_words(rank.wait_s)});
  }
  return bars(account.ranks, translator) +
         table(translator.say("Mean step of each rank"),
               {translator.word("Rank"), translator.word("Node"), translator.word("Process"),
                translator.say("whole step"), translator.say("input wait"), translator.say("waits for other ranks")},
               rows);
}

}  // namespace unidle::report
