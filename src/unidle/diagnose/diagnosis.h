// The result of a diagnosis; its JSON form is unidle.diagnosis/1.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/account/phases.h"
#include "unidle/account/ranks.h"
#include "unidle/account/steps.h"
#include "unidle/knobs/change.h"
#include "unidle/knobs/reach.h"
#include "unidle/language/language.h"

namespace unidle::diagnose {

enum class Severity { kInfo, kWarning, kCritical };

enum class Verdict {
  kHealthy,
  kInputBound,
  kTransferBound,
  kSyncBound,
  kLaunchBound,
  kComputeBound,
  kCommunicationBound,
  kValidationBound,
  kOverheadBound,
  kDeviceUnused,
  kFailed,
  kUnknown,
};

/// What a finding shows when its cause may be another rule's. It is folded into the finding of a rule that explains it.
enum class Symptom {
  kFailure,           // the run failed
  kSamplesInLoop,     // the training thread makes samples
  kNoUseOfWorkers,    // the same, and workers would gain nothing
  kWorkersBehind,     // workers are busy and batches late
  kWorkersCrowded,    // more workers than CPUs
  kBatchesInBursts,   // batches come late now and then
  kSlowSamples,       // samples cost too much for any number of workers
  kWorkersRestarted,  // workers are started again and again
  kNoBatch,           // the device idles while the loop waits for a batch
  kFullMemory,        // device memory is nearly full
  kStalls,            // steps take longer at regular intervals
  kCodeBetween,       // code runs between the steps; only a finding at the same place explains it
  kUseOfDevice,       // how well the selected device is used
};

/// A line of the program, as its file has it now.
struct SourceLine {
  std::string where;  // file:line
  std::string text;
};

/// Where samples can cost less, and how.
struct CheaperSamples {
  std::string place;  // file:line, or a package's function
  std::string text;   // of that line; may be empty
  std::string advice;
};

struct Finding {
  std::string id;
  Severity severity = Severity::kInfo;
  std::optional<double> share;             // of wall time that this cause explains
  std::optional<double> speedup_bound;     // Amdahl bound, never a promise
  std::optional<double> later_bound = {};  // of the training after its first epoch; not in the JSON
  double won_in_validation = 0;            // part of the bound: share of wall time; not in the JSON
  std::vector<std::string> evidence;       // measured facts with numbers and units
  std::optional<std::string> where;        // file:line
  std::vector<knobs::Change> fixes;
  std::vector<SourceLine> lines = {};          // the lines to change, where no fix shows them
  std::optional<CheaperSamples> cheaper = {};  // what helps besides the fixes
  std::string failure = {};                    // what ended the run, for the answer; not in the JSON
  std::optional<Verdict> verdict;     // verdict when this finding leads, if it differs from the rule's; not in the JSON
  std::string sentence = {};          // the same for Rule::sentence
  std::string waits = {};             // the same for Rule::waits, in the language of the diagnosis
  std::string proposes = {};          // the same for Rule::proposes
  std::optional<Symptom> shows = {};  // the same for Rule::shows
};

struct Abstention {
  std::string id;
  std::string missing;  // the signal that the rule needs
};

enum class Outcome { kCompleted, kFailed, kTimedOut, kStopped, kUnknown };

using account::PhaseTimes;
using account::StepShares;

struct Device {
  std::string kind = "unknown";  // cuda, rocm, cpu, unknown
  std::optional<double> busy;
  std::string how;
  bool busy_is_limit = false;             // `busy` is an upper limit; not in the JSON
  std::optional<double> sm_activity;      // share of the multiprocessors' time with work on them, when sampled
  std::optional<double> tensor_activity;  // the same for matrix units
};

inline constexpr std::string_view kRatedBeforeWindow =
    "Rates are of the steps before the profiler's window: CUPTI stays attached after it and slows the later ones.";

/// What is known of one of several nodes.
struct NodeView {
  std::string node;
  Outcome outcome = Outcome::kUnknown;
  Verdict verdict = Verdict::kUnknown;
  Device device;
  std::optional<double> samples_per_s;
  std::string problem;  // why its record cannot be read
};

/// CPUs that other processes took while threads of the run stood ready for them.
struct TakenCpus {
  double taken = 0;
  double used = 0;                      // by the run
  double allowed = 0;                   // to the run
  std::optional<std::int64_t> threads;  // with which the run loses less beside them
};

/// GPU time that the run held, in hours, and its idle part: all of the start-up and what training leaves idle.
/// Validation is not judged. Where phases are unknown, all of the time is judged by how busy the device was.
struct Cost {
  double gpu_hours = 0;
  double idle_gpu_hours = 0;
  std::optional<double> price;  // of a GPU hour, in the user's currency
};

/// A function in which the training process computes.
struct ComputePlace {
  double share = 0;          // of the compute, by stack samples
  std::string text;          // "function (file:line)"
  std::string where;         // its hottest line, file:line; may be empty
  double of_line = 0;        // share of that line alone
  bool is_backward = false;  // that line calls backward()
};

/// Floating-point operations, by the shapes in a profiler's window and the rate of the run's steps.
struct Arithmetic {
  double flops_per_step = 0;
  double flops_per_s = 0;
  std::optional<double> utilisation;  // share of the device's peak by its data sheet: MFU
};

struct Diagnosis {
  Outcome outcome = Outcome::kUnknown;
  Verdict verdict = Verdict::kUnknown;
  Device device;
  std::optional<double> samples_per_s;
  std::optional<double> steps_per_s;
  bool rated_before_window = false;   // rates are of the steps before a profiler's window
  std::optional<double> others_cpus;  // CPUs used by other processes, when they make rates imprecise; not in the JSON
  std::optional<TakenCpus> taken;     // when so many that what was measured is not the run's own; not in the JSON
  bool underused = false;             // the device is less busy than in a healthy run; not in the JSON
  bool of_window = false;             // shares are of the window of a trace, not of a run; not in the JSON
  /// The largest of the causes for which the device idles in a trace alone, if it has some; not in the JSON.
  std::optional<double> largest_idle;
  PhaseTimes time;
  std::optional<Cost> cost;  // of a run on GPUs
  std::optional<Arithmetic> arithmetic;
  std::optional<StepShares> step;
  std::vector<account::RankTime> ranks;  // of a job with several
  /// Share of a step in which the rank that the shares are of waits for gradients of others; part of step->compute.
  std::optional<double> exchange;
  std::optional<std::int64_t> few_steps;  // the run finished some, but fewer than these; not in the JSON
  std::string input_stated;               // Signals::input_stated; not in the JSON
  std::optional<double> tokens_per_s;     // not in the JSON, as the next
  bool tokens_per_device = false;
  std::string idle_gpus;                 // Signals::idle_gpus; not in the JSON
  std::vector<ComputePlace> compute_in;  // of a run on CPUs, the largest first; not in the JSON
  std::vector<Finding> findings;
  std::vector<Abstention> abstained;
  std::string blind;                 // Signals::blind; not in the JSON
  std::vector<std::string> command;  // the recorded command; not in the JSON
  knobs::RunOptions run_options;     // Signals::run_options; not in the JSON
  knobs::OmittedOptions omitted;     // Signals::omitted; not in the JSON
  std::string node;                  // the decisive one of several nodes; not in the JSON
  std::vector<NodeView> nodes;       // all nodes, by name; not in the JSON
  std::vector<std::string> folded;   // ids whose cause a more specific finding explains; not in the JSON
};

std::string to_string(Severity severity);
std::string to_string(Outcome outcome);
std::string to_string(Verdict verdict);

/// The JSON document unidle.diagnosis/1, keys in the documented order.
nlohmann::ordered_json to_json(const Diagnosis& diagnosis);
/// The same for programs that show it to people: with the text, its first sentence, and titles in `language`.
nlohmann::ordered_json to_json_with_texts(const Diagnosis& diagnosis, Language language);
/// The answer in one sentence with its numbers: what the device waits for, what to change, and the most it can gain.
std::string answer(const Diagnosis& diagnosis, Language language = Language::kEnglish);
/// The answer without what to do about it, and without caution().
std::string problem(const Diagnosis& diagnosis, Language language = Language::kEnglish);
/// What limits the answer: other processes took the CPUs of the run. Empty for other runs.
std::string caution(const Diagnosis& diagnosis, Language language = Language::kEnglish);
/// What a longer run may gain from the finding, in training, where that differs from the bound of this run.
std::optional<double> bound_of_longer_run(const Diagnosis& diagnosis, const Finding& finding);
/// The title of a finding, a few words.
std::string title(const Finding& finding, Language language = Language::kEnglish);
/// What to do about a finding without fixes, in words; "" for an unknown rule.
std::string proposal(const Finding& finding, Language language = Language::kEnglish);
/// "num_workers=2 in DataLoader(...)", without the place.
std::string in_words(const knobs::InProgram& change, Language language);
/// Text for a terminal of `width` columns: the answer, at most five findings with evidence and the exact change, and
/// how many checks found nothing. `verbose`: all findings, what is fine, and what could not be seen. Findings keep the
/// language in which they were diagnosed.
std::string to_text(const Diagnosis& diagnosis, int width, bool colour, Language language = Language::kEnglish,
                    bool verbose = false);

}  // namespace unidle::diagnose
