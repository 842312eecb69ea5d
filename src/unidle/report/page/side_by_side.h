// A comparison of two runs on the page.
#pragma once

#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

/// The rates of both runs as bars, and by how much the later one is faster.
Html comparison_opening(const Comparison& comparison, const Translator& translator);

/// The figures side by side, as tables.
Html comparison_tables(const Comparison& comparison, const Translator& translator);

}  // namespace unidle::report
