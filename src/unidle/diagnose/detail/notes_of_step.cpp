#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "unidle/diagnose/detail/notes.h"

namespace unidle::diagnose::detail {

namespace {

void read_syncs(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kSync>([&](const auto& note) {
    if (!notes.of_training(note)) {
      return;
    }
    SyncCall call{note.text("call"), note.text("where"), note.whole("count").value_or(0),
                  note.whole("in_step").value_or(0), note.number("seconds").value_or(0)};
    if (!signals.syncs) {
      signals.syncs.emplace();
    }
    signals.syncs->push_back(std::move(call));
  });
}

void read_transfers(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kTransfer>([&](const auto& note) {
    if (!notes.of_training(note)) {
      return;  // other ranks' times belong to their own steps
    }
    TransferFacts facts = signals.transfer.value_or(TransferFacts{});
    const double bytes = note.number("pinned_bytes").value_or(0) + note.number("pageable_bytes").value_or(0);
    if (facts.where.empty() || bytes > facts.pinned_bytes + facts.pageable_bytes) {
      facts.where = note.text("where");
    }
    facts.pinned_bytes += note.number("pinned_bytes").value_or(0);
    facts.pageable_bytes += note.number("pageable_bytes").value_or(0);
    add_to(facts.blocking, note.whole("blocking_count"));
    add_to(facts.nonblocking, note.whole("nonblocking_count"));
    add_to(facts.in_line_bytes, note.number("in_line_bytes"));
    signals.transfer = facts;
  });
}

void read_outputs(const Notes& notes, Signals& signals) {
  double longest_s = 0;
  notes.each<record::NoteType::kCheckpoint>([&](const auto& note) {
    const double seconds = note.number("seconds").value_or(0);
    if (notes.of_training(note) && seconds > longest_s) {
      longest_s = seconds;
      signals.checkpoint_where = note.text("where");
    }
  });
  notes.each<record::NoteType::kLogging>([&](const auto& note) {
    const double seconds = note.number("seconds").value_or(0);
    if (!signals.logging || seconds > signals.logging->seconds) {  // ranks log at the same time
      LoggingFacts& facts = signals.logging.emplace();
      facts.where = note.text("where");
      facts.where_calls = note.whole("where_calls");
      facts.seconds = seconds;
      facts.calls = note.whole("calls").value_or(0);
    }
  });
}

void read_computing(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kOptimizer>([&](const auto& note) {
    signals.optimizer =
        OptimizerFacts{note.text("class"), note.flag("fused"), note.flag("foreach"), note.whole("tensors"),
                       note.text("where"), note.text("also"),  note.flag("fusable"), note.number("part")};
  });
  notes.each<record::NoteType::kCompile>([&](const auto& note) {
    CompileFacts facts = signals.compile.value_or(CompileFacts{});
    facts.compiled = facts.compiled || note.flag("compiled").value_or(false);
    facts.recompilations += note.whole("recompilations").value_or(0);
    facts.seconds += note.number("seconds").value_or(0);
    facts.reason = facts.reason.empty() ? note.text("reason") : facts.reason;
    signals.compile = std::move(facts);
  });
  notes.each<record::NoteType::kPadding>([&](const auto& note) {
    PaddingFacts facts = signals.padding.value_or(PaddingFacts{});
    facts.real += note.number("real").value_or(0);
    facts.padded += note.number("padded").value_or(0);
    if (const auto longest = note.number("longest")) {
      facts.longest = facts.longest.value_or(0) + *longest;
    }
    facts.cuts = facts.cuts || note.flag("cuts").value_or(false);
    facts.where = facts.where.empty() ? note.text("where") : facts.where;
    signals.padding = std::move(facts);
  });
  notes.each<record::NoteType::kPageFaults>([&](const auto& note) {
    const PageFaultFacts facts{note.number("faults").value_or(0), note.number("system_seconds").value_or(0),
                               note.number("cpu_seconds").value_or(0), note.number("seconds").value_or(0)};
    if (notes.of_training(note) && facts.faults >= 0 && facts.system_s >= 0 && facts.cpu_s > 0 && facts.seconds > 0) {
      signals.page_faults = facts;
    }
  });
  notes.each<record::NoteType::kShapes>([&](const auto& note) { signals.batch_shapes = note.whole("distinct"); });
}

void read_over_time(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kGrowing>([&](const auto& note) {
    if (notes.of_training(note)) {
      signals.growing.push_back({note.text("name"), note.text("where"), note.number("per_step").value_or(0),
                                 note.number("bytes_per_step").value_or(0), note.flag("graph").value_or(false)});
    }
  });
  std::ranges::stable_sort(signals.growing, std::greater<>(), &GrowingFacts::bytes_per_step);
  notes.each<record::NoteType::kSkipped>([&](const auto& note) {
    signals.skipped = SkippedBatches{note.whole("batches").value_or(0), note.number("seconds").value_or(0)};
  });
  notes.each<record::NoteType::kValidation>([&](const auto& note) {
    signals.validation_where = note.flag("optional").value_or(false) ? note.text("where") : std::string();
    signals.validation_kept = note.text("why");
  });
  notes.each<record::NoteType::kValidationCall>([&](const auto& note) {
    if (notes.of_training(note)) {
      signals.validation_called = note.text("where");
    }
  });
  notes.each<record::NoteType::kCalled>(
      [&](const auto& note) { signals.called.emplace(note.text("where"), note.text("function")); });
}

/// One data set that takes a setting is enough, where another one refuses it.
void read_refused(const Notes& notes, Signals& signals) {
  std::set<std::string> taken;
  notes.each<record::NoteType::kApply>([&](const auto& note) {
    const std::string knob = note.text("knob");
    const std::string status = note.text("status");
    if (status == "taken") {
      taken.insert(knob);
    } else if (status == "refused" || status == "refused-in-part") {
      signals.refused[knob] = note.text("why");
    }
  });
  std::erase_if(signals.refused, [&](const auto& refused) { return taken.contains(refused.first); });
}

void read_ranks(const Notes& notes, Signals& signals) {
  notes.each<record::NoteType::kParallel>([&](const auto& note) {
    if (const std::string kind = note.text("kind"); !kind.empty()) {
      signals.parallel = kind;
    }
    if (note.number("gradient_bytes") && notes.of_training(note)) {
      signals.exchange = ExchangeFacts{note.text("backend"), note.flag("find_unused"), note.flag("static_graph"),
                                       note.text("hook"), note.number("gradient_bytes")};
    }
  });
  notes.each<record::NoteType::kRank>([&](const auto& note) {
    if (signals.exchange && notes.of_training(note)) {
      signals.exchange->per_step = note.number("exchanges_per_step");
    }
  });
}

}  // namespace

void read_step(const Notes& notes, Signals& signals) {
  read_refused(notes, signals);
  read_syncs(notes, signals);
  read_transfers(notes, signals);
  read_outputs(notes, signals);
  read_computing(notes, signals);
  read_over_time(notes, signals);
  read_ranks(notes, signals);
}

}  // namespace unidle::diagnose::detail
