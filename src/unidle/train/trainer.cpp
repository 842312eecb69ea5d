#include "unidle/train/trainer.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/train/device.h"
#include "unidle/train/tracing.h"

namespace unidle::train {

namespace {

constexpr const char* kCheckpointName = "checkpoint.pt";

double elapsed_s(std::uint64_t from_ns, std::uint64_t to_ns) {
  return seconds(static_cast<std::int64_t>(to_ns - from_ns));
}

/// What a model is made of, as far as its weights show it.
ModelFacts facts_of(const torch::nn::Module& model) {
  ModelFacts facts;
  for (const at::Tensor& parameter : model.parameters()) {
    facts.parameters += parameter.numel();
    // [out, in, h, w]; one input channel for many outputs is a convolution with a group a channel.
    const bool kernel = parameter.dim() == 4;
    facts.convolutions |= kernel;
    facts.depthwise |= kernel && parameter.size(1) == 1 && parameter.size(0) > 1 && parameter.size(2) > 1;
  }
  return facts;
}

}  // namespace

Trainer::Trainer(Workload& workload, const Config& config, at::Device device, Events& events, TrainOptions options)
    : workload_(workload),
      config_(config),
      device_(device),
      events_(events),
      options_(std::move(options)),
      batch_(config.integer("batch.size")),
      accumulation_(config.integer("batch.accumulation")),
      total_(std::max<std::int64_t>(1, config.integer("train.samples") / samples_per_step()) * samples_per_step()),
      precision_(config.text("precision.amp"), device),
      optimizer_(workload.model().parameters(),
                 {.weight_decay = config.real("optimizer.weight_decay"), .fused = config.flag("optimizer.fused")}),
      losses_(config.integer("metrics.interval")) {
  if (options_.resume) {
    const std::filesystem::path& from = *options_.resume;
    position_ = load_checkpoint(std::filesystem::is_directory(from) ? from / kCheckpointName : from, workload_.model(),
                                optimizer_, precision_);
  }
  first_sample_ = position_.samples;
  read_up_to_ = position_.samples;
  loader_options_ = {.batch = batch_,
                     .workers = static_cast<int>(config.integer("loader.workers")),
                     .prefetch = static_cast<int>(config.integer("loader.prefetch_factor")),
                     .seed = static_cast<std::uint64_t>(config.integer("seed")),
                     .start_sample = position_.samples};
  if (config.flag("loader.pin_memory") && !device_.is_cpu()) {
    pinned_ = std::make_unique<PinnedAllocator>();
    loader_options_.allocator = pinned_.get();
  }
  loader_ = std::make_unique<data::Loader>(workload_.source(), loader_options_);
  transfer_ = std::make_unique<Transfer>(workload_.source(), workload_.field_uses(), device_,
                                         config.flag("layout.channels_last"), config.flag("transfer.non_blocking"));
}

Summary Trainer::run() {
  events_.startup();
  Effective noted = effective();
  if (device_.is_cpu()) {
    // There is no transfer on a CPU: that these two are off there is no setting ignored.
    noted.erase("loader.pin_memory");
    noted.erase("transfer.non_blocking");
  }
  events_.settings(config_, noted);
  events_.model(facts_of(workload_.model()));
  events_.data(workload_.source().items() * workload_.source().samples_per_item());
  start_ns_ = Events::now_ns();
  warm_ns_ = start_ns_;
  bool stopped = false;
  Tracing tracing(events_, !device_.is_cpu(), position_.steps, total_ / samples_per_step());
  while (position_.samples < total_ && !stopped) {
    const std::int64_t before = position_.samples;
    step();
    const std::uint64_t traced = Events::now_ns();
    tracing.step_over(position_.steps);
    aside_ns_ += Events::now_ns() - traced;
    start_clock_when_warm();
    validate_if_due(before);
    save_if_due(before);
    if (options_.on_progress) {
      options_.on_progress(position_.samples, total_, losses_.last());
    }
    stopped = stopping() && position_.samples < total_;
  }
  read_losses();
  loop_end_ns_ = Events::now_ns();
  if (!stopped) {
    validate();
  }
  if (config_.integer("checkpoint.interval") > 0) {
    save();
  }
  end_ns_ = Events::now_ns();
  return summarise(stopped);
}

void Trainer::step() {
  const std::uint64_t start = Events::now_ns();
  at::Tensor loss;
  for (std::int64_t micro = 0; micro < accumulation_; ++micro) {
    const at::Tensor part = micro_batch();
    loss = loss.defined() ? loss + part : part;
  }
  update();
  losses_.add(loss);
  position_.samples += samples_per_step();
  if (losses_.due()) {
    read_losses();
  }
  events_.span(UNIDLE_EVENT_STEP, start, static_cast<std::uint64_t>(position_.steps),
               static_cast<std::uint64_t>(samples_per_step()), static_cast<std::uint64_t>(accumulation_));
  ++position_.steps;
}

/// Under the name that a profiler window has it by.
data::Batch Trainer::next_batch() {
  RECORD_USER_SCOPE("enumerate(DataLoader)#unidle");
  return loader_->next();
}

at::Tensor Trainer::micro_batch() {
  const auto number = static_cast<std::uint64_t>(position_.steps);
  std::uint64_t start = Events::now_ns();
  const bool ready = loader_->ready();
  data::Batch batch = next_batch();
  events_.span(UNIDLE_EVENT_INPUT, start, number, ready ? 1 : 0);
  events_.samples(batch, number);

  start = Events::now_ns();
  const std::vector<at::Tensor> fields = transfer_->move(std::move(batch));
  const bool asynchronous = config_.flag("transfer.non_blocking") && !device_.is_cpu();
  events_.span(UNIDLE_EVENT_TRANSFER, start, number, transfer_->bytes(),
               (pinned_ != nullptr ? 1U : 0U) | (asynchronous ? 0U : 2U));

  start = Events::now_ns();
  at::Tensor loss;
  {
    const AutocastGuard autocast = precision_.autocast();
    loss = workload_.loss(fields);
  }
  if (accumulation_ > 1) {
    loss = loss / static_cast<double>(accumulation_);
  }
  events_.span(UNIDLE_EVENT_FORWARD, start, number);

  start = Events::now_ns();
  precision_.scale(loss).backward();
  events_.span(UNIDLE_EVENT_BACKWARD, start, number);
  return loss.detach();
}

void Trainer::update() {
  RECORD_USER_SCOPE("Optimizer.step#AdamW");
  const std::uint64_t start = Events::now_ns();
  const double limit = config_.real("grad.clip_norm");
  if (precision_.scaling()) {
    precision_.unscale(gradients_of(optimizer_.parameters()));
  }
  if (limit > 0) {
    clip_gradients(gradients_of(optimizer_.parameters()), limit);
  }
  const double rate =
      scheduled_rate(config_.real("optimizer.lr"), config_.integer("optimizer.warmup_steps"), position_.steps);
  optimizer_.step(rate, precision_.found_inf());
  precision_.update();
  clear_gradients(optimizer_.parameters(), config_.flag("optimizer.zero_to_none"));
  events_.span(UNIDLE_EVENT_OPTIMIZER, start, static_cast<std::uint64_t>(position_.steps));
}

void Trainer::read_losses() {
  const std::uint64_t start = Events::now_ns();
  const std::vector<double> values = losses_.read();
  if (values.empty()) {
    return;
  }
  events_.span(UNIDLE_EVENT_SYNC, start, static_cast<std::uint64_t>(position_.steps));
  for (const double value : values) {
    events_.loss(static_cast<std::uint64_t>(read_up_to_ / samples_per_step()), static_cast<std::uint64_t>(read_up_to_),
                 value);
    read_up_to_ += samples_per_step();
  }
}

void Trainer::start_clock_when_warm() {
  if (warm_samples_ == 0 && position_.samples - first_sample_ >= config_.integer("train.warmup_samples")) {
    synchronize(device_);
    warm_ns_ = Events::now_ns();
    warm_samples_ = position_.samples - first_sample_;
    aside_ns_ = 0;
  }
}

void Trainer::validate_if_due(std::int64_t samples_before) {
  const std::int64_t interval = config_.integer("validation.interval") * loader_->samples_per_epoch();
  // The last one comes after the loop.
  if (interval > 0 && position_.samples < total_ && position_.samples / interval > samples_before / interval) {
    const std::uint64_t start = Events::now_ns();
    validate();
    aside_ns_ += Events::now_ns() - start;
  }
}

void Trainer::validate() {
  const std::uint64_t start = Events::now_ns();
  {
    const AutocastGuard autocast = precision_.autocast();
    metric_ = workload_.validate();
  }
  const auto step = static_cast<std::uint64_t>(position_.steps);
  events_.span(UNIDLE_EVENT_VALIDATE, start, step, static_cast<std::uint64_t>(workload_.validation_samples()));
  for (const auto& [name, value] : metric_) {
    events_.metric(name, value, step, static_cast<std::uint64_t>(position_.samples));
  }
}

void Trainer::save_if_due(std::int64_t samples_before) {
  const std::int64_t interval = config_.integer("checkpoint.interval");
  if (interval > 0 && position_.samples < total_ && position_.samples / interval > samples_before / interval) {
    const std::uint64_t start = Events::now_ns();
    save();
    aside_ns_ += Events::now_ns() - start;
  }
}

void Trainer::save() {
  const std::uint64_t start = Events::now_ns();
  save_checkpoint(checkpoint_folder(config_) / kCheckpointName, workload_.model(), optimizer_, precision_, position_);
  events_.span(UNIDLE_EVENT_CHECKPOINT, start, static_cast<std::uint64_t>(position_.steps));
}

Summary Trainer::summarise(bool stopped) const {
  Summary summary;
  summary.workload = config_.text("workload");
  summary.device = device_.is_cpu() ? "cpu" : "cuda";
  summary.config = config_.name();
  summary.samples = position_.samples - first_sample_;
  summary.steps = summary.samples / samples_per_step();
  summary.seconds = elapsed_s(start_ns_, end_ns_);
  // A run shorter than its warm-up has only its whole to go by.
  const bool warm = summary.samples > warm_samples_;
  const auto counted = static_cast<double>(summary.samples - (warm ? warm_samples_ : 0));
  const std::uint64_t from = warm ? warm_ns_ : start_ns_;
  const double loop = elapsed_s(from + aside_ns_, loop_end_ns_);
  summary.samples_per_s = loop > 0 ? counted / loop : 0;
  summary.end_to_end_samples_per_s = summary.seconds > 0 ? counted / elapsed_s(from, end_ns_) : 0;
  summary.loss_first = losses_.first();
  summary.loss_last = losses_.last();
  summary.metric = metric_;
  summary.effective = effective();
  summary.stopped = stopped;
  return summary;
}

}  // namespace unidle::train
