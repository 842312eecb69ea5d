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

std::string answer_of(const Entry& entry) {
  if (entry.diagnosis) {
    return diagnose::answer(*entry.diagnosis);
  }
  return entry.run.steps.empty() ? "No training step was seen in this run." : "This run was not diagnosed.";
}

double longest(const std::vector<Shown>& runs) {
  double length = 0;
  for (const Shown& shown : runs) {
    length = std::max(length, shown.account.timeline.wall_s());
  }
  return length;
}

std::string timelines_html(const std::vector<Shown>& runs, double length_s) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const account::RunData& run = *runs[i].run;
    if (length_s > 0 && (!run.steps.empty() || !run.spans.empty())) {
      const std::string title = runs.size() > 1 ? run.name : "Where the time went";
      out += timeline_figure(runs[i].account, length_s, fmt::format("timeline{}", i), title,
                             out.empty() ? timeline_legend() : std::string());
    }
  }
  return out;
}

std::string plots_html(const std::vector<Shown>& runs) {
  const double length_s = longest(runs);
  std::string half;
  for (const Chart& chart : charts(runs, length_s)) {
    half += figure(chart, false);
  }
  const std::string timelines = timelines_html(runs, length_s);
  return section_html("The run over time", timelines.empty() && half.empty()
                                               ? "<p>The record has nothing to plot.</p>\n"
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

std::string single(const Entry& entry) {
  const std::vector<Shown> runs = {{&entry.run, account::account_of(entry.run), "run1"}};
  const Summary summary = summarise(entry.run, runs.front().account);
  std::string out = "<header><div class=\"brand\">unidle report</div>\n<h1>" + escape(entry.run.name) + "</h1>\n";
  out += "<p class=\"answer\">" + escape(answer_of(entry)) + "</p>\n" + command_html(entry.run) + "</header>\n";
  out += tiles_html(key_figures(summary, entry.diagnosis));
  for (const std::string& words : {rough_words(summary, "this run"), window_words(summary, "this run")}) {
    out += words.empty() ? "" : "<p class=\"quiet\">" + escape(words) + "</p>\n";
  }
  out += plots_html(runs);
  if (entry.diagnosis) {
    out += section_html("Findings", findings_html(*entry.diagnosis));
  }
  out += optimise_html(entry.run.meta);
  out += "<div class=\"sides\"><div>" + section_html("The mean step after warm-up", step_table(summary)) +
         "</div><div>" + section_html("Machine and run", facts_table(entry.run, runs.front().account)) +
         "</div></div>\n";
  out += section_html("Settings", settings_table(entry.run));
  return out + section_html("What could not be seen", missing_html(entry.run, entry.diagnosis));
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

std::string comparison_html(const Comparison& c) {
  const std::vector<std::string> with_change = {"", c.a.name, c.b.name, "Change"};
  std::string out = items(c.regressions, "regression");
  out += word_table("Throughput", throughput_rows(c), {"", c.a.name, c.b.name, "Ratio"});
  out += "<h3>Where a step's time went</h3>" + word_table("Where a step's time went", step_rows(c), with_change);
  out += "<h3>Where the run's time went</h3>" + word_table("Where the run's time went", phase_rows(c), with_change);
  if (const auto rows = learning_rows(c); !rows.empty()) {
    out += "<h3>Learning at equal samples</h3>" +
           word_table("Learning at equal samples", rows, {"", c.a.name, c.b.name, "Difference"});
  }
  if (!c.settings.empty()) {
    out += "<h3>Settings that differ</h3>" +
           word_table("Settings that differ", setting_rows(c), {"Knob", c.a.name, c.b.name});
  }
  return "<div class=\"compare\">" + out + "</div>" + items(c.notes, "quiet");
}

std::string headline_html(const Comparison& c) {
  return "<p class=\"answer\">" + escape(headline(c, c.a.name, c.b.name)) + "</p>\n";
}

std::string before_and_after(const std::optional<double>& a, const std::optional<double>& b) {
  return fmt::format("{} \u2192 {}", a ? format_share(*a) : "-", b ? format_share(*b) : "-");
}

std::vector<Tile> gain_tiles(const Comparison& c) {
  std::vector<Tile> tiles;
  const auto add_ratio = [&](const std::optional<experiment::Ratio>& ratio, const std::string& label) {
    if (ratio) {
      tiles.push_back({fmt::format("{:.2f}x", ratio->value), label,
                       ratio->interval ? fmt::format("95 % interval {:.2f}x to {:.2f}x", ratio->interval->low,
                                                     ratio->interval->high)
                                       : "too few steps for an interval"});
    }
  };
  const auto input_share = [](const Summary& s) -> std::optional<double> {
    const auto& input = s.step_s[kInput];
    return input && s.whole_step_s && *s.whole_step_s > 0 ? std::optional(*input / *s.whole_step_s) : std::nullopt;
  };
  add_ratio(c.training_ratio, "training samples/s");
  add_ratio(c.total_ratio, "end-to-end samples/s");
  if (input_share(c.a) || input_share(c.b)) {
    tiles.push_back({before_and_after(input_share(c.a), input_share(c.b)), "of a step waits for input", ""});
  }
  if (c.a.gpu_busy || c.b.gpu_busy) {
    tiles.push_back({before_and_after(c.a.gpu_busy, c.b.gpu_busy), "GPU busy", ""});
  } else if (c.a.cpu_busy || c.b.cpu_busy) {
    tiles.push_back({before_and_after(c.a.cpu_busy, c.b.cpu_busy), "CPUs busy", "of those allowed"});
  }
  return tiles;
}

std::string column_of(const Entry& entry) {
  std::string out = "<div><h3>" + escape(entry.run.name) + "</h3><p>" + escape(answer_of(entry)) + "</p>";
  if (entry.diagnosis) {
    out += findings_html(*entry.diagnosis);
  }
  return out + "</div>\n";
}

std::string facts_side(const Entry& entry) {
  return "<div><h3>" + escape(entry.run.name) + "</h3>" + command_html(entry.run) +
         facts_table(entry.run, account::account_of(entry.run)) + settings_table(entry.run) +
         missing_html(entry.run, entry.diagnosis) + "</div>\n";
}

std::string several(const std::vector<Entry>& entries) {
  const std::vector<Shown> runs = runs_with_steps(entries);
  std::string heads;
  std::string tables;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Comparison c = compare(*runs.front().run, *runs[i].run);
    heads += headline_html(c) + tiles_html(gain_tiles(c));
    tables += section_html(runs.size() > 2 ? c.a.name + " and " + c.b.name : "Before and after", comparison_html(c));
  }
  if (heads.empty()) {
    heads = "<p class=\"answer\">Fewer than two of these runs trained, so there is nothing to compare.</p>\n";
  }
  std::string names;
  std::string findings;
  std::string facts;
  std::string optimised;
  for (const Entry& entry : entries) {
    names += (names.empty() ? "" : " \u00b7 ") + entry.run.name;
    findings += column_of(entry);
    facts += facts_side(entry);
    optimised += optimise_html(entry.run.meta);
  }
  std::string out =
      "<header><div class=\"brand\">unidle report</div>\n<h1>" + escape(names) + "</h1>\n" + heads + "</header>\n";
  out += tables + plots_html(runs) + optimised;
  out += section_html("Findings", "<div class=\"sides\">" + findings + "</div>\n");
  return out +
         section_html("Machines, settings and what could not be seen", "<div class=\"sides\">" + facts + "</div>\n");
}

}  // namespace

std::string page(const std::vector<Entry>& entries) {
  std::string title;
  for (const Entry& entry : entries) {
    title += (title.empty() ? "" : ", ") + entry.run.name;
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{} - unidle report</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<main>\n{}</main>\n</body>\n</html>\n",
      escape(title), style(), entries.size() == 1 ? single(entries.front()) : several(entries));
}

}  // namespace unidle::report
