#include "unidle/diagnose/in_program/program_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string_view>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/shell.h"
#include "unidle/diagnose/in_program/own_interval.h"
#include "unidle/diagnose/in_program/setting_words.h"
#include "unidle/knobs/apply.h"
#include "unidle/knobs/changed_lines.h"
#include "unidle/knobs/recognize.h"
#include "unidle/knobs/same_value.h"
#include "unidle/knobs/setting_call.h"

namespace unidle::diagnose {

namespace {

using Given = knobs::PythonSource::Given;
using knobs::Change;
using knobs::InProgram;

constexpr const char* kDecidedByValidation =
    "whether early stopping, a schedule or the choice of the best weights uses the results";
const std::optional<std::string> kNoText;

/// The words by which `after` differs from the command `before`: "--num-workers 2", "trainer.precision=bf16".
std::string changed_words(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  if (after.size() < before.size()) {  // an option was taken out
    return "";
  }
  const auto at = std::mismatch(after.begin(), after.end(), before.begin(), before.end()).first;
  if (at == after.end()) {
    return "";
  }
  if (at + 1 != after.end() && after.size() > before.size()) {  // the option was added
    return shell_quoted(*at) + " " + shell_quoted(*(at + 1));
  }
  const bool whole = at == after.begin() || at->find('=') != std::string::npos;
  return whole ? shell_quoted(*at) : shell_quoted(*(at - 1)) + " " + shell_quoted(*at);
}

}  // namespace

ProgramWords::ProgramWords(const Signals& signals)
    : signals_(signals), sources_(signals.folder), frameworks_(calls_of_frameworks(signals, sources_)) {}

std::string ProgramWords::command_with(const std::vector<Change>& fixes) const {
  return shell_joined(reach_of(fixes).command);
}

std::optional<InProgram> ProgramWords::words_for(const Change& fix) {
  const std::optional<AtCall> at_call = by_call(fix);
  if (at_call && at_call->given != Given::kExpression) {
    return at_call->words;
  }
  if (auto option = by_option(fix)) {
    return option;
  }
  if (auto file = by_file(fix)) {
    return file;
  }
  if (auto framework = by_framework(fix)) {
    return framework;
  }
  if (auto threads = by_thread_call(fix)) {
    return threads;
  }
  if (auto variables = by_variables(fix)) {
    return variables;
  }
  return at_call ? std::optional(at_call->words) : by_code(fix);
}

void ProgramWords::put_rarer_validation(double rarer_by, Change& fix) {
  const auto* loader = signals_.loader ? &*signals_.loader : nullptr;
  const bool known = loader != nullptr && loader->dataset_len && loader->batch_size.value_or(0) > 0;
  const std::int64_t in_epoch = known ? (*loader->dataset_len - 1) / *loader->batch_size + 1 : 0;
  const auto batches = static_cast<double>(in_epoch);
  for (const CallInProgram& call : frameworks_) {
    if (!fix.in_program) {
      fix.in_program = with_rarer_validation(call, rarer_by, batches);
    }
  }
  const bool validates_itself = std::ranges::none_of(frameworks_, runs_validations);
  if (fix.in_code && !fix.in_program && validates_itself) {
    fix.in_program = with_rarer_own_interval(signals_, sources_, rarer_by);
  }
  if (fix.in_program && is_changed(fix.in_program->where)) {  // perhaps by this very change
    fix.in_program.reset();
  }
  const bool certain = fix.in_program && (!fix.in_program->after.empty() || fix.in_program->word);
  if (fix.in_code && certain) {
    const bool decides = may_decide_by_validation(signals_, sources_);
    fix.knob = "validation.every";
    fix.knob_class = decides ? knobs::KnobClass::kSemantic : knobs::find_knob(fix.knob)->knob_class;
    fix.depends = decides ? kDecidedByValidation : "";
    fix.from.emplace(1);
    fix.to.emplace(static_cast<long long>(std::ceil(rarer_by)));
    fix.in_code = false;
    fix.by_hand = true;
  }
}

std::vector<SourceLine> ProgramWords::line_at(const std::optional<std::string>& where) {
  const auto place = where ? knobs::place_of(*where) : std::nullopt;
  if (!place || !signals_.started_wall_ns || !sources_.is_of(place->file, *signals_.started_wall_ns)) {
    return {};
  }
  const std::optional<std::string>& text = sources_.text(place->file);
  const std::string_view line = text ? trimmed(knobs::line_of(*text, place->line)) : std::string_view();
  return line.empty() ? std::vector<SourceLine>{} : std::vector<SourceLine>{{*where, std::string(line)}};
}

bool ProgramWords::is_changed(const std::string& where) const {
  const auto place = knobs::place_of(where);
  return place && signals_.started_wall_ns && !sources_.is_of(place->file, *signals_.started_wall_ns);
}

std::string ProgramWords::place_of_call(const Change& fix) const {
  const bool loader = fix.knob.starts_with("loader.") || fix.knob == "batch.size";
  if (loader) {
    return signals_.loader ? signals_.loader->where : "";
  }
  return fix.knob == "optimizer.fused" && signals_.optimizer ? signals_.optimizer->where : "";
}

bool ProgramWords::is_of_loader(const Change& fix) const {
  return fix.knob != "batch.size" || (signals_.loader && fix.from && signals_.loader->batch_size &&
                                      fix.from->integer() == *signals_.loader->batch_size);
}

std::optional<ProgramWords::AtCall> ProgramWords::by_call(const Change& fix) {
  const auto place = knobs::place_of(place_of_call(fix));
  const auto setting = knobs::setting_call(fix.knob, of_package());
  if (!place || !setting || !is_of_loader(fix)) {
    return std::nullopt;
  }
  const std::optional<std::string>& text = sources_.text(place->file);
  const auto source = text ? knobs::PythonSource::read(*text) : std::nullopt;
  if (!source) {
    return std::nullopt;
  }
  const auto call = setting->find(*source, place->line);
  if (!call) {
    return std::nullopt;
  }
  const std::string value = knobs::python_value(*fix.to);
  const auto edited = setting->with(*source, *call, value);
  if (!edited || *edited == *text) {
    return std::nullopt;
  }
  AtCall found{{fmt::format("{}={}", setting->argument, value), source->name_of(*call)},
               setting->given(*source, *call)};
  put_lines(place->file, *text, *edited, found.words);
  if (found.given == Given::kExpression && is_ignored(fix)) {  // what it reads is to be mended, not replaced
    found.words.after.clear();
  }
  return found;
}

bool ProgramWords::is_ignored(const Change& fix) const {
  const auto reading = signals_.settings.find(fix.knob);
  return reading != signals_.settings.end() && reading->second.configured && reading->second.effective &&
         !knobs::in_effect(fix.knob, *reading->second.configured, *reading->second.effective);
}

std::optional<InProgram> ProgramWords::by_thread_call(const Change& fix) {
  const auto reading = signals_.settings.find(fix.knob);
  const bool of_threads = fix.knob == "cpu.threads" && reading != signals_.settings.end();
  const auto place = of_threads ? knobs::place_of(reading->second.effective_at) : std::nullopt;
  const std::optional<std::string>& text = place ? sources_.text(place->file) : kNoText;
  const auto source = text ? knobs::PythonSource::read(*text) : std::nullopt;
  if (!source || !source->call_on_line(place->line, {"set_num_threads"})) {
    return std::nullopt;
  }
  const auto edited = source->with_number(place->line, fix.to->to_text());
  if (!edited || *edited == *text) {
    return std::nullopt;
  }
  InProgram words{.words = fmt::format("torch.set_num_threads({})", *fix.to)};
  put_lines(place->file, *text, *edited, words);
  return words;
}

knobs::Reach ProgramWords::reach_of(const std::vector<Change>& fixes) const {
  knobs::ProgramCommand program{signals_.command, {}, signals_.omitted};
  knobs::Settings wanted;
  for (const Change& fix : fixes) {
    const knobs::Knob* knob = knobs::find_knob(fix.knob);
    if (fix.from && knob != nullptr && knobs::takes(*knob, *fix.from)) {
      program.in_effect.set(fix.knob, *fix.from);
    }
    wanted.set(fix.knob, *fix.to);
  }
  return knobs::reach(program, wanted);
}

std::optional<InProgram> ProgramWords::by_option(const Change& fix) const {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  if (knob == nullptr || signals_.command.empty() || !knobs::takes(*knob, *fix.to)) {
    return std::nullopt;
  }
  const knobs::Reach reached = reach_of({fix});
  const std::string words = changed_words(signals_.command, reached.command);
  if (reached.at_run_time.empty() && !words.empty()) {
    return InProgram{.words = words, .command = shell_joined(reached.command)};
  }
  const auto switches = signals_.switches.find(fix.knob);
  for (const knobs::OmittedSwitch& each :
       switches == signals_.switches.end() ? std::vector<knobs::OmittedSwitch>{} : switches->second) {
    if (each.value == *fix.to) {
      return InProgram{.words = each.option, .command = shell_joined(signals_.command) + " " + each.option};
    }
  }
  return std::nullopt;
}

std::optional<InProgram> ProgramWords::by_variables(const Change& fix) const {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  if (knob == nullptr || knob->change.variables.empty() || signals_.command.empty() || fix.to != true) {
    return std::nullopt;
  }
  const std::string& variables = knob->change.variables;
  return InProgram{.words = variables, .command = variables + " " + shell_joined(signals_.command)};
}

std::optional<InProgram> ProgramWords::by_framework(const Change& fix) const {
  const bool other_optimizer =
      fix.knob == "optimizer.fused" && signals_.optimizer && signals_.optimizer->name != "AdamW";
  for (const CallInProgram& call : frameworks_) {
    auto words = other_optimizer ? std::nullopt : with_knob(call, fix.knob, *fix.to);
    if (words) {
      return words;
    }
  }
  return std::nullopt;
}

std::optional<InProgram> ProgramWords::by_file(const Change& fix) {
  const auto reading = signals_.settings.find(fix.knob);
  if (reading == signals_.settings.end() || !reading->second.configured) {
    return std::nullopt;
  }
  const account::KnobReading& setting = reading->second;
  const auto place = knobs::place_of(setting.configured_at);
  const bool governs = !setting.effective || knobs::in_effect(fix.knob, *setting.configured, *setting.effective);
  const std::optional<std::string>& text = place && governs ? sources_.text(place->file) : kNoText;
  if (!text) {
    return std::nullopt;
  }
  try {
    return in_file(fix, *place, *setting.configured, knobs::ConfigFile::from_text(*text, place->file));
  } catch (const std::exception&) {
    return std::nullopt;  // it is no such file any more, or cannot say the value
  }
}

std::optional<InProgram> ProgramWords::in_file(const Change& fix, const knobs::Place& place,
                                               const std::string& configured, knobs::ConfigFile file) {
  const std::string before = file.text();
  const auto now = knobs::configured(knobs::recognize(file));
  const auto set = now.find(fix.knob);
  if (set == now.end() || set->second.line != place.line || set->second.value.to_text() != configured) {
    return std::nullopt;
  }
  const std::vector<knobs::Edit> edits = knobs::set_knob(file, fix.knob, *fix.to);
  if (edits.size() != 1) {
    return std::nullopt;
  }
  InProgram words;
  put_lines(place.file, before, file.text(), words);
  if (knobs::place_of(words.where)->line != place.line || words.after.size() != 1) {
    return std::nullopt;
  }
  const knobs::Edit& edit = edits.front();
  put_setting_words(file, edit.path, edit.to, words);
  return words;
}

std::optional<InProgram> ProgramWords::by_code(const Change& fix) {
  const knobs::Knob* knob = knobs::find_knob(fix.knob);
  const bool of_model = knob != nullptr && knob->change.code_place == "model" && knob->change.code_for != nullptr;
  if (!of_model || signals_.model_where.empty() || signals_.called.contains(signals_.model_where)) {
    return std::nullopt;
  }
  InProgram words{.words = knob->change.code_for(*fix.to, signals_.device_kind == "cpu" ? "cpu" : "cuda"),
                  .where = signals_.model_where};
  const std::vector<SourceLine> lines = line_at(words.where);
  if (lines.empty() || words.words.find(fix.reason) != std::string::npos) {  // the reason says it already
    return std::nullopt;
  }
  words.before = {lines.front().text};
  return words;
}

}  // namespace unidle::diagnose
