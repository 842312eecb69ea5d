#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_cudnn_not_tuned(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (context.on_cpu) {
    return Missing{"cuDNN's choices (the device is a CPU)"};
  }
  if (!signals.model_has_convolutions) {
    return Missing{"whether the model has convolutions"};
  }
  if (!*signals.model_has_convolutions) {
    return Nothing{};
  }
  const auto benchmark = detail::effective_on(context, "cudnn.benchmark");
  if (!benchmark) {
    return Missing{"whether cuDNN may try its kernels (effective cudnn.benchmark)"};
  }
  const bool deterministic = detail::effective_on(context, "cudnn.deterministic").value_or(false);
  const bool fixed = signals.batch_shapes.value_or(1) <= policy.fixed_shapes;
  if (!context.computing) {
    return Missing{context.no_computing};
  }
  if ((!deterministic && (*benchmark || !fixed)) || *context.computing < policy.critical_share) {
    return Nothing{};
  }
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.where = detail::where_set(context, deterministic ? "cudnn.deterministic" : "cudnn.benchmark");
  finding.evidence = {
      deterministic ? context.say("cudnn.deterministic is on, which rules out many kernels")
                    : context.say("batches have fixed shapes and cudnn.benchmark is off"),
      context.say("forward and backward take {} of the wall time; how much faster other kernels are was not measured",
                  format_share(*context.computing)),
  };
  finding.fixes.push_back(detail::make_fix(
      context, "cudnn.benchmark", true,
      "torch.backends.cudnn.benchmark = True: try the kernels once for each shape and keep the fastest"));
  return finding;
}

}  // namespace

const Rule& cudnn_not_tuned() {
  static const Rule kRule{
      .id = "cudnn-not-tuned",
      .verdict = Verdict::kComputeBound,
      .title = "cuDNN may not choose its fastest kernels",
      .topic = "cuDNN choice",
      .explanation =
          "cuDNN has several kernels for each convolution. With benchmark on it tries them once for every shape and "
          "keeps the fastest; without, it guesses. For shapes that change all the time trying costs more than it "
          "gains; deterministic mode rules fast kernels out.",
      .thresholds =
          "Compute from critical_share (30 %) of the wall time, at most fixed_shapes (4) batch shapes, benchmark off "
          "or deterministic on. A warning without a share.",
      .needs =
          "whether the model has convolutions, the effective cudnn.benchmark and cudnn.deterministic, batch shapes, "
          "step times",
      .proposes = "cudnn.benchmark",
      .evaluate = evaluate_cudnn_not_tuned,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} runs convolutions with kernels that were not tried against others",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
