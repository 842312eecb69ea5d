// The live view as a page for a browser, in the style of the report.
#pragma once

#include <string>
#include <string_view>

#include "unidle/language/language.h"
#include "unidle/monitor/course.h"
#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

struct LiveState {
  Snapshot now;
  Course course;
  std::string verdict;  // of the session so far, in the language of the page
};

/// What the page shows now: markup for its element "main". All text from the machine is escaped.
std::string live_content(const LiveState& state, Language language);

/// The document around it. Its script fetches the content anew each second, from "content" beside the page.
std::string live_document(const LiveState& state, Language language);

}  // namespace unidle::monitor
