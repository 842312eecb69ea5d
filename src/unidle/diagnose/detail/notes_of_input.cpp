#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "unidle/base/json.h"
#include "unidle/diagnose/detail/notes.h"
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

void read_validation_loaders(const Notes& notes, Signals& signals) {
  std::map<std::pair<std::int64_t, json>, std::pair<std::int64_t, std::string>> workers;  // by process and loader
  double waited_s = 0;
  notes.each<record::NoteType::kLoader>([&](const auto& note) {
    if (note.text("use") == "validate" && notes.of_training(note)) {
      workers[{note.process(), note.value("id")}] = {note.whole("workers").value_or(0), note.text("where")};
      waited_s += note.number("wait_seconds").value_or(0);
    }
  });
  notes.each<record::NoteType::kLoaderStart>([&](const auto& note) {
    const bool known = workers.contains({note.process(), note.value("id")});
    waited_s += known ? note.number("seconds_total").value_or(0) : 0;
  });
  if (!workers.empty()) {
    const auto count = [](const auto& each) { return each.second.first; };
    const auto& [most, where] = std::ranges::max_element(workers, {}, count)->second;
    signals.validation_workers = most;
    signals.validation_loader_where = where;
    signals.validation_wait_s = waited_s;
  }
}

LoaderFacts facts_of(const record::NoteOf<record::NoteType::kLoader>& loader) {
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
  facts.collate = loader.text("collate");
  facts.collate_where = loader.text("collate_where");
  facts.where = loader.text("where");
  facts.iterated_where = loader.text("iterated_where");
  facts.iterators = loader.whole("epochs");
  facts.batches = loader.whole("batches");
  facts.in_epoch = loader.whole("samples_per_epoch");
  return facts;
}

/// The newest training loader counts: a program may make one per configuration that it tries.
void read_training_loader(const Notes& notes, Signals& signals) {
  std::optional<record::NoteOf<record::NoteType::kLoader>> newest;
  notes.each<record::NoteType::kLoader>([&](const auto& note) {
    if (notes.of_training(note) && note.text("use") == "train" && (!newest || note.t_ns() >= newest->t_ns())) {
      newest = note;
    }
  });
  if (!newest) {
    return;
  }
  LoaderFacts facts = facts_of(*newest);
  notes.each<record::NoteType::kSource>([&](const auto& note) {
    if (note.process() == newest->process() && note.value("id") == newest->value("id") && !note.text("name").empty()) {
      facts.source = SourceFacts{.name = note.text("name"),
                                 .code = note.text("code"),
                                 .where = note.text("where"),
                                 .left = texts_in(note.value("left")),
                                 .note = note.text("note"),
                                 .patch = note.text("patch")};
    }
  });
  notes.each<record::NoteType::kLoaderStart>([&](const auto& note) {
    if (!notes.of_training(note) || !notes.feeds_training(note.value("id"))) {
      return;
    }
    add_to(facts.starts, note.whole("count"));
    add_to(facts.start_wait_s, note.number("in_training"));
  });
  signals.loader = std::move(facts);
}

/// Each process reports a few samples by index: [digest of the first, times the same later, times different]. Workers
/// that live for one epoch make each sample once, so digests of different processes are compared too.
void read_samples_again(const Notes& notes, SampleFacts& facts) {
  std::map<std::pair<std::string, std::string>, std::string> first;  // by loader and index
  notes.each<record::NoteType::kSamples>([&](const record::NoteOf<record::NoteType::kSamples>& note) {
    const json id = note.value("id");
    const json again = note.value("again");
    if (!again.is_object() || !notes.feeds_training(id)) {
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

void read_samples(const Notes& notes, Signals& signals) {
  SampleFacts facts;
  WeightedMean p50;
  WeightedMean p99;
  notes.each<record::NoteType::kSamples>([&](const auto& note) {
    if (!notes.feeds_training(note.value("id"))) {
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
    read_samples_again(notes, facts);
    signals.samples = facts;
  }
}

void read_hot_lines(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kHot>([&](const auto& note) {
    const auto hits = note.whole("hits");
    const bool others_startup = note.text("phase") == "startup" && !notes.of_training(note);
    if (hits && *hits > 0 && !others_startup) {
      signals.hot.push_back({note.text("role"), note.text("phase"), note.text("where"),
                             written_function(note.text("function")), *hits, note.whole("total").value_or(0),
                             note.text("caller")});
    }
  });
}

void read_python_places(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kPython>([&](const auto& note) {
    const std::int64_t looks = note.whole("hits").value_or(0);
    const PythonPlace place{note.text("place"),
                            note.flag("in_loop").value_or(false),
                            note.text("where"),
                            looks,
                            note.whole("held").value_or(0),
                            note.whole("total").value_or(0),
                            note.whole("direct").value_or(0),
                            note.whole("repeated").value_or(0),
                            note.whole("known").value_or(looks)};  // older records have no others
    if (notes.of_training(note) && 0 <= place.held && place.held <= place.known && place.known <= looks && 0 < looks &&
        looks <= place.of_looks) {
      signals.python_places.push_back(place);
    }
  });
}

void read_attention(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kAttention>([&](const auto& note) {
    const AttentionPlace place{note.text("where"), note.whole("hits").value_or(0), note.whole("total").value_or(0)};
    if (notes.of_training(note) && 0 < place.looks && place.looks <= place.of_looks) {
      signals.attention.push_back(place);
    }
  });
  std::ranges::stable_sort(signals.attention, std::ranges::greater(), &AttentionPlace::looks);
}

void read_operations(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kOperations>([&](const auto& note) {
    const double passes = note.number("passes").value_or(0);
    const double count = note.number("count").value_or(0);
    const double seconds = note.number("seconds").value_or(0);
    if (notes.of_training(note) && passes > 0 && count > 0 && seconds > 0) {
      OperationFacts facts;
      facts.per_pass = count / passes;
      facts.seconds_each = seconds / count;
      facts.previews = note.number("previews").value_or(0);
      facts.preview_samples = note.number("preview_samples").value_or(0);
      const double backwards = note.number("backwards").value_or(0);
      const double calls = note.number("most_called").value_or(0);
      if (backwards > 0 && calls > 0) {
        facts.calls_per_backward = calls / backwards;
        facts.call_s = note.number("most_called_seconds").value_or(0) / calls;
        facts.part_of_forward = std::clamp(facts.call_s * calls / seconds, 0.0, 1.0);
      }
      signals.operations = facts;
    }
  });
}

void read_slices(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kSlices>([&](const auto& note) {
    const double bytes = note.number("bytes").value_or(0);
    if (notes.of_training(note) && bytes > 0) {
      signals.slices = SliceFacts{bytes, note.whole("slices").value_or(0), note.text("shape")};
    }
  });
}

void read_affinity(const Notes& notes, Signals& signals) {
  std::set<int> of_workers;
  notes.each<record::NoteType::kAffinity>([&](const auto& note) {
    const std::vector<int> cpus = telemetry::parse_cpu_list(note.text("cpus"));
    if (!cpus.empty() && note.text("role") == "worker") {
      of_workers.insert(cpus.begin(), cpus.end());
      signals.cpus_of_workers = static_cast<double>(of_workers.size());
    }
  });
}

}  // namespace

void read_input(const Notes& notes, Signals& signals) {
  read_training_loader(notes, signals);
  read_validation_loaders(notes, signals);
  read_samples(notes, signals);
  read_hot_lines(notes, signals);
  read_python_places(notes, signals);
  read_attention(notes, signals);
  read_operations(notes, signals);
  read_slices(notes, signals);
  read_affinity(notes, signals);
}

}  // namespace unidle::diagnose::detail
