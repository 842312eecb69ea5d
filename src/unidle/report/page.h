// The report: one self-contained HTML page of one or more records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/language.h"

namespace unidle::report {

struct Entry {
  account::RunData run;
  std::optional<diagnose::Diagnosis> diagnosis;
};

/// The page has no external address and is complete without its script, all text from records is escaped, and every
/// coordinate is finite.
/// The same entries give the same bytes. With two or more runs that trained, the first is compared with each other one.
/// REQUIRES: at least one entry.
/// Diagnoses are in `language` already.
std::string page(const std::vector<Entry>& entries, Language language = Language::kEnglish);

}  // namespace unidle::report
