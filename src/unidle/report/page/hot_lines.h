// The lines of the program on which its time went, from the stack samples in a record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

/// What a program did when its stack was looked at.
enum class Work { kInput, kLoaderWorker, kStep, kStartup, kValidation, kOther };

struct HotLine {
  std::string where;     // "train.py:14"; empty within a package
  std::string function;  // empty when unknown
  double share = 0;      // of the looks at this work
};

struct HotWork {
  Work work = Work::kOther;
  std::int64_t looks = 0;
  std::vector<HotLine> lines;  // the most expensive first
};

/// In the order of Work; works without a look are left out.
std::vector<HotWork> hot_works(const account::RunData& run);

/// A list of bars for each work; nothing without stack samples.
Html hot_lines_html(const account::RunData& run, const Translator& translator);

}  // namespace unidle::report
