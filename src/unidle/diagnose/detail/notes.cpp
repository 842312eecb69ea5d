#include "unidle/diagnose/detail/notes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/record/note_types.h"
#include "unidle/telemetry/host_state.h"

namespace unidle::diagnose::detail {

namespace {

using nlohmann::json;

/// The weighted mean of a value that several processes report, each for `count` samples.
struct WeightedMean {
  double sum = 0;
  double weight = 0;
  void add(const std::optional<double>& value, double count) {
    sum += value ? *value * count : 0;
    weight += value ? count : 0;
  }
  std::optional<double> mean() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
};

/// Adds the times of one process; anything but a list of four times is ignored.
void add_stages(std::vector<double>& sums, const json& told) {
  constexpr std::size_t kStages = 4;
  const auto is_time = [](const json& each) { return each.is_number() && each.get<double>() >= 0; };
  if (!told.is_array() || told.size() != kStages || !std::all_of(told.begin(), told.end(), is_time)) {
    return;
  }
  sums.resize(kStages);
  for (std::size_t i = 0; i < kStages; ++i) {
    sums[i] += told[i].get<double>();
  }
}

/// The strings in a list; empty when it is not a list.
std::vector<std::string> texts_in(const json& list) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; list.is_array() && i < list.size(); ++i) {
    texts.push_back(list[i].is_string() ? list[i].get<std::string>() : std::string());
  }
  return texts;
}

/// The function whose line it is: a generator or comprehension has a name of its own.
std::string written_function(std::string name) {
  if (name.ends_with('>')) {
    name.resize(std::min(name.size(), name.rfind(".<locals>.<")));
  }
  return name;
}

/// Steps needed with device events; fewer are not evidence.
constexpr double kFewestStackSamples = 10;

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
    record::Note& kept = newest_[{text_in(note.body, "type"), note.process, record::key_of(note)}];
    if (note.t_ns >= kept.t_ns) {
      kept = std::move(note);
    }
  }
}

template <record::NoteType type, typename Visit>
void Notes::each(Visit visit) const {
  const std::string name(record::shape_of(type).name);
  for (auto at = newest_.lower_bound({name, INT64_MIN, ""}); at != newest_.end() && std::get<0>(at->first) == name;
       ++at) {
    visit(record::NoteOf<type>(at->second));
  }
}

bool Notes::feeds_training(const json& id) const {
  bool known = false;
  bool feeds = false;
  each<record::NoteType::kLoader>([&](const auto& note) {
    if (!id.is_null() && note.value("id") == id) {
      known = true;
      feeds = feeds || note.text("use") == "train";
    }
  });
  return feeds || !known;
}

void Notes::read(Signals& signals) const {
  read_model(signals);
  read_loader(signals);
  read_validation_loaders(signals);
  read_samples(signals);
  read_waits(signals);
  read_step(signals);
  read_device(signals);
  read_affinity(signals);
}

void Notes::read_validation_loaders(Signals& signals) const {
  std::map<std::pair<std::int64_t, json>, std::int64_t> workers;  // by process and loader
  double waited_s = 0;
  each<record::NoteType::kLoader>([&](const auto& note) {
    if (note.text("use") == "validate" && (!training_ || note.process() == *training_)) {
      workers[{note.process(), note.value("id")}] = note.whole("workers").value_or(0);
      waited_s += note.number("wait_seconds").value_or(0);
    }
  });
  each<record::NoteType::kLoaderStart>([&](const auto& note) {
    const bool known = workers.contains({note.process(), note.value("id")});
    waited_s += known ? note.number("seconds_total").value_or(0) : 0;
  });
  for (const auto& [loader, count] : workers) {
    signals.validation_workers = std::max(signals.validation_workers.value_or(0), count);
  }
  if (!workers.empty()) {
    signals.validation_wait_s = waited_s;
  }
}

/// The newest training loader counts: a program may make one per configuration that it tries.
void Notes::read_loader(Signals& signals) const {
  std::optional<record::NoteOf<record::NoteType::kLoader>> newest;
  each<record::NoteType::kLoader>([&](const auto& note) {
    const bool training = !training_ || note.process() == *training_;
    if (training && note.text("use") == "train" && (!newest || note.t_ns() >= newest->t_ns())) {
      newest = note;
    }
  });
  if (!newest) {
    return;
  }
  const auto& loader = *newest;
  LoaderFacts facts;
  facts.workers = loader.whole("workers");
  facts.batch_size = loader.whole("batch_size");
  facts.prefetch_factor = loader.whole("prefetch_factor");
  facts.dataset_len = loader.whole("dataset_len");
  facts.in_memory_bytes = loader.whole("in_memory_bytes");
  facts.pin_memory = loader.flag("pin_memory");
  facts.persistent_workers = loader.flag("persistent_workers");
  facts.map_style = loader.flag("map_style");
  if (!facts.map_style && loader.flag("iterable")) {
    facts.map_style = !*loader.flag("iterable");
  }
  facts.in_memory = loader.flag("in_memory");
  facts.batched = loader.flag("batched_getitem");
  facts.dataset_anew = loader.flag("dataset_anew");
  if (const auto elsewhere = loader.whole("fetched_elsewhere")) {
    facts.by_thread = 2 * *elsewhere > loader.whole("batches").value_or(0);
  }
  facts.gathers = loader.flag("gathers");
  facts.gathers_not = loader.text("gathers_not");
  facts.keepable = texts_in(loader.value("keepable"));
  facts.keepable_where = texts_in(loader.value("keepable_where"));
  facts.made_with = loader.text("made_with");
  facts.draws = loader.text("draws");
  facts.dataset = loader.text("dataset");
  facts.dataset_where = loader.text("dataset_where");
  facts.where = loader.text("where");
  each<record::NoteType::kSource>([&](const auto& note) {
    if (note.process() == loader.process() && note.value("id") == loader.value("id") && !note.text("name").empty()) {
      facts.source = SourceFacts{.name = note.text("name"),
                                 .code = note.text("code"),
                                 .where = note.text("where"),
                                 .left = texts_in(note.value("left")),
                                 .note = note.text("note"),
                                 .patch = note.text("patch")};
    }
  });
  each<record::NoteType::kLoaderStart>([&](const auto& note) {
    if ((training_ && note.process() != *training_) || !feeds_training(note.value("id"))) {
      return;
    }
    if (const auto count = note.whole("count")) {
      facts.starts = facts.starts.value_or(0) + *count;
    }
    add_to(facts.start_wait_s, note.number("in_training"));
  });
  signals.loader = std::move(facts);
}

void Notes::read_samples(Signals& signals) const {
  SampleFacts facts;
  WeightedMean p50;
  WeightedMean p99;
  each<record::NoteType::kSamples>([&](const auto& note) {
    if (!feeds_training(note.value("id"))) {
      return;
    }
    add_stages(signals.loader_stages_s, note.value("stages"));
    const auto count = note.number("count");
    const auto total = note.number("seconds_total");
    if (!count || !total || *count < 1) {
      return;  // the engine reports its samples as events
    }
    facts.count += std::llround(*count);
    facts.total_s += *total;
    p50.add(note.number("p50"), *count);
    p99.add(note.number("p99"), *count);
    if (const auto most = note.number("max")) {
      facts.max_s = std::max(facts.max_s.value_or(0), *most);
    }
    add_to(facts.collate_s, note.number("batch_collate_seconds"));
    add_to(facts.cpu_s, note.number("cpu_seconds"));
    add_to(facts.wait_s, note.number("wait_seconds"));
    add_to(facts.run_delay_s, note.number("run_delay_seconds"));
  });
  if (facts.count > 0) {
    facts.p50_s = p50.mean();
    facts.p99_s = p99.mean();
    read_samples_again(facts);
    signals.samples = facts;
  }
  each<record::NoteType::kHot>([&](const auto& note) {
    const auto hits = note.whole("hits");
    const bool others_startup = note.text("phase") == "startup" && training_ && note.process() != *training_;
    if (hits && *hits > 0 && !others_startup) {
      signals.hot.push_back({note.text("role"), note.text("phase"), note.text("where"),
                             written_function(note.text("function")), *hits, note.whole("total").value_or(0),
                             note.text("caller")});
    }
  });
}

/// Each process reports a few samples by index: [digest of the first, times the same later, times different]. Workers
/// that live for one epoch make each sample once, so digests of different processes are compared too.
void Notes::read_samples_again(SampleFacts& facts) const {
  std::map<std::pair<std::string, std::string>, std::string> first;  // by loader and index
  each<record::NoteType::kSamples>([&](const record::NoteOf<record::NoteType::kSamples>& note) {
    const json id = note.value("id");
    const json again = note.value("again");
    if (!again.is_object() || !feeds_training(id)) {
      return;
    }
    for (const auto& [index, told] : again.items()) {
      if (!told.is_array() || told.size() != 3 || !told[0].is_string() || !told[1].is_number_integer() ||
          !told[2].is_number_integer()) {
        continue;
      }
      facts.identical_samples += told[1].get<std::int64_t>();
      facts.compared_samples += told[1].get<std::int64_t>() + told[2].get<std::int64_t>();
      const auto [known, fresh] = first.emplace(std::pair(id.dump(), index), told[0].get<std::string>());
      facts.compared_samples += fresh ? 0 : 1;
      facts.identical_samples += !fresh && known->second == told[0].get<std::string>() ? 1 : 0;
    }
  });
}

void Notes::read_affinity(Signals& signals) const {
  std::set<int> of_workers;
  each<record::NoteType::kAffinity>([&](const auto& note) {
    const std::vector<int> cpus = telemetry::parse_cpu_list(note.text("cpus"));
    if (!cpus.empty() && note.text("role") == "worker") {
      of_workers.insert(cpus.begin(), cpus.end());
      signals.cpus_of_workers = static_cast<double>(of_workers.size());
    }
  });
}

void Notes::read_waits(Signals& signals) const {
  each<record::NoteType::kSync>([&](const auto& note) {
    if (training_ && note.process() != *training_) {
      return;
    }
    SyncCall call{note.text("call"), note.text("where"), note.whole("count").value_or(0),
                  note.whole("in_step").value_or(0), note.number("seconds").value_or(0)};
    if (!signals.syncs) {
      signals.syncs.emplace();
    }
    signals.syncs->push_back(std::move(call));
  });
  each<record::NoteType::kTransfer>([&](const auto& note) {
    if (training_ && note.process() != *training_) {
      return;  // other ranks' times belong to their own steps
    }
    TransferFacts facts = signals.transfer.value_or(TransferFacts{});
    const double bytes = note.number("pinned_bytes").value_or(0) + note.number("pageable_bytes").value_or(0);
    if (facts.where.empty() || bytes > facts.pinned_bytes + facts.pageable_bytes) {
      facts.where = note.text("where");
    }
    facts.pinned_bytes += note.number("pinned_bytes").value_or(0);
    facts.pageable_bytes += note.number("pageable_bytes").value_or(0);
    const auto add = [](std::optional<std::int64_t>& total, const std::optional<std::int64_t>& count) {
      if (count) {
        total = total.value_or(0) + *count;
      }
    };
    add(facts.blocking, note.whole("blocking_count"));
    add(facts.nonblocking, note.whole("nonblocking_count"));
    add_to(facts.in_line_bytes, note.number("in_line_bytes"));
    signals.transfer = facts;
  });
  double longest_s = 0;
  each<record::NoteType::kCheckpoint>([&](const auto& note) {
    const double seconds = note.number("seconds").value_or(0);
    if ((!training_ || note.process() == *training_) && seconds > longest_s) {
      longest_s = seconds;
      signals.checkpoint_where = note.text("where");
    }
  });
  each<record::NoteType::kCalled>(
      [&](const auto& note) { signals.called.emplace(note.text("where"), note.text("function")); });
  each<record::NoteType::kLogging>([&](const auto& note) {
    LoggingFacts facts = signals.logging.value_or(LoggingFacts{});
    const double seconds = note.number("seconds").value_or(0);
    if (facts.where.empty() || seconds > facts.seconds) {
      facts.where = note.text("where");
    }
    facts.seconds += seconds;
    facts.calls += note.whole("calls").value_or(0);
    signals.logging = facts;
  });
}

void Notes::read_model(Signals& signals) const {
  const auto either = [](std::optional<bool>& fact, const std::optional<bool>& seen) {
    if (seen) {
      fact = fact.value_or(false) || *seen;
    }
  };
  each<record::NoteType::kModel>([&](const auto& note) {
    signals.model_dtype = note.text("dtype");
    if (const auto parameters = note.whole("parameters")) {
      signals.model_parameters = std::max(signals.model_parameters.value_or(0), *parameters);
    }
    auto convolutions = note.flag("convolutions");
    if (const auto count = note.number("convolutions")) {
      convolutions = *count > 0;
    }
    either(signals.model_has_convolutions, convolutions);
    if (const auto parameters = note.whole("convolution_parameters")) {
      signals.model_convolution_parameters = std::max(signals.model_convolution_parameters.value_or(0), *parameters);
    }
    either(signals.convolutions_tf32, note.flag("convolutions_tf32"));
    either(signals.model_has_depthwise, note.flag("depthwise"));
    signals.sparse_gradients = signals.sparse_gradients || note.flag("sparse_gradients").value_or(false);
    if (const std::string where = note.text("training_where"); !where.empty()) {
      signals.model_where = where;
    }
    if (const std::string device = note.text("device"); !device.empty() && !signals.effective("device")) {
      signals.settings["device"].effective = device;
    }
  });
}

void Notes::read_step(Signals& signals) const {
  each<record::NoteType::kOptimizer>([&](const auto& note) {
    signals.optimizer = OptimizerFacts{note.text("class"),    note.flag("fused"), note.flag("foreach"),
                                       note.whole("tensors"), note.text("where"), note.flag("fusable")};
  });
  each<record::NoteType::kGrowing>([&](const auto& note) {
    if (!training_ || note.process() == *training_) {
      signals.growing.push_back({note.text("name"), note.text("where"), note.number("per_step").value_or(0),
                                 note.number("bytes_per_step").value_or(0), note.flag("graph").value_or(false)});
    }
  });
  std::ranges::stable_sort(signals.growing, std::greater<>(), &GrowingFacts::bytes_per_step);
  each<record::NoteType::kSkipped>([&](const auto& note) {
    signals.skipped = SkippedBatches{note.whole("batches").value_or(0), note.number("seconds").value_or(0)};
  });
  each<record::NoteType::kCompile>([&](const auto& note) {
    CompileFacts facts = signals.compile.value_or(CompileFacts{});
    facts.compiled = facts.compiled || note.flag("compiled").value_or(false);
    facts.recompilations += note.whole("recompilations").value_or(0);
    facts.seconds += note.number("seconds").value_or(0);
    facts.reason = facts.reason.empty() ? note.text("reason") : facts.reason;
    signals.compile = std::move(facts);
  });
  each<record::NoteType::kPadding>([&](const auto& note) {
    PaddingFacts facts = signals.padding.value_or(PaddingFacts{});
    facts.real += note.number("real").value_or(0);
    facts.padded += note.number("padded").value_or(0);
    facts.where = facts.where.empty() ? note.text("where") : facts.where;
    signals.padding = std::move(facts);
  });
  each<record::NoteType::kValidation>([&](const auto& note) {
    signals.validation_where = note.flag("optional").value_or(false) ? note.text("where") : std::string();
    signals.validation_kept = note.text("why");
  });
  each<record::NoteType::kShapes>([&](const auto& note) { signals.batch_shapes = note.whole("distinct"); });
  each<record::NoteType::kParallel>([&](const auto& note) {
    if (const std::string kind = note.text("kind"); !kind.empty()) {
      signals.parallel = kind;
    }
    if (note.number("gradient_bytes") && (!training_ || note.process() == *training_)) {
      signals.exchange = ExchangeFacts{note.text("backend"), note.flag("find_unused"), note.flag("static_graph"),
                                       note.text("hook"), note.number("gradient_bytes")};
    }
  });
  each<record::NoteType::kRank>([&](const auto& note) {
    if (signals.exchange && (!training_ || note.process() == *training_)) {
      signals.exchange->per_step = note.number("exchanges_per_step");
    }
  });
}

void Notes::read_device(Signals& signals) const {
  each<record::NoteType::kDevice>([&](const auto& note) {
    const std::string kind = note.text("kind");
    if (!kind.empty() && !signals.effective("device")) {
      signals.settings["device"].effective = kind;
    }
    const auto bytes = note.number("memory_bytes");
    if (kind == "cpu" || (training_ && note.process() != *training_)) {
      return;
    }
    if (bytes && *bytes > 0) {
      signals.gpu.memory_bytes = note.whole("memory_bytes");
      if (const auto peak = note.number("reserved_peak_bytes")) {
        signals.gpu_memory_used = std::clamp(*peak / *bytes, 0.0, 1.0);
      }
    }
    if (const std::string capability = note.text("capability"); !capability.empty()) {
      signals.gpu_capability = capability;
    }
    const auto looked_at = note.number("looked_at");
    if (const auto kept_up = note.number("kept_up"); kept_up && looked_at.value_or(0) >= kFewestStackSamples) {
      signals.device_kept_up = std::clamp(*kept_up / *looked_at, 0.0, 1.0);
    }
    signals.gpu.alloc_retries = note.whole("alloc_retries");
    signals.gpu.ooms = note.whole("ooms");
  });
  each<record::NoteType::kMemory>([&](const auto& note) {
    if (const auto ooms = note.whole("oom")) {
      signals.gpu.ooms = std::max(signals.gpu.ooms.value_or(0), *ooms);
      if (!training_ || note.process() == *training_) {
        signals.gpu.oom_samples = note.whole("samples");
        signals.gpu.oom_steps_before = note.whole("steps_before");
      }
    }
  });
}

}  // namespace unidle::diagnose::detail
