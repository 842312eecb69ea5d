#include "unidle/report/page/hot_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "unidle/base/units.h"
#include "unidle/record/note_types.h"

namespace unidle::report {

namespace {

constexpr std::size_t kMostLines = 7;
constexpr double kLeastShare = 0.01;
constexpr std::int64_t kFewestLooks = 5;  // fewer say nothing

using HotNote = record::NoteOf<record::NoteType::kHot>;

/// A sampler's lines are of the wait for input, and counted among its looks.
std::string phase_of(const HotNote& note) {
  const std::string phase = note.text("phase");
  return phase == "indices" ? "input" : phase;
}

Work work_of(const HotNote& note) {
  static const std::map<std::string, Work, std::less<>> kWorks = {
      {"input", Work::kInput},  {"train", Work::kStep},      {"between", Work::kStep},       {"exchange", Work::kStep},
      {"logging", Work::kStep}, {"startup", Work::kStartup}, {"validate", Work::kValidation}};
  if (note.text("role") == "worker") {
    return Work::kLoaderWorker;
  }
  const auto found = kWorks.find(phase_of(note));
  return found == kWorks.end() ? Work::kOther : found->second;
}

/// Notes count up: the newest one of a line holds all its hits.
std::vector<HotNote> newest_notes(const account::RunData& run) {
  std::map<std::pair<std::int64_t, std::string>, const record::Note*> newest;
  for (const record::Note& note : run.notes) {
    if (record::is_of(note, record::NoteType::kHot)) {
      newest[{note.process, record::key_of(note)}] = &note;
    }
  }
  std::vector<HotNote> notes;
  for (const auto& [key, note] : newest) {
    notes.emplace_back(*note);
  }
  return notes;
}

struct Counted {
  std::map<std::tuple<std::int64_t, std::string, std::string>, std::int64_t> looks;  // by process, role and phase
  std::map<std::pair<std::string, std::string>, std::int64_t> hits;                  // by place and function
};

HotWork worked(Work work, const Counted& counted) {
  HotWork out{work, 0, {}};
  std::int64_t hits = 0;
  for (const auto& [key, looks] : counted.looks) {
    out.looks += looks;
  }
  for (const auto& [line, count] : counted.hits) {
    hits += count;
  }
  out.looks = std::max(out.looks, hits);
  for (const auto& [line, count] : counted.hits) {
    out.lines.push_back({line.first, line.second, static_cast<double>(count) / static_cast<double>(out.looks)});
  }
  std::ranges::stable_sort(out.lines, std::ranges::greater(), &HotLine::share);
  return out;
}

std::string work_title(Work work, const Translator& translator) {
  switch (work) {
    case Work::kInput: return translator.say("While the training thread gets its input");
    case Work::kLoaderWorker: return translator.say("In the loader's workers");
    case Work::kStep: return translator.say("In the step");
    case Work::kStartup: return translator.say("At start-up");
    case Work::kValidation: return translator.say("In validation");
    default: return translator.say("Elsewhere");
  }
}

std::string_view colour_of(Work work) {
  switch (work) {
    case Work::kInput:
    case Work::kLoaderWorker: return "input";
    case Work::kStep: return "compute";
    case Work::kValidation: return "validate";
    default: return "other";
  }
}

Html bar(const Html& label, double share, std::string_view css) {
  return element("li", element("span.name", label),
                 element("span.track", element(fmt::format("i.{}", css), width_of(share))),
                 element("span.value", format_share(share)));
}

Html work_html(const HotWork& hot, const Translator& translator) {
  Html bars;
  double rest = 1;
  std::size_t shown = 0;
  for (const HotLine& line : hot.lines) {
    if (shown == kMostLines || line.share < kLeastShare) {
      break;
    }
    const Html where = line.where.empty() ? Html() : element("code", line.where) + text(" ");
    bars += bar(where + element("span.quiet", line.function), line.share, colour_of(hot.work));
    rest -= line.share;
    ++shown;
  }
  if (rest >= kLeastShare) {
    bars += bar(element("span.quiet", translator.say("other lines and packages")), rest, "other");
  }
  return element("div.hot", element("h3", work_title(hot.work, translator)),
                 element("p.quiet", translator.say("{} stack samples", hot.looks)), element("ol.bars", bars));
}

}  // namespace

std::vector<HotWork> hot_works(const account::RunData& run) {
  constexpr std::int64_t kMostHits = std::int64_t{1} << 40;  // sums of damaged records stay whole numbers
  std::map<Work, Counted> by_work;
  for (const HotNote& note : newest_notes(run)) {
    const std::int64_t hits = note.whole("hits").value_or(0);
    if (hits <= 0 || hits > kMostHits) {
      continue;
    }
    Counted& counted = by_work[work_of(note)];
    std::int64_t& looks = counted.looks[{note.process(), note.text("role"), phase_of(note)}];
    looks = std::max(looks, std::clamp<std::int64_t>(note.whole("total").value_or(0), 0, kMostHits));
    counted.hits[{note.text("where"), note.text("function")}] += hits;
  }
  std::vector<HotWork> works;
  for (const auto& [work, counted] : by_work) {
    works.push_back(worked(work, counted));
  }
  return works;
}

Html hot_lines_html(const account::RunData& run, const Translator& translator) {
  Html out;
  for (const HotWork& hot : hot_works(run)) {
    out += hot.looks < kFewestLooks ? Html() : work_html(hot, translator);
  }
  return out.empty() ? out : element("div.hots", out);
}

}  // namespace unidle::report
