// A folder of log files for tests, and queries on their diagnosis.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "unidle/base/files.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::testing {

namespace fs = std::filesystem;

class LogSignals : public ::testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& bytes) {
    write_file_atomic(folder_.path() / name, bytes);
    return folder_.path() / name;
  }
  TemporaryFolder folder_;
};

inline const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

inline std::string evidence(const Diagnosis& diagnosis, std::string_view id) {
  const Finding* finding = find(diagnosis, id);
  return finding == nullptr ? "" : fmt::format("{}", fmt::join(finding->evidence, "\n"));
}

inline bool abstains(const Diagnosis& diagnosis, std::string_view id) {
  return std::any_of(diagnosis.abstained.begin(), diagnosis.abstained.end(),
                     [&](const Abstention& one) { return one.id == id && !one.missing.empty(); });
}

}  // namespace unidle::diagnose::testing
