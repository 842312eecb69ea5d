// The ranks of a run on the page: what a mean step of each consists of, and how long each waits for the others.
#pragma once

#include "unidle/account/account.h"
#include "unidle/language/translator.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

/// Bars for at most sixteen ranks, and a table of all; nothing for a run with one.
Html ranks_html(const account::Account& account, const Translator& translator);

}  // namespace unidle::report
