#include "unidle/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/report/curves.h"
#include "unidle/report/html.h"
#include "unidle/report/timeline.h"

namespace unidle::report {

namespace {

constexpr std::size_t kColours = 4;
constexpr std::string_view kBrand = "unidle report";

std::string command_html(const RunData& run) {
  const auto command = run.meta.find(record::meta::kCommand);
  if (command == run.meta.end() || !command->is_array() || command->empty()) {
    return {};
  }
  std::string words;
  for (const auto& word : *command) {
    words += (words.empty() ? "" : " ") + plain_text(word);
  }
  return "<p class=\"command\"><code>" + escape(words) + "</code></p>\n";
}

std::string heading(const std::string& names) {
  return fmt::format("<header><div class=\"brand\">{}</div>\n<h1>{}</h1>\n", kBrand, escape(names));
}

std::string answer_of(const Entry& entry, const Translator& translator) {
  if (entry.diagnosis) {
    return diagnose::answer(*entry.diagnosis, translator.language);
  }
  return entry.run.steps.empty() ? translator.say("No training step was seen in this run.")
                                 : translator.say("This run was not diagnosed.");
}

double longest(const std::vector<Shown>& runs) {
  double length = 0;
  for (const Shown& shown : runs) {
    length = std::max(length, shown.account.timeline.wall_s());
  }
  return length;
}

std::string timelines_html(const std::vector<Shown>& runs, double length_s, const Translator& translator) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const account::RunData& run = *runs[i].run;
    if (length_s > 0 && (!run.steps.empty() || !run.spans.empty())) {
      const std::string title = runs.size() > 1 ? run.name : translator.say("Where the time went");
      out += timeline_figure(runs[i].account, length_s, fmt::format("timeline{}", i), title,
                             out.empty() ? timeline_legend(translator) : std::string(), translator);
    }
  }
  return out;
}

std::string plots_html(const std::vector<Shown>& runs, const Translator& translator) {
  const double length_s = longest(runs);
  std::string half;
  for (const Chart& chart : charts(runs, length_s, translator)) {
    half += figure(chart, false);
  }
  const std::string timelines = timelines_html(runs, length_s, translator);
  return section_html(translator.say("The run over time"),
                      timelines.empty() && half.empty()
                          ? "<p>" + translator.say("The record has nothing to plot.") + "</p>\n"
                          : "<div class=\"figures\">" + timelines + half + "</div>\n");
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

std::string single(const Entry& entry, const Translator& translator) {
  const std::string this_run = translator.say("this run");
  const std::vector<Shown> runs = {{&entry.run, account::account_of(entry.run), "run1"}};
  const Summary summary = summarise(entry.run, runs.front().account);
  std::string out = heading(entry.run.name);
  out += "<p class=\"answer\">" + escape(answer_of(entry, translator)) + "</p>\n" + command_html(entry.run) +
         "</header>\n";
  out += tiles_html(key_figures(summary, entry.diagnosis, translator));
  for (const std::string& words :
       {imprecise_words(summary, this_run, translator), window_words(summary, this_run, translator)}) {
    out += words.empty() ? "" : "<p class=\"quiet\">" + escape(words) + "</p>\n";
  }
  out += plots_html(runs, translator);
  if (entry.diagnosis) {
    out += section_html(translator.word("Findings"), findings_html(*entry.diagnosis, translator));
  }
  out += optimise_html(entry.run.meta, translator);
  out += "<div class=\"sides\"><div>" +
         section_html(translator.say("The mean step after warm-up"), step_table(summary, translator)) + "</div><div>" +
         section_html(translator.say("Machine and run"), facts_table(entry.run, runs.front().account, translator)) +
         "</div></div>\n";
  out += section_html(translator.word("Settings"), settings_table(entry.run, translator));
  return out +
         section_html(translator.say("What could not be seen"), missing_html(entry.run, entry.diagnosis, translator));
}

std::string word_table(const std::string& caption, const std::vector<WordRow>& rows,
                       const std::vector<std::string>& header) {
  std::vector<std::vector<std::string>> cells;
  for (const WordRow& row : rows) {
    std::vector<std::string> line = {row.label};
    line.insert(line.end(), row.cells.begin(), row.cells.end());
    cells.push_back(std::move(line));
  }
  return table_html(caption, header, cells);
}

std::string items(const std::vector<std::string>& lines, const char* css) {
  std::string out;
  for (const std::string& line : lines) {
    out += fmt::format("<p class=\"{}\">{}</p>", css, escape(line));
  }
  return out;
}

std::string comparison_html(const Comparison& c, const Translator& translator) {
  const auto titled = [&](std::string_view title, const std::vector<WordRow>& rows,
                          const std::vector<std::string>& header) {
    const std::string words = translator.word(title);
    return "<h3>" + escape(words) + "</h3>" + word_table(words, rows, header);
  };
  const std::vector<std::string> with_change = {"", c.a.name, c.b.name, translator.word("Change")};
  std::string out = items(c.regressions, "regression");
  out += word_table(translator.word("Throughput"), throughput_rows(c, translator),
                    {"", c.a.name, c.b.name, translator.word("Ratio")});
  out += titled("Where a step's time went", step_rows(c, translator), with_change);
  out += titled("Where the run's time went", phase_rows(c, translator), with_change);
  if (const auto rows = learning_rows(c, translator); !rows.empty()) {
    out += titled("Learning at equal samples", rows, {"", c.a.name, c.b.name, translator.word("Difference")});
  }
  if (!c.settings.empty()) {
    out += titled("Settings that differ", setting_rows(c, translator), {translator.word("Knob"), c.a.name, c.b.name});
  }
  return "<div class=\"compare\">" + out + "</div>" + items(c.notes, "quiet");
}

std::string headline_html(const Comparison& c, const Translator& translator) {
  return "<p class=\"answer\">" + escape(headline(c, c.a.name, c.b.name, translator.language)) + "</p>\n";
}

std::string before_and_after(const std::optional<double>& a, const std::optional<double>& b) {
  return fmt::format("{} \u2192 {}", a ? format_share(*a) : "-", b ? format_share(*b) : "-");
}

std::vector<Tile> gain_tiles(const Comparison& c, const Translator& translator) {
  std::vector<Tile> tiles;
  const auto add_ratio = [&](const std::optional<experiment::Ratio>& ratio, const std::string& label) {
    if (ratio) {
      tiles.push_back({fmt::format("{:.2f}x", ratio->value), label,
                       ratio->interval ? translator.say("95 % interval {:.2f}x to {:.2f}x", ratio->interval->low,
                                                        ratio->interval->high)
                                       : translator.say("too few steps for an interval")});
    }
  };
  const auto input_share = [](const Summary& s) -> std::optional<double> {
    const auto& input = s.step_s[kInput];
    return input && s.whole_step_s && *s.whole_step_s > 0 ? std::optional(*input / *s.whole_step_s) : std::nullopt;
  };
  add_ratio(c.training_ratio, translator.say("training samples/s"));
  add_ratio(c.total_ratio, translator.say("end-to-end samples/s"));
  if (input_share(c.a) || input_share(c.b)) {
    tiles.push_back(
        {before_and_after(input_share(c.a), input_share(c.b)), translator.say("of a step waits for input"), ""});
  }
  if (c.a.gpu_busy || c.b.gpu_busy) {
    tiles.push_back({before_and_after(c.a.gpu_busy, c.b.gpu_busy), translator.say("GPU busy"), ""});
  } else if (c.a.cpu_busy || c.b.cpu_busy) {
    tiles.push_back({before_and_after(c.a.cpu_busy, c.b.cpu_busy), translator.say("CPUs busy"),
                     translator.say("of those allowed")});
  }
  return tiles;
}

std::string column_of(const Entry& entry, const Translator& translator) {
  std::string out = "<div><h3>" + escape(entry.run.name) + "</h3><p>" + escape(answer_of(entry, translator)) + "</p>";
  if (entry.diagnosis) {
    out += findings_html(*entry.diagnosis, translator);
  }
  return out + "</div>\n";
}

std::string facts_side(const Entry& entry, const Translator& translator) {
  return "<div><h3>" + escape(entry.run.name) + "</h3>" + command_html(entry.run) +
         facts_table(entry.run, account::account_of(entry.run), translator) + settings_table(entry.run, translator) +
         missing_html(entry.run, entry.diagnosis, translator) + "</div>\n";
}

std::string several(const std::vector<Entry>& entries, const Translator& translator) {
  const std::vector<Shown> runs = runs_with_steps(entries);
  std::string heads;
  std::string tables;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Comparison c = compare(*runs.front().run, *runs[i].run, kTolerance, translator.language);
    heads += headline_html(c, translator) + tiles_html(gain_tiles(c, translator));
    tables += section_html(
        runs.size() > 2 ? translator.say("{} and {}", c.a.name, c.b.name) : translator.say("Before and after"),
        comparison_html(c, translator));
  }
  if (heads.empty()) {
    heads = "<p class=\"answer\">" +
            translator.say("Fewer than two of these runs trained, so there is nothing to compare.") + "</p>\n";
  }
  std::string names;
  std::string findings;
  std::string facts;
  std::string optimised;
  for (const Entry& entry : entries) {
    names += (names.empty() ? "" : " \u00b7 ") + entry.run.name;
    findings += column_of(entry, translator);
    facts += facts_side(entry, translator);
    optimised += optimise_html(entry.run.meta, translator);
  }
  std::string out = heading(names) + heads + "</header>\n";
  out += tables + plots_html(runs, translator) + optimised;
  out += section_html(translator.word("Findings"), "<div class=\"sides\">" + findings + "</div>\n");
  return out + section_html(translator.say("Machines, settings and what could not be seen"),
                            "<div class=\"sides\">" + facts + "</div>\n");
}

}  // namespace

std::string page(const std::vector<Entry>& entries, Language language) {
  const Translator translator{language};
  std::string title;
  for (const Entry& entry : entries) {
    title += (title.empty() ? "" : ", ") + entry.run.name;
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{} - {}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<main>\n{}</main>\n</body>\n</html>\n",
      language == Language::kChinese ? "zh-CN" : "en", escape(title), kBrand, style(),
      entries.size() == 1 ? single(entries.front(), translator) : several(entries, translator));
}

}  // namespace unidle::report
