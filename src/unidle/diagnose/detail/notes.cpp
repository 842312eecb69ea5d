#include "unidle/diagnose/detail/notes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/telemetry/host_state.h"

namespace unidle::diagnose::detail {

namespace {

using nlohmann::json;

/// What tells notes of one type apart.
std::string key_of(const json& body) {
  std::string key;
  for (const char* part : {"id", "role", "phase", "call", "where", "function", "rank", "index"}) {
    const auto found = body.find(part);
    key += found == body.end() ? "|" : "|" + json_text(*found, -1);
  }
  return key;
}

/// A value that several processes gave, each for `count` samples: their mean, weighted.
struct WeightedMean {
  double sum = 0;
  double weight = 0;
  void add(const std::optional<double>& value, double count) {
    sum += value ? *value * count : 0;
    weight += value ? count : 0;
  }
  std::optional<double> mean() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
};

void add_to(std::optional<double>& total, const std::optional<double>& value) {
  if (value) {
    total = total.value_or(0) + *value;
  }
}

}  // namespace

Notes::Notes(std::vector<record::Note> notes, std::optional<std::int64_t> training) : training_(training) {
  for (record::Note& note : notes) {
    if (!note.body.is_object()) {
      continue;
    }
    record::Note& kept = newest_[{text_in(note.body, "type"), note.process, key_of(note.body)}];
    if (note.t_ns >= kept.t_ns) {
      kept = std::move(note);
    }
  }
}

template <typename Visit>
void Notes::each(const char* type, Visit visit) const {
  for (auto at = newest_.lower_bound({type, INT64_MIN, ""}); at != newest_.end() && std::get<0>(at->first) == type;
       ++at) {
    visit(at->second);
  }
}

bool Notes::feeds_training(const json& id) const {
  bool known = false;
  bool feeds = false;
  each("loader", [&](const record::Note& note) {
    if (note.body.contains("id") && note.body["id"] == id) {
      known = true;
      feeds = feeds || text_in(note.body, "use") == "train";
    }
  });
  return feeds || !known;
}

void Notes::read(Signals& signals) const {
  read_model(signals);
  read_loader(signals);
  read_samples(signals);
  read_waits(signals);
  read_step(signals);
  read_device(signals);
  read_affinity(signals);
}

/// The newest training loader; a program may make one for every configuration that it tries.
void Notes::read_loader(Signals& signals) const {
  const record::Note* newest = nullptr;
  each("loader", [&](const record::Note& note) {
    const bool training = !training_ || note.process == *training_;
    if (training && text_in(note.body, "use") == "train" && (newest == nullptr || note.t_ns >= newest->t_ns)) {
      newest = &note;
    }
  });
  if (newest == nullptr) {
    return;
  }
  const json& body = newest->body;
  LoaderFacts facts;
  facts.workers = whole_in(body, "workers");
  facts.batch_size = whole_in(body, "batch_size");
  facts.prefetch_factor = whole_in(body, "prefetch_factor");
  facts.dataset_len = whole_in(body, "dataset_len");
  facts.in_memory_bytes = whole_in(body, "in_memory_bytes");
  facts.pin_memory = flag_in(body, "pin_memory");
  facts.persistent_workers = flag_in(body, "persistent_workers");
  facts.map_style = flag_in(body, "map_style");
  if (!facts.map_style && flag_in(body, "iterable")) {
    facts.map_style = !*flag_in(body, "iterable");
  }
  facts.in_memory = flag_in(body, "in_memory");
  facts.batched = flag_in(body, "batched_getitem");
  facts.gathers = flag_in(body, "gathers");
  facts.gathers_not = text_in(body, "gathers_not");
  if (const auto names = body.find("keepable"); names != body.end() && names->is_array()) {
    for (const json& name : *names) {
      facts.keepable.push_back(name.is_string() ? name.get<std::string>() : "");
    }
  }
  facts.dataset = text_in(body, "dataset");
  facts.dataset_where = text_in(body, "dataset_where");
  facts.where = text_in(body, "where");
  each("loader_start", [&](const record::Note& note) {
    if ((training_ && note.process != *training_) || !feeds_training(note.body.value("id", json()))) {
      return;
    }
    if (const auto count = whole_in(note.body, "count")) {
      facts.starts = facts.starts.value_or(0) + *count;
    }
    add_to(facts.start_wait_s, number_in(note.body, "in_training"));
  });
  signals.loader = std::move(facts);
}

void Notes::read_samples(Signals& signals) const {
  SampleFacts facts;
  WeightedMean p50;
  WeightedMean p99;
  each("samples", [&](const record::Note& note) {
    const auto count = number_in(note.body, "count");
    const auto total = number_in(note.body, "seconds_total");
    if (!count || !total || *count < 1 || !feeds_training(note.body.value("id", json()))) {
      return;
    }
    facts.count += std::llround(*count);
    facts.total_s += *total;
    p50.add(number_in(note.body, "p50"), *count);
    p99.add(number_in(note.body, "p99"), *count);
    if (const auto most = number_in(note.body, "max")) {
      facts.max_s = std::max(facts.max_s.value_or(0), *most);
    }
    add_to(facts.collate_s, number_in(note.body, "batch_collate_seconds"));
    add_to(facts.cpu_s, number_in(note.body, "cpu_seconds"));
    add_to(facts.wait_s, number_in(note.body, "wait_seconds"));
  });
  if (facts.count > 0) {
    facts.p50_s = p50.mean();
    facts.p99_s = p99.mean();
    read_samples_again(facts);
    signals.samples = facts;
  }
  each("hot", [&](const record::Note& note) {
    const auto hits = whole_in(note.body, "hits");
    if (hits && *hits > 0) {
      signals.hot.push_back({text_in(note.body, "role"), text_in(note.body, "phase"), text_in(note.body, "where"),
                             text_in(note.body, "function"), *hits, whole_in(note.body, "total").value_or(0)});
    }
  });
}

/// Each process tells of a few samples, by index: [digest of the first, how often it was the same later, how often
/// another]. Workers that live for one epoch make each sample once, and so they are compared with each other, too.
void Notes::read_samples_again(SampleFacts& facts) const {
  std::map<std::pair<std::string, std::string>, std::string> first;  // by loader and index
  each("samples", [&](const record::Note& note) {
    const json id = note.body.value("id", json());
    const auto again = note.body.find("again");
    if (again == note.body.end() || !again->is_object() || !feeds_training(id)) {
      return;
    }
    for (const auto& [index, told] : again->items()) {
      if (!told.is_array() || told.size() != 3 || !told[0].is_string() || !told[1].is_number_integer() ||
          !told[2].is_number_integer()) {
        continue;
      }
      facts.same_again += told[1].get<std::int64_t>();
      facts.looked_at_again += told[1].get<std::int64_t>() + told[2].get<std::int64_t>();
      const auto [known, fresh] = first.emplace(std::pair(id.dump(), index), told[0].get<std::string>());
      facts.looked_at_again += fresh ? 0 : 1;
      facts.same_again += !fresh && known->second == told[0].get<std::string>() ? 1 : 0;
    }
  });
}

void Notes::read_affinity(Signals& signals) const {
  std::set<int> of_workers;
  each("affinity", [&](const record::Note& note) {
    const std::vector<int> cpus = telemetry::parse_cpu_list(text_in(note.body, "cpus"));
    if (cpus.empty()) {
      return;
    }
    if (text_in(note.body, "role") == "worker") {
      of_workers.insert(cpus.begin(), cpus.end());
      signals.cpus_of_workers = static_cast<double>(of_workers.size());
    } else if (training_ && note.process == *training_) {
      signals.cpus_allowed = static_cast<double>(cpus.size());
    }
  });
}

void Notes::read_waits(Signals& signals) const {
  each("sync", [&](const record::Note& note) {
    if (training_ && note.process != *training_) {
      return;
    }
    SyncCall call{text_in(note.body, "call"), text_in(note.body, "where"), whole_in(note.body, "count").value_or(0),
                  whole_in(note.body, "in_step").value_or(0), number_in(note.body, "seconds").value_or(0)};
    if (!signals.syncs) {
      signals.syncs.emplace();
    }
    signals.syncs->push_back(std::move(call));
  });
  each("transfer", [&](const record::Note& note) {
    TransferFacts facts = signals.transfer.value_or(TransferFacts{});
    const double bytes =
        number_in(note.body, "pinned_bytes").value_or(0) + number_in(note.body, "pageable_bytes").value_or(0);
    if (facts.where.empty() || bytes > facts.pinned_bytes + facts.pageable_bytes) {
      facts.where = text_in(note.body, "where");
    }
    facts.pinned_bytes += number_in(note.body, "pinned_bytes").value_or(0);
    facts.pageable_bytes += number_in(note.body, "pageable_bytes").value_or(0);
    const auto add = [&](std::optional<std::int64_t>& total, const char* key) {
      if (const auto count = whole_in(note.body, key)) {
        total = total.value_or(0) + *count;
      }
    };
    add(facts.blocking, "blocking_count");
    add(facts.nonblocking, "nonblocking_count");
    signals.transfer = facts;
  });
  each("logging", [&](const record::Note& note) {
    LoggingFacts facts = signals.logging.value_or(LoggingFacts{});
    const double seconds = number_in(note.body, "seconds").value_or(0);
    if (facts.where.empty() || seconds > facts.seconds) {
      facts.where = text_in(note.body, "where");
    }
    facts.seconds += seconds;
    facts.calls += whole_in(note.body, "calls").value_or(0);
    signals.logging = facts;
  });
}

void Notes::read_model(Signals& signals) const {
  const auto either = [](std::optional<bool>& fact, const std::optional<bool>& seen) {
    if (seen) {
      fact = fact.value_or(false) || *seen;
    }
  };
  each("model", [&](const record::Note& note) {
    if (const auto parameters = whole_in(note.body, "parameters")) {
      signals.model_parameters = std::max(signals.model_parameters.value_or(0), *parameters);
    }
    auto convolutions = flag_in(note.body, "convolutions");
    if (const auto count = number_in(note.body, "convolutions")) {
      convolutions = *count > 0;
    }
    either(signals.model_has_convolutions, convolutions);
    either(signals.model_has_depthwise, flag_in(note.body, "depthwise"));
    if (const std::string where = text_in(note.body, "training_where"); !where.empty()) {
      signals.model_where = where;
    }
    if (const std::string device = text_in(note.body, "device"); !device.empty() && !signals.effective("device")) {
      signals.settings["device"].effective = device;
    }
  });
}

void Notes::read_step(Signals& signals) const {
  each("optimizer", [&](const record::Note& note) {
    signals.optimizer =
        OptimizerFacts{text_in(note.body, "class"), flag_in(note.body, "fused"), flag_in(note.body, "foreach"),
                       whole_in(note.body, "tensors"), text_in(note.body, "where")};
  });
  each("compile", [&](const record::Note& note) {
    CompileFacts facts = signals.compile.value_or(CompileFacts{});
    facts.compiled = facts.compiled || flag_in(note.body, "compiled").value_or(false);
    facts.recompilations += whole_in(note.body, "recompilations").value_or(0);
    facts.seconds += number_in(note.body, "seconds").value_or(0);
    facts.reason = facts.reason.empty() ? text_in(note.body, "reason") : facts.reason;
    signals.compile = std::move(facts);
  });
  each("padding", [&](const record::Note& note) {
    PaddingFacts facts = signals.padding.value_or(PaddingFacts{});
    facts.real += number_in(note.body, "real").value_or(0);
    facts.padded += number_in(note.body, "padded").value_or(0);
    facts.where = facts.where.empty() ? text_in(note.body, "where") : facts.where;
    signals.padding = std::move(facts);
  });
  each("validation", [&](const record::Note& note) {
    signals.validation_where =
        flag_in(note.body, "optional").value_or(false) ? text_in(note.body, "where") : std::string();
  });
  each("shapes", [&](const record::Note& note) { signals.batch_shapes = whole_in(note.body, "distinct"); });
  each("parallel", [&](const record::Note& note) {
    if (const std::string kind = text_in(note.body, "kind"); !kind.empty()) {
      signals.parallel = kind;
    }
  });
  each("rank", [&](const record::Note& note) {
    const auto rank = whole_in(note.body, "rank");
    const auto wait_s = number_in(note.body, "wait_seconds");
    if (rank && wait_s) {
      signals.ranks.push_back(
          {static_cast<int>(*rank), number_in(note.body, "step_seconds").value_or(0), *wait_s, note.process});
    }
  });
}

void Notes::read_device(Signals& signals) const {
  each("device", [&](const record::Note& note) {
    const json& body = note.body;
    const std::string kind = text_in(body, "kind");
    if (!kind.empty() && !signals.effective("device")) {
      signals.settings["device"].effective = kind;
    }
    const auto bytes = number_in(body, "memory_bytes");
    if (kind == "cpu" || (training_ && note.process != *training_)) {
      return;
    }
    if (bytes && *bytes > 0) {
      signals.gpu.memory_bytes = whole_in(body, "memory_bytes");
      if (const auto peak = number_in(body, "reserved_peak_bytes")) {
        signals.gpu_memory_used = std::clamp(*peak / *bytes, 0.0, 1.0);
      }
    }
    if (const std::string capability = text_in(body, "capability"); !capability.empty()) {
      signals.gpu_capability = capability;
    }
    signals.gpu.alloc_retries = whole_in(body, "alloc_retries");
    signals.gpu.ooms = whole_in(body, "ooms");
  });
  each("memory", [&](const record::Note& note) {
    if (const auto ooms = whole_in(note.body, "oom")) {
      signals.gpu.ooms = std::max(signals.gpu.ooms.value_or(0), *ooms);
    }
  });
  each("device_time", [&](const record::Note& note) {
    const auto steps = number_in(note.body, "steps");
    const auto seconds = number_in(note.body, "seconds");
    if (steps && seconds && *steps > 0) {
      signals.device_step_s = *seconds / *steps;
    }
  });
}

}  // namespace unidle::diagnose::detail
