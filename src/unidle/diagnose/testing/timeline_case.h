// A small language for synthetic timelines: runs in which a rule must fire, and near misses in which it must not.
//
// A file lists the events of a run:
//
//     # Decoding in the training thread.
//     let wait = 60ms
//     let workers = 0
//     host cpus=4 online=8
//     setting loader.workers $workers at train.yaml:6
//     startup 2s
//     steps 100 samples=32 input=$wait forward=15ms backward=15ms optimizer=10ms
//     series tree.cpu 1.0
//     expect loader-no-workers top share=0.5..0.6 critical
//     near wait = 8ms
//     near workers = 2
//     missing workers
//
// Directives, in the order of time:
//   let NAME = VALUE             defines $NAME for the lines below. When the value is -, a line with $NAME is left out,
//                                and so is a word KEY=$NAME.
//   host KEY=VALUE ...           facts of the host: cpus (allowed), before_mask, online, memory=8GB,
//                                flags=avx2,avx512_bf16
//   gpu KEY=VALUE ...            one GPU: memory, capability, width, generation, clock, power (of the board, W)
//   setting KNOB VALUE [at FILE:LINE] [effective VALUE] [called FILE:LINE] [variable NAME]
//   note JSON                    a note of the training process; `note@PID JSON` of another one
//   startup|validate|checkpoint|pause TIME
//   steps COUNT KEY=TIME ...     input, transfer, forward, backward, sync, optimizer, other; samples=N, micro=N,
//                                syncs=N, loss=VALUE (or nan); `every N KEY=TIME` at the end replaces a part in
//                                every Nth step; processes=N: so many processes make the same steps
//   repeat N / end               repeats the lines between N times
//   work THREADS samples=N each=TIME  sample work of loader threads, per second, over the run so far
//   series NAME VALUE [to VALUE] [SUBJECT]  a series over the whole run, constant or growing evenly
//   output TEXT                  a line of the command's output; \n starts another
//   exit CODE [SIGNAL], outcome WORD
//   expect ID [top] [first] [share=LOW..HIGH] [critical|warning|info] [verdict=V] [folds=ID] [without=ID]
//   near NAME = VALUE [, ...]    the same run with other values: the first expected id may not be reported above info
//   missing NAME                 the same run without that value: the first expected rule must abstain
//   yes-or-no                    the first expected rule reads a yes-or-no fact, which has no intermediate values
//   healthy                      no finding above info, verdict healthy
//   answers FILE                 FILE has the expectations for a separate test
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::testing {

struct Expectation {
  std::string id;
  bool top = false;  // leads all findings
  std::optional<double> share_low;
  std::optional<double> share_high;
  std::optional<std::string> severity;
  std::optional<std::string> verdict;
  std::vector<std::string> folds;    // ids that it folds
  std::vector<std::string> without;  // ids that must not be reported above info
};

/// The same run with some values replaced.
struct Variant {
  std::string name;
  std::map<std::string, std::string> values;
  bool missing = false;  // the rule must abstain; otherwise it must be silent
};

struct TimelineCase {
  std::filesystem::path file;
  std::vector<std::string> lines;  // the run, without expectations
  std::map<std::string, std::string> values;
  std::vector<Expectation> expectations;
  std::vector<Variant> variants;
  bool healthy = false;
  bool yes_or_no = false;
};

/// Throws kInput with subject "file:line" when a line is invalid.
TimelineCase read_timeline(const std::filesystem::path& file);

/// Details that must not affect a diagnosis.
struct RecordVariation {
  std::int64_t process = 42;           // pid of the training process
  std::int64_t start_ns = 1000000000;  // of the clock
  bool reversed = false;               // settings and notes are written in reverse order
};

/// Writes the run as a record into `folder`. Throws kInput with subject "file:line".
void write_record(const TimelineCase& timeline, const std::map<std::string, std::string>& replaced,
                  const std::filesystem::path& folder, const RecordVariation& disguise = {});

/// What is wrong with the diagnosis of the run, one line each; empty when it is as expected.
std::vector<std::string> judge(const TimelineCase& timeline, const Diagnosis& diagnosis);
std::vector<std::string> judge(const TimelineCase& timeline, const Variant& variant, const Diagnosis& diagnosis);

/// All *.timeline files of a folder, by name.
std::vector<std::filesystem::path> timelines_in(const std::filesystem::path& folder);

}  // namespace unidle::diagnose::testing
