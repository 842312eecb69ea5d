#include "unidle/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "unidle/account/knob_readings.h"
#include "unidle/base/units.h"
#include "unidle/knobs/same_value.h"
#include "unidle/language/sentence.h"
#include "unidle/report/svg.h"

namespace unidle::report {

namespace {

std::string list_html(const std::vector<std::string>& items) {
  std::string out = "<ul>";
  for (const std::string& item : items) {
    out += "<li>" + escape(item) + "</li>";
  }
  return items.empty() ? std::string() : out + "</ul>";
}

std::string fix_html(const knobs::Change& fix, const Translator& translator) {
  std::string out = "<li>";
  if (!fix.knob.empty()) {
    out += "<code>" + escape(fix.knob) + "</code>";
    if (fix.to) {
      out += fix.from ? " " + escape(fix.from->to_text()) + " &rarr; " : " &rarr; ";
      out += "<b>" + escape(fix.to->to_text()) + "</b>";
    }
    out += fmt::format(" <span class=\"quiet\">{}</span>", translator.word(to_string(fix.knob_class)));
  }
  return out + (fix.reason.empty() ? "" : "<br>" + escape(fix.reason)) + "</li>";
}

/// How much time a finding takes, and what mending it may gain; "" where neither is known.
std::string weight_of(const diagnose::Finding& finding, const Translator& translator) {
  const std::string share = finding.share ? format_share(*finding.share) : "";
  if (finding.share && finding.speedup_bound) {
    return translator.say("{} of wall time, at most {:.2f}x from this alone", share, *finding.speedup_bound);
  }
  if (finding.speedup_bound) {
    return translator.say("at most {:.2f}x from this alone", *finding.speedup_bound);
  }
  return finding.share ? translator.say("{} of wall time", share) : "";
}

std::string finding_html(const diagnose::Finding& finding, const Translator& translator) {
  const std::string severity = to_string(finding.severity);
  std::string out = fmt::format("<article class=\"card {0}\"><h3><span class=\"tag\">{1}</span> {2}</h3>", severity,
                                translator.word(severity), escape(finding.id));
  const std::string measure = weight_of(finding, translator);
  if (!measure.empty()) {
    out += "<p class=\"quiet\">" + escape(measure) + "</p>";
  }
  out += list_html(finding.evidence);
  if (finding.where && !finding.where->empty()) {
    out += "<p>" + translator.word("At") + " <code>" + escape(*finding.where) + "</code></p>";
  }
  if (!finding.fixes.empty()) {
    out += "<h4>" + translator.say("What to change") + "</h4><ul class=\"fixes\">";
    for (const knobs::Change& fix : finding.fixes) {
      out += fix_html(fix, translator);
    }
    out += "</ul>";
  }
  return out + "</article>\n";
}

std::string rate_note(const Rate& rate, const Translator& translator) {
  return rate.interval ? translator.say("95 % interval {} to {}", format_number(rate.interval->low),
                                        format_number(rate.interval->high))
                       : translator.say("too few steps for an interval");
}

}  // namespace

namespace {

/// The escaped text of a cell, in which numbers stay on the line of their unit.
std::string cell_html(const std::string& text) {
  std::string out = escape(text);
  for (const std::string_view unit : {" %", " ms", " s"}) {
    for (std::size_t at = out.find(unit); at != std::string::npos; at = out.find(unit, at + 1)) {
      const std::size_t after = at + unit.size();
      const bool whole = after == out.size() || std::isalnum(static_cast<unsigned char>(out[after])) == 0;
      if (at > 0 && std::isdigit(static_cast<unsigned char>(out[at - 1])) != 0 && whole) {
        out.replace(at, 1, "\u00a0");
      }
    }
  }
  return out;
}

}  // namespace

std::string table_html(const std::string& caption, const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) {
    return {};
  }
  std::string out = "<div class=\"scroll\"><table><caption>" + escape(caption) + "</caption><thead><tr>";
  for (const std::string& cell : header) {
    out += cell.empty() ? std::string("<td></td>") : "<th scope=\"col\">" + escape(cell) + "</th>";
  }
  out += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += i == 0 ? "<th scope=\"row\">" + escape(row[i]) + "</th>" : "<td>" + cell_html(row[i]) + "</td>";
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>\n";
}

std::string section_html(const std::string& title, const std::string& body) {
  return body.empty() ? std::string() : "<section><h2>" + escape(title) + "</h2>\n" + body + "</section>\n";
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  std::string out = "<div class=\"tiles\">";
  for (const Tile& tile : tiles) {
    out += fmt::format("<div class=\"tile\"><b{}>{}</b><span>{}</span>{}</div>", tile.word ? " class=\"word\"" : "",
                       escape(tile.value), escape(tile.label),
                       tile.note.empty() ? "" : "<small>" + escape(tile.note) + "</small>");
  }
  return tiles.empty() ? std::string() : out + "</div>\n";
}

std::vector<Tile> key_figures(const Summary& s, const std::optional<diagnose::Diagnosis>& diagnosis,
                              const Translator& translator) {
  std::vector<Tile> tiles;
  if (s.throughput.training) {
    tiles.push_back({format_number(s.throughput.training->value), translator.say("training samples/s"),
                     rate_note(*s.throughput.training, translator)});
    tiles.push_back({format_number(s.throughput.total->value), translator.say("end-to-end samples/s"),
                     translator.say("with validation and checkpoints")});
  }
  if (s.whole_step_s && *s.whole_step_s > 0 && s.step_s[kInput]) {
    tiles.push_back({format_share(*s.step_s[kInput] / *s.whole_step_s), translator.say("of each step waits for input"),
                     translator.say("{} of a step of {}", step_words(s.step_s[kInput]), step_words(s.whole_step_s))});
  }
  if (s.gpu_busy) {
    tiles.push_back({format_share(*s.gpu_busy), translator.say("GPU busy"), translator.say("while it trained")});
  } else if (s.cpu_busy) {
    tiles.push_back(
        {format_share(*s.cpu_busy), translator.say("CPUs busy"), translator.say("of those allowed, while it trained")});
  }
  tiles.push_back({s.wall_s > 0 ? format_seconds(s.wall_s) : "0 s", translator.say("wall time"),
                   translator.say("{} steps", s.throughput.steps + s.throughput.warm_up)});
  if (diagnosis) {
    std::string verdict = translator.word(to_string(diagnosis->verdict));
    if (const auto hyphen = verdict.find('-'); hyphen != std::string::npos) {
      verdict.replace(hyphen, 1, "\u2011");  // non-breaking
    }
    tiles.push_back({verdict, translator.word("verdict"),
                     translator.say("run {}", translator.word(to_string(diagnosis->outcome))), true});
  }
  return tiles;
}

std::string findings_html(const diagnose::Diagnosis& diagnosis, const Translator& translator) {
  std::string out;
  for (const diagnose::Finding& finding : diagnosis.findings) {
    out += finding_html(finding, translator);
  }
  return out.empty() ? "<p>" + translator.say("No rule found anything to say.") + "</p>\n"
                     : "<div class=\"cards\">" + out + "</div>\n";
}

std::string step_table(const Summary& s, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  if (!s.whole_step_s) {
    return {};
  }
  for (std::size_t part = 0; part < kPartCount; ++part) {
    if (s.step_s[part]) {
      rows.push_back({part_label(static_cast<Part>(part), translator), step_words(s.step_s[part]),
                      *s.whole_step_s > 0 ? format_share(*s.step_s[part] / *s.whole_step_s) : "-"});
    }
  }
  rows.push_back({translator.say("whole step"), step_words(s.whole_step_s), ""});
  return table_html(translator.say("Mean time of a step by part"),
                    {translator.word("Part"), translator.word("Mean"), translator.word("Share")}, rows);
}

std::string settings_table(const RunData& run, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [knob, row] : account::knob_readings(run)) {
    if (!row.has_value()) {
      continue;
    }
    const bool ignored = row.configured && row.effective && !knobs::in_effect(knob, *row.configured, *row.effective);
    rows.push_back({knob, row.configured.value_or("-"), row.effective.value_or(translator.say("not read back")),
                    row.configured_at, ignored ? "\u26a0 " + translator.say("not in effect") : ""});
  }
  return table_html(translator.say("Settings as configured and as the live program had them"),
                    {translator.word("Knob"), translator.word("Configured"), translator.say("In effect"),
                     translator.word("Where"), ""},
                    rows);
}

std::string facts_table(const RunData& run, const Account& account, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  const auto text = [&](const nlohmann::json& object, const char* key) {
    return object.is_object() && object.contains(key) ? plain_text(object[key]) : std::string();
  };
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) {
      rows.push_back({translator.word(label), value});
    }
  };
  const auto find = [&](std::string_view key) {
    const auto found = run.meta.find(key);
    return found == run.meta.end() ? nlohmann::json() : *found;
  };
  add("Started", run.meta_text(record::meta::kStartedUtc));
  add("Outcome", translator.word(run.meta_text(record::meta::kOutcome)));
  const auto host = find(record::meta::kHost);
  add("Host", text(host, "hostname"));
  add("CPU", text(host, "cpu_model"));
  add("CPUs allowed", account.cpus_allowed.now ? format_number(*account.cpus_allowed.now) : "");
  if (host.is_object() && host.contains("memory_bytes") && host["memory_bytes"].is_number_integer() &&
      host["memory_bytes"] > 0) {
    add("Memory", format_bytes(host["memory_bytes"].get<std::uint64_t>()));
  }
  if (const auto gpus = find(record::meta::kGpus); gpus.is_array()) {
    for (std::size_t i = 0; i < std::min<std::size_t>(gpus.size(), 16); ++i) {
      add("GPU", text(gpus[i], "name"));
    }
  }
  add("Seen through", translator.word(run.meta_text(record::meta::kTier)));
  return table_html(translator.say("The machine and the run"), {}, rows);
}

std::string missing_html(const RunData& run, const std::optional<diagnose::Diagnosis>& diagnosis,
                         const Translator& translator) {
  std::vector<std::string> missing;
  for (const std::string& sentence : run.missing) {
    missing.push_back(translate_sentence(translator.language, sentence));
  }
  std::string out = list_html(missing);
  if (diagnosis && !diagnosis->abstained.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const diagnose::Abstention& abstention : diagnosis->abstained) {
      rows.push_back({abstention.id, abstention.missing});
    }
    out += fmt::format(
        "<details><summary>{}</summary>{}</details>\n", translator.say("{} rules could not look", rows.size()),
        table_html(translator.say("Rules that abstained"), {translator.word("Rule"), translator.word("Needs")}, rows));
  }
  return out;
}

std::string optimise_html(const nlohmann::json& meta, const Translator& translator) {
  const auto find = [&](const char* key) {
    const auto found = meta.find(key);
    return found == meta.end() ? nlohmann::json() : *found;
  };
  const OptimiseWords words = optimise_words(find("changes"), find("trials"), find("verification"), translator);
  std::string changes;
  for (const ChangeWords& change : words.changes) {
    changes += "<li><code>" + escape(change.what) + "</code>" +
               (change.why.empty() ? "" : "<br><span class=\"quiet\">" + escape(change.why) + "</span>") + "</li>";
  }
  std::string out =
      section_html(translator.say("Changes made"), changes.empty() ? "" : "<ul class=\"fixes\">" + changes + "</ul>\n");
  out += section_html(translator.word("Trials"), table_html(translator.say("Trials of the optimising run"),
                                                            trial_columns(translator), words.trials));
  out += section_html(translator.word("Verification"),
                      table_html(translator.say("Verification against the baseline"), {"", ""}, words.verification));
  return out + (words.unreadable.empty() ? "" : "<p class=\"quiet\">" + words.unreadable + "</p>\n");
}

}  // namespace unidle::report
