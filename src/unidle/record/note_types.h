// The types of notes that unidle understands, with their fields. docs/probe-format.md says what each means.
//
// This is the only list. Reading a field that its type does not have does not compile; one test compares the
// documentation with this list, and the tests of the Python package compare each written note with the documentation.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/json.h"
#include "unidle/record/record.h"

namespace unidle::record {

enum class NoteType {
  kAffinity,
  kApply,
  kArguments,
  kAttention,
  kCalled,
  kCheckpoint,
  kCompile,
  kCupti,
  kData,
  kDebugging,
  kDevice,
  kException,
  kGrowing,
  kHot,
  kLoader,
  kLoaderStart,
  kLogging,
  kLongest,
  kMemory,
  kMetric,
  kModel,
  kNoted,
  kOperations,
  kOptimizer,
  kOptions,
  kPadding,
  kPageFaults,
  kParallel,
  kProgram,
  kPython,
  kRank,
  kSamples,
  kScaler,
  kSetting,
  kShapes,
  kShim,
  kSkipped,
  kSlices,
  kSource,
  kStacks,
  kSync,
  kTrace,
  kTraceAnalysis,
  kTracker,
  kTransfer,
  kUnread,
  kUnseen,
  kValidation,
  kValidationCall,
};

struct NoteShape {
  NoteType type;
  std::string_view name;
  std::string_view key;     // fields, separated by blanks, that distinguish notes of this type in one process
  std::string_view fields;  // all other fields, separated by blanks
};

inline constexpr std::array kNoteShapes = {
    NoteShape{NoteType::kAffinity, "affinity", "role", "cpus"},
    NoteShape{NoteType::kApply, "apply", "knob status why", "asked value"},
    NoteShape{NoteType::kArguments, "arguments", "", "program arguments"},
    NoteShape{NoteType::kAttention, "attention", "where", "hits total"},
    NoteShape{NoteType::kCalled, "called", "where", "function"},
    NoteShape{NoteType::kCheckpoint, "checkpoint", "where", "seconds"},
    NoteShape{NoteType::kCompile, "compile", "", "compiled mode backend compilations recompilations seconds reason"},
    NoteShape{NoteType::kCupti, "cupti", "", "status reason"},
    NoteShape{NoteType::kData, "data", "", "samples_per_epoch"},
    NoteShape{NoteType::kDebugging, "debugging", "", "anomaly profiler launch_blocking checked_collectives where"},
    NoteShape{NoteType::kDevice, "device", "index",
              "kind name uuid pci capability memory_bytes allocated_peak_bytes reserved_peak_bytes alloc_retries ooms "
              "looked_at kept_up"},
    NoteShape{NoteType::kException, "exception", "", "message class where traceback caught"},
    NoteShape{NoteType::kGrowing, "growing", "name", "where length per_step graph bytes_per_step"},
    NoteShape{NoteType::kHot, "hot", "role phase where function caller", "hits total"},
    NoteShape{
        NoteType::kLoader, "loader", "id",
        "use made_with workers batch_size pin_memory prefetch_factor persistent_workers drop_last iterable map_style "
        "collate collate_where sampler dataset dataset_where dataset_len dataset_anew in_memory in_memory_bytes draws "
        "batched_getitem "
        "start_method gathers gathers_not keepable keepable_where where iterated_where samples_per_epoch "
        "epochs batches fetched_elsewhere wait_seconds"},
    NoteShape{NoteType::kLoaderStart, "loader_start", "id", "count seconds_total seconds_last in_training workers"},
    NoteShape{NoteType::kLogging, "logging", "", "calls seconds where where_calls"},
    NoteShape{NoteType::kLongest, "longest", "", "samples batch longest usual"},
    NoteShape{NoteType::kMemory, "memory", "", "oom message samples steps_before"},
    NoteShape{NoteType::kMetric, "metric", "", "name value step samples"},
    NoteShape{NoteType::kModel, "model", "",
              "class wrapper parameters dtype device convolutions convolution_parameters convolutions_tf32 depthwise "
              "channels_last input_channels_last sparse_gradients training_where"},
    NoteShape{NoteType::kNoted, "noted", "name", "value step samples"},
    NoteShape{NoteType::kOperations, "operations", "",
              "passes count seconds backwards most_called most_called_seconds previews preview_samples"},
    NoteShape{NoteType::kOptimizer, "optimizer", "",
              "class fused foreach fusable tensors parameters zero_to_none where also part zero_grad_where"},
    NoteShape{NoteType::kOptions, "options", "", "program words options switches"},
    NoteShape{NoteType::kPadding, "padding", "", "real padded longest cuts where"},
    NoteShape{NoteType::kPageFaults, "page_faults", "", "faults system_seconds cpu_seconds seconds"},
    NoteShape{NoteType::kParallel, "parallel", "",
              "kind world_size rank backend find_unused static_graph bucket_bytes hook gradient_bytes"},
    NoteShape{NoteType::kProgram, "program", "", "files digest"},
    NoteShape{NoteType::kPython, "python", "place", "in_loop where function hits held known direct repeated total"},
    NoteShape{NoteType::kRank, "rank", "rank",
              "wait_seconds step_seconds exchange_seconds exchanges_per_step waits_us"},
    NoteShape{
        NoteType::kSamples, "samples", "id",
        "count batches seconds_total p50 p95 p99 max batch_collate_seconds cpu_seconds wait_seconds run_delay_seconds "
        "reads_files again stages"},
    NoteShape{NoteType::kScaler, "scaler", "", "enabled"},
    NoteShape{NoteType::kSetting, "setting", "knob", "value source location"},
    NoteShape{NoteType::kShapes, "shapes", "", "distinct of"},
    NoteShape{NoteType::kShim, "shim", "",
              "status reason python executable torch role step_cost_us overhead thinned steps_in_full"},
    NoteShape{NoteType::kSkipped, "skipped", "", "batches seconds"},
    NoteShape{NoteType::kSlices, "slices", "", "bytes slices shape"},
    NoteShape{NoteType::kSource, "source", "id", "name code where left note patch"},
    NoteShape{NoteType::kStacks, "stacks", "role", "total frames stacks"},
    NoteShape{NoteType::kSync, "sync", "call where", "count seconds in_step"},
    NoteShape{NoteType::kTrace, "trace", "", "status reason file begin_ns end_ns first_step steps seconds attached_ns"},
    NoteShape{NoteType::kTraceAnalysis, "trace_analysis", "file", "analysis problem"},
    NoteShape{NoteType::kTracker, "tracker", "tracker run", "server project entity name mode folder executable"},
    NoteShape{NoteType::kTransfer, "transfer", "where",
              "pinned_bytes pageable_bytes blocking_count nonblocking_count seconds in_line_bytes"},
    NoteShape{NoteType::kUnread, "unread", "", "keys"},
    NoteShape{NoteType::kUnseen, "unseen", "", "command why"},
    NoteShape{NoteType::kValidation, "validation", "", "optional where why"},
    NoteShape{NoteType::kValidationCall, "validation_call", "", "where"},
};

constexpr const NoteShape& shape_of(NoteType type) { return kNoteShapes[static_cast<std::size_t>(type)]; }

/// Removes and returns the first of the blank-separated `words`. REQUIRES: `words` is not empty.
constexpr std::string_view take_word(std::string_view& words) {
  const std::size_t end = words.find(' ');
  const std::string_view word = words.substr(0, end);
  words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  return word;
}

constexpr bool holds_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    if (take_word(words) == word) {
      return true;
    }
  }
  return false;
}

constexpr bool has_field(NoteType type, std::string_view field) {
  return holds_word(shape_of(type).key, field) || holds_word(shape_of(type).fields, field);
}

/// The name of a field of this note type; any other name does not compile.
template <NoteType type>
struct NoteField {
  consteval NoteField(const char* field) : name(field) {  // NOLINT(google-explicit-constructor): names a field
    if (!has_field(type, name)) {
      throw "notes of this type have no such field";
    }
  }
  std::string_view name;
};

/// A note of this type. Its values come from another program: each may be missing or of another type, see base/json.h.
/// The note must outlive it.
template <NoteType type>
class NoteOf {
 public:
  explicit NoteOf(const Note& note) : note_(&note) {}

  std::int64_t process() const { return note_->process; }
  std::int64_t t_ns() const { return note_->t_ns; }
  std::string text(NoteField<type> field) const { return text_in(note_->body, field.name); }
  std::optional<std::int64_t> whole(NoteField<type> field) const { return whole_in(note_->body, field.name); }
  std::optional<double> number(NoteField<type> field) const { return number_in(note_->body, field.name); }
  std::optional<bool> flag(NoteField<type> field) const { return flag_in(note_->body, field.name); }
  /// null if the field is missing.
  nlohmann::json value(NoteField<type> field) const {
    const auto found = note_->body.find(field.name);
    return found == note_->body.end() ? nlohmann::json() : *found;
  }

 private:
  const Note* note_;
};

inline bool is_of(const Note& note, NoteType type) {
  return note.body.is_object() && text_in(note.body, "type") == shape_of(type).name;
}

/// Calls visit(NoteOf<type>) for each note of this type, in order.
template <NoteType type, typename Visit>
void each_note(const std::vector<Note>& notes, Visit visit) {
  for (const Note& note : notes) {
    if (is_of(note, type)) {
      visit(NoteOf<type>(note));
    }
  }
}

/// Identifies a note among those of its type and process: the values of its key fields, as text. Empty for unknown
/// types.
std::string key_of(const Note& note);

}  // namespace unidle::record
