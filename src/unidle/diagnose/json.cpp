#include <cmath>

#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose {

namespace {

using Json = nlohmann::ordered_json;

double rounded(double value, double scale) { return std::round(value * scale) / scale; }
double share(double value) { return rounded(value, 1e4); }
double hours(double value) { return rounded(value, 1e6); }
double rounded_to_ms(double value) { return rounded(value, 1e3); }

/// Four significant digits: no run is measured more precisely.
double rate(double value) {
  if (value <= 0 || !std::isfinite(value)) {
    return 0;
  }
  const double scale = std::pow(10, 3 - std::floor(std::log10(value)));
  return rounded(value, scale);
}

template <typename Round>
Json optional_number(const std::optional<double>& value, Round round) {
  return value ? Json(round(*value)) : Json();
}

Json in_program_json(const knobs::InProgram& change) {
  Json json;
  json["words"] = change.words;
  if (!change.call.empty()) {
    json["call"] = change.call;
  }
  if (!change.where.empty()) {
    json["where"] = change.where;
  }
  if (!change.before.empty() || !change.after.empty()) {
    json["before"] = change.before;
  }
  if (!change.after.empty()) {
    json["after"] = change.after;
  }
  if (!change.command.empty()) {
    json["command"] = change.command;
  }
  return json;
}

Json fix_json(const knobs::Change& fix) {
  Json json;
  json["knob"] = fix.knob;
  json["from"] = fix.from ? Json(fix.from->to_json()) : Json();
  json["to"] = fix.to ? Json(fix.to->to_json()) : Json();
  json["class"] = to_string(fix.knob_class);
  json["how"] = fix.reason;
  if (!fix.depends.empty()) {
    json["depends"] = fix.depends;
  }
  if (!fix.written.empty()) {
    json["written"] = fix.written;
    json["written_at"] = fix.written_at;
  }
  if (!fix.patch.empty()) {
    json["patch"] = fix.patch;
  }
  if (fix.in_program) {
    json["in_program"] = in_program_json(*fix.in_program);
  }
  return json;
}

Json finding_json(const Finding& finding) {
  Json json;
  json["id"] = finding.id;
  json["severity"] = to_string(finding.severity);
  json["share"] = optional_number(finding.share, share);
  json["speedup_bound"] = optional_number(finding.speedup_bound, rate);
  json["evidence"] = finding.evidence;
  json["where"] = finding.where ? Json(*finding.where) : Json();
  json["fixes"] = Json::array();
  for (const knobs::Change& fix : finding.fixes) {
    json["fixes"].push_back(fix_json(fix));
  }
  if (finding.fixes.empty()) {
    json["advice"] = proposal(finding);
  }
  for (const SourceLine& line : finding.lines) {
    json["lines"].push_back({{"where", line.where}, {"text", line.text}});
  }
  if (finding.cheaper) {
    const auto& [place, text, advice] = *finding.cheaper;
    json["cheaper_samples"] = {{"where", place}, {"text", text}, {"advice", advice}};
  }
  return json;
}

Json step_json(const StepShares& step) {
  Json json;
  json["input"] = share(step.input);
  json["transfer"] = share(step.transfer);
  json["compute"] = share(step.compute);
  json["sync"] = share(step.sync);
  json["optimizer"] = share(step.optimizer);
  json["other"] = share(step.other);
  return json;
}

Json ranks_json(const std::vector<account::RankTime>& ranks) {
  Json all = Json::array();
  for (const account::RankTime& rank : ranks) {
    Json json;
    json["rank"] = rank.rank;
    if (!rank.node.empty()) {
      json["node"] = rank.node;
    }
    json["step_s"] = rate(rank.step_s);
    json["input_s"] = rank.parts ? Json(rate((*rank.parts)[account::kInput])) : Json();
    json["wait_s"] = optional_number(rank.wait_s, rate);
    all.push_back(std::move(json));
  }
  return all;
}

Json time_json(const PhaseTimes& time) {
  Json json;
  json["startup"] = rounded_to_ms(time.startup);
  json["train"] = rounded_to_ms(time.train);
  json["validate"] = rounded_to_ms(time.validate);
  json["checkpoint"] = rounded_to_ms(time.checkpoint);
  json["other"] = rounded_to_ms(time.other);
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const Diagnosis& diagnosis) {
  Json json;
  json["schema"] = "unidle.diagnosis/1";
  json["outcome"] = to_string(diagnosis.outcome);
  json["verdict"] = to_string(diagnosis.verdict);
  json["device"]["kind"] = diagnosis.device.kind;
  json["device"]["busy"] = optional_number(diagnosis.device.busy, share);
  json["device"]["how"] = diagnosis.device.how;
  if (diagnosis.device.sm_activity) {
    json["device"]["sm_activity"] = share(*diagnosis.device.sm_activity);
    json["device"]["tensor_activity"] = optional_number(diagnosis.device.tensor_activity, share);
  }
  json["throughput"]["samples_per_s"] = optional_number(diagnosis.samples_per_s, rate);
  json["throughput"]["steps_per_s"] = optional_number(diagnosis.steps_per_s, rate);
  if (diagnosis.rated_before_window) {
    json["throughput"]["note"] = kRatedBeforeWindow;
  }
  if (const auto& arithmetic = diagnosis.arithmetic) {
    json["arithmetic"]["flops_per_step"] = rate(arithmetic->flops_per_step);
    json["arithmetic"]["flops_per_s"] = rate(arithmetic->flops_per_s);
    json["arithmetic"]["mfu"] = optional_number(arithmetic->utilisation, share);
  }
  json["time"] = time_json(diagnosis.time);
  if (const auto& cost = diagnosis.cost) {
    json["cost"]["gpu_hours"] = hours(cost->gpu_hours);
    json["cost"]["idle_gpu_hours"] = hours(cost->idle_gpu_hours);
    json["cost"]["price"] = cost->price ? Json(*cost->price) : Json();
  }
  json["step"] = diagnosis.step ? step_json(*diagnosis.step) : Json();
  if (diagnosis.step && diagnosis.exchange) {
    json["step"]["exchange"] = share(*diagnosis.exchange);
  }
  if (!diagnosis.ranks.empty()) {
    json["ranks"] = ranks_json(diagnosis.ranks);
  }
  json["findings"] = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    json["findings"].push_back(finding_json(finding));
  }
  json["abstained"] = Json::array();
  for (const Abstention& abstention : diagnosis.abstained) {
    Json entry;
    entry["id"] = abstention.id;
    entry["missing"] = abstention.missing;
    json["abstained"].push_back(std::move(entry));
  }
  return json;
}

nlohmann::ordered_json to_json_with_texts(const Diagnosis& diagnosis, Language language) {
  constexpr int kColumns = 80;
  nlohmann::ordered_json json = to_json(diagnosis);
  json["answer"] = answer(diagnosis, language);
  json["text"] = to_text(diagnosis, kColumns, false, language);
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    nlohmann::ordered_json& finding = json["findings"][i];
    finding["title"] = title(diagnosis.findings[i], language);
    if (finding.contains("advice")) {
      finding["advice"] = proposal(diagnosis.findings[i], language);
    }
    if (const auto& cheaper = diagnosis.findings[i].cheaper) {
      finding["cheaper_samples"]["advice"] = translate(language, cheaper->advice);
    }
  }
  return json;
}

}  // namespace unidle::diagnose
