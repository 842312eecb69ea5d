#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_resume_skips_batches(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.loader || signals.wall_s <= 0) {
    return Missing{context.say("what was read from the loader before training began")};
  }
  if (!signals.skipped) {
    return Nothing{};
  }
  const double share = signals.skipped->seconds / signals.wall_s;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::place(signals.loader->where);
  finding.evidence.push_back(context.say("{} batches were read and not trained before the first step, which took {}",
                                         signals.skipped->count, format_seconds(signals.skipped->seconds)));
  return finding;
}

}  // namespace

const Rule& resume_skips_batches() {
  static const Rule kRule{
      .id = "resume-skips-batches",
      .verdict = Verdict::kOverheadBound,
      .title = "Batches are read and not trained",
      .topic = "batches that are skipped",
      .explanation =
          "A run that goes on from a checkpoint often reads the data forward to its place: every sample before that is "
          "made and thrown away, in every resumed run. A sampler or loader that starts at its place makes none of "
          "them.",
      .thresholds =
          "Batches that the training loader gave before the first step and that were not trained: from warning_share "
          "(10 %) of the wall time; critical from critical_share (30 %).",
      .needs = "the batches of the training loader before the first step",
      .proposes =
          "start the loader at its place by skipping indices in the sampler, or use a loader whose state can be saved "
          "(torchdata's StatefulDataLoader, unidle.data.Loader)",
      .evaluate = evaluate_resume_skips_batches,
      .counts = Counts::kOther,
      .sentence = "Your run spends {share} of its time reading batches that it does not train on",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
