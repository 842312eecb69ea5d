// Tables at the end of the page: settings, the machine, and what could not be seen.
#pragma once

#include <optional>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

Html settings_table(const RunData& run, const Translator& translator);
Html facts_table(const RunData& run, const Account& account, const Translator& translator);
/// What the record lacks, and which signals rules lacked.
Html missing_html(const RunData& run, const std::optional<diagnose::Diagnosis>& diagnosis,
                  const Translator& translator);

}  // namespace unidle::report
