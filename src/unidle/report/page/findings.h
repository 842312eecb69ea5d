// The findings of a diagnosis: what is wrong, how it shows, what to change.
#pragma once

#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

/// The change that the leading finding proposes, as code; nothing when the run needs none.
Html leading_change(const diagnose::Diagnosis& diagnosis, const Translator& translator);

/// One card per finding; a sentence when there is none. `leading_shown`: the page shows the leading one's change
/// already.
Html findings_html(const diagnose::Diagnosis& diagnosis, bool leading_shown, const Translator& translator);

}  // namespace unidle::report
