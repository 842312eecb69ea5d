// The HTML document around the page's content.
#pragma once

#include <string>

#include "unidle/language/language.h"
#include "unidle/report/page/html.h"

namespace unidle::report {

struct Document {
  std::string_view title;
  const Html& content;
  std::string whole;             // on the button that undoes a zoom
  std::string_view script = {};  // beside that of the plots; only it may fetch, from where the page is from
  std::string_view lost = {};    // for that script: what to show when nothing can be fetched any more
};

/// Style sheet and scripts are inline. A policy in the document keeps every other script from running, and everything
/// else from being fetched.
std::string document(const Document& document, Language language);

}  // namespace unidle::report
