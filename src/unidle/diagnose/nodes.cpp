#include "unidle/diagnose/nodes.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/diagnose/detail/output.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/in_program/in_program.h"
#include "unidle/diagnose/ranking.h"
#include "unidle/diagnose/signals_from_record.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

namespace fs = std::filesystem;

namespace {

bool failed(const Signals& signals) {
  return signals.outcome == Outcome::kFailed || signals.outcome == Outcome::kTimedOut;
}

logs::Blame blame_of(const Signals& signals) {
  if (signals.exception) {
    return logs::facts_of_message(*signals.exception).blame;
  }
  const auto printed = detail::end_of_output(signals.error_tail).failure;
  return printed ? printed->facts.blame : logs::Blame::kOwn;
}

/// When one node fails, its peers fail at once or later and complain about the connection to it.
std::optional<std::size_t> first_failed(const std::vector<NodeSignals>& nodes) {
  const auto order = [&](std::size_t i) {
    return std::pair(blame_of(nodes[i].signals), nodes[i].ended.value_or(std::numeric_limits<double>::infinity()));
  };
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (failed(nodes[i].signals) && (!first || order(i) < order(*first))) {
      first = i;
    }
  }
  return first;
}

/// The node of the rank that works longest per step; nothing when no rank reports its waits.
std::optional<std::size_t> slowest(const std::vector<NodeSignals>& nodes) {
  std::optional<std::size_t> node;
  double most_s = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const RankTime& rank : nodes[i].signals.ranks) {
      if (rank.wait_s && (!node || rank.work_s() > most_s)) {
        most_s = rank.work_s();
        node = i;
      }
    }
  }
  return node;
}

std::size_t decisive_of(const std::vector<NodeSignals>& nodes, const std::vector<Diagnosis>& each) {
  if (const auto node = first_failed(nodes)) {
    return *node;
  }
  if (const auto node = slowest(nodes)) {
    return *node;
  }
  const auto ill =
      std::find_if(each.begin(), each.end(), [](const Diagnosis& one) { return one.verdict != Verdict::kHealthy; });
  return ill == each.end() ? 0 : static_cast<std::size_t>(ill - each.begin());
}

/// Combines facts about the whole job.
void join(std::vector<NodeSignals>& nodes, std::size_t decisive) {
  std::vector<RankTime> ranks;
  std::optional<double> samples_per_s;
  for (NodeSignals& node : nodes) {
    for (RankTime& rank : node.signals.ranks) {
      rank.node = node.node;
      ranks.push_back(rank);
    }
    if (node.signals.samples_per_s) {
      samples_per_s = samples_per_s.value_or(0) + *node.signals.samples_per_s;
    }
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankTime& a, const RankTime& b) { return a.rank < b.rank; });
  nodes[decisive].signals.ranks = std::move(ranks);
  nodes[decisive].signals.samples_per_s = samples_per_s;
}

NodeView view_of(const std::string& node, const Diagnosis& diagnosis) {
  return {node, diagnosis.outcome, diagnosis.verdict, diagnosis.device, diagnosis.samples_per_s, ""};
}

/// Adds findings of another node that the decisive one does not have.
void add_findings(const Diagnosis& other, const std::string& node, Language language, Diagnosis& diagnosis) {
  std::set<std::string_view> known(diagnosis.folded.begin(), diagnosis.folded.end());
  for (const Finding& finding : diagnosis.findings) {
    known.insert(finding.id);
  }
  std::vector<Finding> more;
  for (const Finding& finding : other.findings) {
    if (finding.severity != Severity::kInfo && !known.contains(finding.id)) {
      more.push_back(finding);
      more.back().evidence.push_back(translate(language, "this is so on node {}", node));
    }
  }
  if (!more.empty() && diagnosis.verdict == Verdict::kHealthy) {
    diagnosis.verdict = other.verdict;
  }
  std::move(more.begin(), more.end(), std::back_inserter(diagnosis.findings));
}

NodeSignals signals_of(const fs::path& path, Language language) {
  const record::Reader reader(path);
  NodeSignals node{reader.folder().filename().string(), read_signals(reader, language), std::nullopt};
  const auto started = reader.meta(record::meta::kStartedUtc).value_or(nlohmann::json());
  if (started.is_string()) {
    if (const auto ns = parse_utc(started.get<std::string>(), "%Y-%m-%dT%H:%M:%SZ")) {
      node.ended = seconds(*ns) + node.signals.wall_s;
    }
  }
  return node;
}

bool holds_record(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "record.db", ignored);
}

}  // namespace

Diagnosis diagnose_nodes(std::vector<NodeSignals> nodes, const Policy& policy, Language language) {
  std::vector<Diagnosis> each;
  for (const NodeSignals& node : nodes) {
    each.push_back(diagnose(node.signals, policy, language));
  }
  const std::size_t decisive = decisive_of(nodes, each);
  join(nodes, decisive);
  Diagnosis diagnosis = diagnose(nodes[decisive].signals, policy, language);
  put_in_program(nodes[decisive].signals, policy, diagnosis);
  diagnosis.node = nodes[decisive].node;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    diagnosis.nodes.push_back(view_of(nodes[i].node, each[i]));
    if (i != decisive) {
      add_findings(each[i], nodes[i].node, language, diagnosis);
    }
  }
  rank(diagnosis.findings, policy);
  return diagnosis;
}

Diagnosis diagnose_records(const std::vector<fs::path>& records, const Policy& policy, Language language) {
  if (records.size() == 1) {
    return diagnose_record(records.front(), policy, language);
  }
  std::vector<NodeSignals> nodes;
  std::vector<NodeView> unreadable;
  std::optional<Error> refused;
  for (const fs::path& record : records) {
    try {
      nodes.push_back(signals_of(record, language));
    } catch (const Error& error) {
      refused = refused ? refused : error;
      unreadable.push_back({record.filename().string(), Outcome::kUnknown, Verdict::kUnknown, {}, {}, error.what()});
    }
  }
  if (nodes.empty()) {
    throw refused.value_or(Error(ErrorCode::kInput, "records", "are none", "name a node's record at least"));
  }
  Diagnosis diagnosis = diagnose_nodes(std::move(nodes), policy, language);
  diagnosis.nodes.insert(diagnosis.nodes.end(), unreadable.begin(), unreadable.end());
  return diagnosis;
}

std::vector<fs::path> records_of_nodes(const fs::path& path) {
  if (holds_record(path)) {
    return {path};
  }
  std::vector<fs::path> nodes;
  std::error_code ignored;
  for (fs::directory_iterator entry(path, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (holds_record(entry->path())) {
      nodes.push_back(entry->path());
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace unidle::diagnose
