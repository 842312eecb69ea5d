// Measures how often the rules are right about timelines: unidle_truth FOLDER
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iostream>

#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/timeline_case.h"

namespace {

using namespace unidle::diagnose;           // NOLINT(google-build-using-namespace)
using namespace unidle::diagnose::testing;  // NOLINT(google-build-using-namespace)

struct Tally {
  int first = 0;        // runs with an expected leading cause
  int first_right = 0;  // runs whose expected cause leads
  int expected = 0;     // expected findings
  int found = 0;
  int silent = 0;  // near misses and healthy runs
  int false_alarms = 0;
  int wrong = 0;
};

Diagnosis diagnosis_of(const TimelineCase& timeline, const std::map<std::string, std::string>& replaced) {
  const unidle::TemporaryFolder folder;
  write_record(timeline, replaced, folder.path() / "run");
  return diagnose_record(folder.path() / "run");
}

bool reported(const Diagnosis& diagnosis, const std::string& id) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

void complain(const TimelineCase& timeline, const std::string& variant, const std::vector<std::string>& wrong,
              Tally& tally) {
  for (const std::string& line : wrong) {
    std::cout << timeline.file.stem().string() << (variant.empty() ? "" : ", " + variant) << ": " << line << "\n";
  }
  tally.wrong += wrong.empty() ? 0 : 1;
}

void run(const TimelineCase& timeline, Tally& tally) {
  const Diagnosis diagnosis = diagnosis_of(timeline, {});
  const std::vector<std::string> wrong = judge(timeline, diagnosis);
  for (const Expectation& expected : timeline.expectations) {
    ++tally.expected;
    tally.found += reported(diagnosis, expected.id) ? 1 : 0;
    if (expected.top) {
      ++tally.first;
      tally.first_right += !diagnosis.findings.empty() && diagnosis.findings.front().id == expected.id ? 1 : 0;
    }
  }
  if (timeline.healthy) {
    ++tally.silent;
    tally.false_alarms += wrong.empty() ? 0 : 1;
  }
  complain(timeline, "", wrong, tally);
  for (const Variant& variant : timeline.variants) {
    const std::vector<std::string> miss = judge(timeline, variant, diagnosis_of(timeline, variant.values));
    ++tally.silent;
    tally.false_alarms += miss.empty() ? 0 : 1;
    complain(timeline, variant.name, miss, tally);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: unidle_truth FOLDER\n";
    return 2;
  }
  try {
    Tally tally;
    for (const auto& file : timelines_in(argv[1])) {
      run(read_timeline(file), tally);
    }
    std::cout << fmt::format(
        "leads where it has to (top-1): {} of {}\n"
        "found (recall): {} of {}\n"
        "false alarms: {} of {} near misses and healthy runs\n",
        tally.first_right, tally.first, tally.found, tally.expected, tally.false_alarms, tally.silent);
    return tally.wrong == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "unidle_truth: " << error.what() << "\n";
    return 2;
  }
}
