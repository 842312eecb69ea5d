// The pairs of a verification: in each, the unchanged and the changed program ran one after the other.
#pragma once

#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"
#include "unidle/tune/search/verifier.h"

namespace unidle::report {

/// A row for each pair with its two rates as points on one scale that begins at 0. Nothing without positive rates.
Html pairs_html(const tune::Verification& found, const Translator& translator);

}  // namespace unidle::report
