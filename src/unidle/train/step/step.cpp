#include "unidle/train/step/step.h"

#include <ATen/record_function.h>

#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/log.h"

namespace unidle::train {

namespace {

/// Fetches a batch, under the name that profiler windows show.
data::Batch fetch(Input& input) {
  RECORD_USER_SCOPE("enumerate(DataLoader)#unidle");
  return input.fetch();
}

/// The reason why steps of this configuration cannot be captured; empty when they can.
std::string against_graphs(const Config& config, const Ranks* ranks, const GraphCapture* capture) {
  if (const std::string& mode = config.text("compile.mode"); mode != "graph" && mode != "fused") {
    return "the configuration does not ask for it";
  }
  if (capture == nullptr) {
    return "the device has no graphs";
  }
  if (ranks != nullptr) {
    return "the run has several processes";
  }
  if (!config.flag("optimizer.fused")) {
    return "it needs optimizer.fused: true, which reads its rate from the device";
  }
  return "";
}

/// The reason why steps of this configuration are not fused; empty when they are.
std::string against_fusing(const Config& config, const Ranks* ranks) {
  if (config.text("compile.mode") != "fused") {
    return "the configuration does not ask for it";
  }
  if (ranks != nullptr) {
    return "the run has several processes";
  }
  if (config.flag("grad.checkpointing")) {
    return "grad.checkpointing computes blocks twice, which a package does not";
  }
  if (config.flag("train.deterministic")) {
    return "train.deterministic wants operations that give the same bits each time";
  }
  return "";
}

}  // namespace

Step::Step(Workload& workload, const Config& config, at::Device device, Events& events, std::int64_t total_steps,
           Ranks* ranks, GraphCapture* capture, const std::atomic<bool>* stop)
    : workload_(workload),
      events_(events),
      ranks_(ranks),
      clip_norm_(config.real("grad.clip_norm")),
      zero_to_none_(config.flag("optimizer.zero_to_none")),
      precision_(config.text("precision.amp"), device, config.text("train.on_nan") == "skip"),
      optimizer_(make_optimizer(config, workload.model().parameters())),
      schedule_(config, total_steps),
      averaged_(workload.model(), config.real("ema.decay")),
      fused_(workload, precision_, device, against_fusing(config, ranks), stop),
      graphs_(capture, against_graphs(config, ranks, capture), device, graph_work()),
      timer_(events, device) {
  if (ranks_ != nullptr) {
    ranks_->join_gradients(optimizer_->parameters());
  }
  if (graphs_.on()) {
    optimizer_->keep_rate_on_device();
  } else if (config.text("compile.mode") == "graph") {
    spdlog::warn("compile.mode: graph is off: {}", graphs_.reason());
  }
  if (config.text("compile.mode") == "fused" && !fused_.on()) {
    spdlog::warn("compile.mode: fused is off: {}", fused_.reason());
  }
}

StepGraphs::Work Step::graph_work() {
  return {.step =
              [this](const StepFields& fields) {
                return learn(static_cast<std::int64_t>(fields.size()),
                             [&](std::int64_t i) { return input_->fields(fields[static_cast<std::size_t>(i)]); });
              },
          .drop_gradients = [this] { drop_gradients(); },
          .weights = [this] { return optimizer_->parameters(); },
          .others =
              [this] {
                std::vector<at::Tensor> all = workload_.model().buffers();
                for (const auto& more : {optimizer_->state(), precision_.changing(), averaged_.averages()}) {
                  all.insert(all.end(), more.begin(), more.end());
                }
                return all;
              }};
}

at::Tensor Step::run(Input& input, std::int64_t accumulation, std::int64_t number) {
  number_ = static_cast<std::uint64_t>(number);
  updating_ = false;
  input_ = &input;
  optimizer_->set_rate(schedule_.rate(number));
  const at::Tensor loss = graphs_.on() ? run_captured(input, accumulation) : run_as_it_is(input, accumulation);
  timer_.end();
  input.consumed();
  return loss;
}

at::Tensor Step::run_as_it_is(Input& input, std::int64_t count) {
  return learn(count, [&](std::int64_t i) {
    if (i > 0) {
      input.consumed();
    }
    const std::vector<at::Tensor>& moved = next_batch(input);
    if (i == 0) {
      timer_.begin(number_);
    }
    return input.fields(moved);
  });
}

at::Tensor Step::run_captured(Input& input, std::int64_t count) {
  moved_.resize(static_cast<std::size_t>(count));
  for (std::vector<at::Tensor>& batch : moved_) {
    batch = next_batch(input);
  }
  const std::uint64_t start = Events::now_ns();
  const std::int64_t replays = graphs_.replays();
  const std::int64_t captures = graphs_.captures();
  timer_.begin(number_);
  const at::Tensor loss = graphs_.run(moved_);
  if (graphs_.captures() > captures) {
    timer_.drop();
  }
  if (graphs_.replays() > replays) {
    events_.part(UNIDLE_STEP_FORWARD, start);  // includes all later parts, which the host queued with it
  }
  return loss;
}

template <typename FieldsOf>
at::Tensor Step::learn(std::int64_t count, const FieldsOf& fields_of) {
  updating_ = false;
  at::Tensor loss;
  for (std::int64_t i = 0; i < count; ++i) {
    const at::Tensor part = learn_from(fields_of(i), count, i + 1 == count);
    loss = loss.defined() ? loss + part : part;
  }
  updating_ = true;
  update();
  return loss;
}

void Step::drop_gradients() { clear_gradients(optimizer_->parameters(), /*to_none=*/true); }

const std::vector<at::Tensor>& Step::next_batch(Input& input) {
  std::uint64_t start = Events::now_ns();
  data::Batch batch = fetch(input);
  input_wait_ns_ += Events::now_ns() - start;
  events_.part(UNIDLE_STEP_INPUT, start);
  events_.samples(batch, number_);

  start = Events::now_ns();
  const std::vector<at::Tensor>& moved = input.move(std::move(batch));
  events_.part(UNIDLE_STEP_TRANSFER, start);
  start = Events::now_ns();
  if (input.settle()) {  // the device is behind
    events_.part(UNIDLE_STEP_SYNC, start);
  }
  return moved;
}

at::Tensor Step::learn_without_graph(const std::vector<at::Tensor>& fields, std::int64_t count) {
  if (fused_.on()) {
    const std::int64_t prepared = fused_.prepared();
    at::Tensor loss = fused_.learn(fields, 1 / static_cast<double>(count));
    if (fused_.prepared() > prepared) {
      timer_.drop();  // a compiler ran
    }
    if (loss.defined()) {
      return loss;
    }
  }
  if (ranks_ != nullptr || precision_.scaling()) {  // these follow the graph's pass, or change where it begins
    return {};
  }
  const AutocastGuard autocast = precision_.autocast();
  const at::Tensor loss = workload_.learn(fields, 1 / static_cast<double>(count));
  return loss.defined() && count > 1 ? loss / static_cast<double>(count) : loss;
}

at::Tensor Step::learn_from(const std::vector<at::Tensor>& fields, std::int64_t count, bool last) {
  std::uint64_t start = Events::now_ns();
  at::Tensor loss = learn_without_graph(fields, count);
  if (loss.defined()) {
    events_.part(UNIDLE_STEP_FORWARD, start);  // forward and backward together
    return loss;
  }
  {
    const AutocastGuard autocast = precision_.autocast();
    loss = workload_.loss(fields);
  }
  if (!loss_is_checked_) {
    require_loss(loss);
  }
  if (count > 1) {
    loss = loss / static_cast<double>(count);
  }
  events_.part(UNIDLE_STEP_FORWARD, start);

  start = Events::now_ns();
  const at::Tensor scaled = precision_.scale(loss);
  if (ranks_ != nullptr && last) {
    ranks_->before_backward(scaled);
  }
  scaled.backward();
  if (ranks_ != nullptr && last && !all_have_gradients_) {
    require_gradients();
  }
  events_.part(UNIDLE_STEP_BACKWARD, start);
  return loss.detach();
}

/// Runs once: a workload's error shows in its first step.
void Step::require_loss(const at::Tensor& loss) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kInput, "the workload's loss",
                "expected one number that depends on the parameters, found " + what);
  };
  if (!loss.defined()) {
    refuse("none");
  }
  if (loss.numel() != 1) {
    refuse(fmt::format("a tensor of {}", c10::str(loss.sizes())));
  }
  if (!loss.requires_grad()) {
    refuse("one without a gradient");
  }
  loss_is_checked_ = true;
}

/// With several processes the next pass would wait forever for a missing gradient.
void Step::require_gradients() {
  for (const auto& item : workload_.model().named_parameters()) {
    if (item.value().requires_grad() && !item.value().grad().defined()) {
      throw Error(ErrorCode::kInput, "parameter " + item.key(),
                  "gets no gradient from the loss, and several processes need one of each",
                  "remove it from the model, call requires_grad_(false) on it, or train with one process");
    }
  }
  all_have_gradients_ = true;
}

void Step::update() {
  RECORD_USER_SCOPE("Optimizer.step#unidle");
  const std::uint64_t start = Events::now_ns();
  if (!graphs_.on()) {  // the device may not be queried during a capture
    timer_.before_update();
  }
  if (precision_.checks()) {
    precision_.unscale(gradients_of(optimizer_->parameters()));
  }
  if (clip_norm_ > 0) {
    clip_gradients(gradients_of(optimizer_->parameters()), clip_norm_);
  }
  optimizer_->step(precision_.found_inf());
  precision_.update();
  averaged_.update();
  clear_gradients(optimizer_->parameters(), zero_to_none_);
  events_.part(UNIDLE_STEP_OPTIMIZER, start);
}

}  // namespace unidle::train
