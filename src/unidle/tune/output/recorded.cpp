#include "unidle/tune/output/recorded.h"

#include <nlohmann/json.hpp>
#include <string>

#include "unidle/base/error.h"

namespace unidle::tune {

using nlohmann::json;

namespace {

knobs::Value value_in(const json& texts, const std::string& knob) {
  return knobs::settings_from({{knob, texts}}).at(knob);
}

knobs::Change change_in(const json& body) {
  const auto knob = body.at("knob").get<std::string>();
  const json& from = body.at("from");
  const bool unknown = from.is_string() && from.get_ref<const std::string&>().empty();
  knobs::Change change = knobs::change_of(knob, unknown ? std::nullopt : std::optional(value_in(from, knob)),
                                          value_in(body.at("to"), knob), body.at("reason").get<std::string>());
  if (const json& gain = body.at("gain"); !gain.is_null()) {
    change.gain = gain.get<double>();
  }
  return change;
}

LoggedTrial trial_in(const json& body) {
  LoggedTrial trial;
  trial.index = body.at("trial").get<int>();
  trial.stage = body.at("stage").get<std::string>();
  trial.changes = knobs::settings_from(body.at("knobs"));
  trial.verdict = body.at("verdict").get<std::string>();
  trial.why = body.at("why").get<std::string>();
  trial.result.ok = body.at("ok").get<bool>();
  trial.result.rate = body.at("samples_per_s").get<double>();
  if (const json& loss = body.at("loss"); !loss.is_null()) {
    trial.result.loss = loss.get<double>();
  }
  return trial;
}

Verification verification_in(const json& body) {
  Verification verification;
  verification.baseline = body.at("baseline").get<std::vector<double>>();
  verification.winner = body.at("winner").get<std::vector<double>>();
  verification.ratio = body.at("ratio").get<double>();
  verification.interval = {body.at("interval").at(0).get<double>(), body.at("interval").at(1).get<double>()};
  verification.shown = body.at("shown").get<bool>();
  verification.parity.why = body.at("why").get<std::string>();
  const json& held = body.at("loss_parity");
  verification.compared = !held.is_null();
  verification.parity.held = held.is_null() || held.get<bool>();
  return verification;
}

template <typename Read, typename Take>
void read_one(const json& body, Recorded& recorded, Read read, Take take) {
  try {
    take(read(body));
  } catch (const json::exception&) {
    ++recorded.unreadable;
  } catch (const Error&) {  // a knob or a value that this version does not know
    ++recorded.unreadable;
  }
}

/// The entries of a list; a value that is neither a list nor absent counts as one of another form.
json entries_of(const json& list) {
  return list.is_array() ? list : list.is_null() ? json::array() : json::array({list});
}

}  // namespace

Recorded recorded(const json& changes, const json& trials, const json& verification) {
  Recorded found;
  for (const json& each : entries_of(changes)) {
    read_one(each, found, change_in, [&](knobs::Change change) { found.changes.push_back(std::move(change)); });
  }
  for (const json& each : entries_of(trials)) {
    read_one(each, found, trial_in, [&](LoggedTrial trial) { found.trials.push_back(std::move(trial)); });
  }
  if (!verification.is_null()) {
    read_one(verification, found, verification_in, [&](Verification each) { found.verification = std::move(each); });
  }
  return found;
}

}  // namespace unidle::tune
