// The HTML document around the page's content.
#pragma once

#include <string>

#include "unidle/language/language.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

/// The style sheet and the only script are inline. A policy in the document keeps every other script from running,
/// and everything from being fetched. `whole`: on the button that undoes a zoom.
std::string document(std::string_view title, const Html& content, std::string_view whole, Language language);

}  // namespace unidle::report
