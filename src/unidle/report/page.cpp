#include "unidle/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "unidle/base/characters.h"
#include "unidle/report/comparison.h"
#include "unidle/report/page/document.h"
#include "unidle/report/page/facts.h"
#include "unidle/report/page/findings.h"
#include "unidle/report/page/flame_graph.h"
#include "unidle/report/page/hot_lines.h"
#include "unidle/report/page/opening.h"
#include "unidle/report/page/over_time.h"
#include "unidle/report/page/ranks.h"
#include "unidle/report/page/search.h"
#include "unidle/report/page/side_by_side.h"
#include "unidle/report/page/step_times.h"

namespace unidle::report {

namespace {

constexpr std::size_t kColours = 4;

/// The record of a search without a run of its own.
bool only_searched(const Entry& entry) { return is_search(entry.run) && entry.run.steps.empty(); }

std::string answer_of(const Entry& entry, const Translator& translator) {
  if (entry.diagnosis) {
    return diagnose::answer(*entry.diagnosis, translator.language);
  }
  return entry.run.steps.empty() ? translator.say("No training step was seen in this run.")
                                 : translator.say("This run was not diagnosed.");
}

/// The problem alone if the change is shown beside it, and what limits the answer below it.
struct Heading {
  std::string words;
  Html caution;
};

Heading heading_of(const Entry& entry, bool with_change, const Translator& translator) {
  if (!with_change) {
    return {answer_of(entry, translator), {}};
  }
  const std::string caution = diagnose::caution(*entry.diagnosis, translator.language);
  return {diagnose::problem(*entry.diagnosis, translator.language),
          caution.empty() ? Html() : element("p.caution", caution)};
}

/// The change and its possible gain, side by side.
Html remedy_html(const Entry& entry, const Shown& shown, const Translator& translator) {
  if (!entry.diagnosis) {
    return {};
  }
  const Html change = leading_change(*entry.diagnosis, translator);
  const Html gain = gain_bars(shown, *entry.diagnosis, translator);
  return (change.empty() ? change : element("div.change", element("h2", translator.say("What to change")), change)) +
         (gain.empty() ? gain : element("div.gain", element("h2", translator.say("What it can gain")), gain));
}

Html caveats_html(const Summary& summary, const Translator& translator) {
  Html out;
  for (const std::string& words : {imprecise_words(summary, translator.say("this run"), translator),
                                   window_words(summary, translator.say("this run"), translator)}) {
    out += words.empty() ? Html() : element("p.quiet", words);
  }
  return out;
}

Html beside(const Html& left, const Html& right) {
  return element("div.sides", element("div", left), element("div", right));
}

Html facts_html(const Entry& entry, const Shown& shown, const Translator& translator) {
  return beside(
             section(translator.say("Machine and run"), facts_table(entry.run, shown.account, translator)),
             section(translator.say("What could not be seen"), missing_html(entry.run, entry.diagnosis, translator))) +
         section(translator.word("Settings"), settings_table(entry.run, translator));
}

Html figures(const Html& inside) { return inside.empty() ? inside : element("div.figures", inside); }

Html one_run(const Entry& entry, const Translator& translator) {
  const std::vector<Shown> runs = {{&entry.run, account::account_of(entry.run), "run1"}};
  const Shown& shown = runs.front();
  const Summary summary = summarise(entry.run, shown.account);
  const Html remedy = remedy_html(entry, shown, translator);
  const Heading heading = heading_of(entry, !remedy.empty(), translator);
  Html out = opening(entry.run.name, heading.words,
                     heading.caution + run_words(entry, summary, translator) +
                         (remedy.empty() ? remedy : element("div.remedy", remedy)));
  const Html over = over_time(runs, translator);
  const Html small = small_plots(runs, translator);
  std::vector<Tile> tiles = key_figures(summary, translator);
  if (entry.diagnosis && entry.diagnosis->arithmetic) {
    add_arithmetic(*entry.diagnosis->arithmetic, translator, tiles);
  }
  out +=
      element("section", tiles_html(tiles), caveats_html(summary, translator), over,
              over.empty() && small.empty() ? element("p", translator.say("The record has nothing to plot.")) : Html());
  if (entry.diagnosis) {
    out += section(translator.word("Findings"), findings_html(*entry.diagnosis, !remedy.empty(), translator));
  }
  out += section(translator.say("The lines that cost time"),
                 hot_lines_html(entry.run, translator) + flame_graphs_html(entry.run, translator));
  out +=
      section(translator.say("The steps"), figures(mean_steps({summary}, translator) + step_times(shown, translator)));
  out += section(translator.word("Ranks"), figures(ranks_html(shown.account, translator)));
  out += section(translator.say("Each process and device"), lanes(shown, translator));
  out += section(translator.say("Learning and device"), figures(small));
  out += is_search(entry.run) ? search_sections(entry.run, translator) : Html();
  return out + facts_html(entry, shown, translator) + section(translator.word("Command"), command_html(entry.run));
}

Html one_search(const Entry& entry, const Translator& translator) {
  return opening(entry.run.name, search_answer(entry.run, translator), search_opening(entry.run, translator)) +
         search_sections(entry.run, translator);
}

std::vector<Shown> runs_with_steps(const std::vector<Entry>& entries) {
  std::vector<Shown> runs;
  for (const Entry& entry : entries) {
    if (!entry.run.steps.empty()) {
      runs.push_back({&entry.run, account::account_of(entry.run), fmt::format("run{}", runs.size() % kColours)});
    }
  }
  return runs;
}

Html findings_of_each(const std::vector<Entry>& entries, const Translator& translator) {
  Html out;
  for (const Entry& entry : entries) {
    if (!only_searched(entry)) {
      out += element("div", element("h3", entry.run.name), element("p", answer_of(entry, translator)),
                     entry.diagnosis ? findings_html(*entry.diagnosis, false, translator) : Html());
    }
  }
  return out.empty() ? out : element("div.sides", out);
}

Html facts_of_each(const std::vector<Entry>& entries, const Translator& translator) {
  Html out;
  for (const Entry& entry : entries) {
    if (!only_searched(entry)) {
      out += element("div", element("h3", entry.run.name), command_html(entry.run),
                     facts_table(entry.run, account::account_of(entry.run), translator),
                     settings_table(entry.run, translator), missing_html(entry.run, entry.diagnosis, translator));
    }
  }
  return out.empty() ? out : element("div.sides", out);
}

/// "20261130-004855-train": a name that unidle chose.
bool is_id(std::string_view name) {
  constexpr std::string_view kForm = "########-######-";
  return name.size() > kForm.size() && std::equal(kForm.begin(), kForm.end(), name.begin(), [](char form, char c) {
           return form == '#' ? is_digit(c) : form == c;
         });
}

/// Two runs whose names say nothing are called "before" and "after".
bool are_before_and_after(const std::vector<Entry>& entries) {
  return entries.size() == 2 && std::ranges::all_of(entries, [](const Entry& entry) {
           return is_id(entry.run.name) && !entry.run.steps.empty();
         });
}

std::string names_of(const std::vector<Entry>& entries, std::string_view between) {
  std::string names;
  for (const Entry& entry : entries) {
    names += (names.empty() ? "" : std::string(between)) + entry.run.name;
  }
  return names;
}

std::vector<Comparison> comparisons_of(const std::vector<Shown>& runs, Language language) {
  std::vector<Comparison> all;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    all.push_back(compare(*runs.front().run, *runs[i].run, kTolerance, language));
  }
  return all;
}

/// The first comparison gives the headline; further ones follow it in the same form.
Html several_opening(const std::string& names, const std::vector<Comparison>& all, bool before_and_after,
                     const Translator& translator) {
  if (all.empty()) {
    return opening(names, translator.say("Fewer than two of these runs trained, so there is nothing to compare."), {});
  }
  Html below;
  for (const Comparison& c : all) {
    below += &c == &all.front() ? Html() : element("h2", headline(c, c.a.name, c.b.name, translator.language));
    below += comparison_opening(c, translator);
  }
  const Comparison& first = all.front();
  return opening(names,
                 before_and_after ? with_capital(headline(first, translator.word(R"(the "before" run)"),
                                                          translator.word(R"(the "after" run)"), translator.language))
                                  : headline(first, first.a.name, first.b.name, translator.language),
                 below);
}

Html several(const std::vector<Entry>& entries, const std::string& names, bool before_and_after,
             const Translator& translator) {
  const std::vector<Shown> runs = runs_with_steps(entries);
  const std::vector<Comparison> all = comparisons_of(runs, translator.language);
  Html out = several_opening(names, all, before_and_after, translator);
  std::vector<Summary> summaries;
  std::ranges::transform(runs, std::back_inserter(summaries),
                         [](const Shown& shown) { return summarise(*shown.run, shown.account); });
  const Html plots = over_time(runs, translator);
  const Html small = figures(mean_steps(summaries, translator) + small_plots(runs, translator));
  out += element(
      "section", plots, small,
      plots.empty() && small.empty() ? element("p", translator.say("The record has nothing to plot.")) : Html());
  for (const Entry& entry : entries) {
    if (is_search(entry.run)) {
      out += only_searched(entry) ? section(search_answer(entry.run, translator), search_opening(entry.run, translator))
                                  : Html();
      out += search_sections(entry.run, translator);
    }
  }
  for (const Comparison& c : all) {
    out +=
        section(all.size() > 1 ? translator.say("{} and {}", c.a.name, c.b.name) : translator.say("Before and after"),
                comparison_tables(c, translator));
  }
  out += section(translator.word("Findings"), findings_of_each(entries, translator));
  return out +
         section(translator.say("Machines, settings and what could not be seen"), facts_of_each(entries, translator));
}

Html of_several(const std::vector<Entry>& entries, const Translator& translator) {
  if (!are_before_and_after(entries)) {
    return several(entries, names_of(entries, " \u00b7 "), false, translator);
  }
  std::vector<Entry> named = entries;
  std::string names;
  for (Entry& entry : named) {
    const std::string name = translator.word(names.empty() ? "before" : "after");
    names += fmt::format("{}{}: {}", names.empty() ? "" : " \u00b7 ", name, entry.run.name);
    entry.run.name = name;
  }
  return several(named, names, true, translator);
}

}  // namespace

std::string page(const std::vector<Entry>& entries, Language language) {
  const Translator translator{language};
  const Entry& first = entries.front();
  const Html content = entries.size() > 1     ? of_several(entries, translator)
                       : only_searched(first) ? one_search(first, translator)
                                              : one_run(first, translator);
  return document({names_of(entries, ", ") + " - unidle report", content, translator.say("Show all")}, language);
}

}  // namespace unidle::report
