#include "unidle/diagnose/testing/timeline_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::diagnose::testing {

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

/// Splits NAME = VALUE.
std::pair<std::string, std::string> assignment(const std::string& text, const std::string& where) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) {
    throw Error(ErrorCode::kInput, where, "expected NAME = VALUE, found '" + text + "'");
  }
  return {std::string(trimmed(text.substr(0, equals))), std::string(trimmed(text.substr(equals + 1)))};
}

Expectation expectation(const std::vector<std::string>& words, const std::string& where) {
  Expectation expected;
  if (words.size() < 2) {
    throw Error(ErrorCode::kInput, where, "expected an id");
  }
  expected.id = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto after = [&](std::string_view prefix) { return word.substr(prefix.size()); };
    if (word == "top") {
      expected.top = true;
    } else if (word == "critical" || word == "warning" || word == "info") {
      expected.severity = word;
    } else if (word.starts_with("share=")) {
      const std::string range = after("share=");
      const auto dots = range.find("..");
      expected.share_low = std::stod(range.substr(0, dots));
      expected.share_high = dots == std::string::npos ? *expected.share_low : std::stod(range.substr(dots + 2));
    } else if (word.starts_with("verdict=")) {
      expected.verdict = after("verdict=");
    } else if (word.starts_with("folds=")) {
      expected.folds.push_back(after("folds="));
    } else if (word.starts_with("without=")) {
      expected.without.push_back(after("without="));
    } else {
      throw Error(ErrorCode::kInput, where, "what is '" + word + "'?");
    }
  }
  return expected;
}

Variant near_miss(const std::string& text, const std::string& where) {
  Variant variant{"near " + text, {}, false};
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    variant.values.insert(assignment(part, where));
  }
  return variant;
}

const Finding* find(const Diagnosis& diagnosis, const std::string& id) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

bool above_info(const Diagnosis& diagnosis, const std::string& id) {
  const Finding* finding = find(diagnosis, id);
  return finding != nullptr && finding->severity != Severity::kInfo;
}

std::string found_ids(const Diagnosis& diagnosis) {
  std::string ids;
  for (const Finding& finding : diagnosis.findings) {
    ids += fmt::format("{}{} ({}, {})", ids.empty() ? "" : ", ", finding.id, to_string(finding.severity),
                       finding.share ? fmt::format("{:.3f}", *finding.share) : "no share");
  }
  return ids.empty() ? "nothing" : ids;
}

void judge_one(const Expectation& expected, const Diagnosis& diagnosis, std::vector<std::string>& wrong) {
  const Finding* finding = find(diagnosis, expected.id);
  if (finding == nullptr) {
    std::string why;
    for (const Abstention& abstention : diagnosis.abstained) {
      why += abstention.id == expected.id ? "; it misses " + abstention.missing : "";
    }
    wrong.push_back(fmt::format("{} was not found but {}{}", expected.id, found_ids(diagnosis), why));
    return;
  }
  if (expected.top && diagnosis.findings.front().id != expected.id) {
    wrong.push_back(fmt::format("{} does not lead: {}", expected.id, found_ids(diagnosis)));
  }
  if (expected.share_low &&
      (!finding->share || *finding->share < *expected.share_low || *finding->share > *expected.share_high)) {
    wrong.push_back(fmt::format("{} has share {}, expected {} to {}", expected.id,
                                finding->share ? fmt::format("{:.4f}", *finding->share) : "null", *expected.share_low,
                                *expected.share_high));
  }
  if (expected.severity && to_string(finding->severity) != *expected.severity) {
    wrong.push_back(
        fmt::format("{} is {}, expected {}", expected.id, to_string(finding->severity), *expected.severity));
  }
  if (expected.verdict && to_string(diagnosis.verdict) != *expected.verdict) {
    wrong.push_back(fmt::format("the verdict is {}, expected {}", to_string(diagnosis.verdict), *expected.verdict));
  }
  for (const std::string& id : expected.folds) {
    if (std::find(diagnosis.folded.begin(), diagnosis.folded.end(), id) == diagnosis.folded.end()) {
      wrong.push_back(fmt::format("{} was not folded: {}", id, found_ids(diagnosis)));
    }
  }
  for (const std::string& id : expected.without) {
    if (above_info(diagnosis, id)) {
      wrong.push_back(fmt::format("{} was reported too: {}", id, found_ids(diagnosis)));
    }
  }
}

}  // namespace

TimelineCase read_timeline(const std::filesystem::path& file) {
  TimelineCase timeline;
  timeline.file = file;
  std::istringstream text(read_file(file));
  std::string line;
  bool answered = false;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::string where = fmt::format("{}:{}", file.string(), number);
    line = std::string(trimmed(line));
    const std::vector<std::string> words = words_of(line);
    std::string run;  // every line gets an entry, so that an index gives its line number
    if (words.empty() || words[0].starts_with("#")) {
    } else if (words[0] == "let") {
      timeline.values.insert(assignment(line.substr(3), where));
    } else if (words[0] == "expect") {
      timeline.expectations.push_back(expectation(words, where));
    } else if (words[0] == "near") {
      timeline.variants.push_back(near_miss(std::string(trimmed(line.substr(4))), where));
    } else if (words[0] == "missing") {
      Variant variant{line, {}, true};
      for (std::size_t i = 1; i < words.size(); ++i) {
        variant.values[words[i]] = "-";
      }
      timeline.variants.push_back(std::move(variant));
    } else if (words[0] == "yes-or-no") {
      timeline.yes_or_no = true;
    } else if (words[0] == "healthy") {
      timeline.healthy = true;
    } else if (words[0] == "answers") {
      answered = true;
    } else {
      run = line;
    }
    timeline.lines.push_back(run);
  }
  if (timeline.expectations.empty() && !timeline.healthy && !answered) {
    throw Error(ErrorCode::kInput, file.string(), "nothing is expected of it");
  }
  return timeline;
}

std::vector<std::string> judge(const TimelineCase& timeline, const Diagnosis& diagnosis) {
  std::vector<std::string> wrong;
  for (const Expectation& expected : timeline.expectations) {
    judge_one(expected, diagnosis, wrong);
  }
  if (timeline.healthy) {
    if (diagnosis.verdict != Verdict::kHealthy) {
      wrong.push_back("the verdict is " + to_string(diagnosis.verdict) + ", expected healthy");
    }
    for (const Finding& finding : diagnosis.findings) {
      if (finding.severity != Severity::kInfo) {
        wrong.push_back("a healthy run has " + found_ids(diagnosis));
        break;
      }
    }
  }
  return wrong;
}

std::vector<std::string> judge(const TimelineCase& timeline, const Variant& variant, const Diagnosis& diagnosis) {
  const std::string& id = timeline.expectations.front().id;
  if (above_info(diagnosis, id)) {
    return {id + " was reported all the same: " + found_ids(diagnosis)};
  }
  const bool abstained = std::any_of(diagnosis.abstained.begin(), diagnosis.abstained.end(),
                                     [&](const Abstention& abstention) { return abstention.id == id; });
  if (variant.missing && !abstained) {
    return {id + " did not abstain"};
  }
  if (!variant.missing && abstained) {
    return {id + " abstained where it could have looked"};
  }
  return {};
}

std::vector<std::filesystem::path> timelines_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".timeline") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace unidle::diagnose::testing
