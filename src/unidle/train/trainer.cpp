#include "unidle/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/train/checks.h"
#include "unidle/train/device.h"
#include "unidle/train/failure.h"
#include "unidle/train/memory.h"
#include "unidle/train/sample_search.h"
#include "unidle/train/tracing.h"

namespace unidle::train {

namespace {

/// fp16's scaler skips steps until it has found its scale, and their losses may be infinite. After this many, which
/// reduce the first scale, 2^16, below 1, it is not searching any more.
constexpr int kNotFiniteWhileScaling = 20;

double elapsed_s(std::uint64_t from_ns, std::uint64_t to_ns) {
  return seconds(static_cast<std::int64_t>(to_ns - from_ns));
}

/// A divisor above 1. REQUIRES: `number` > 1.
std::int64_t smallest_divisor(std::int64_t number) {
  std::int64_t divisor = 2;
  while (number % divisor != 0) {
    ++divisor;
  }
  return divisor;
}

/// The kinds of layers in a model, as far as its weights show them.
ModelFacts facts_of(const torch::nn::Module& model) {
  ModelFacts facts;
  for (const at::Tensor& parameter : model.parameters()) {
    facts.parameters += parameter.numel();
    // [out, in, h, w]; one input channel for many outputs is a depthwise convolution.
    const bool kernel = parameter.dim() == 4;
    facts.convolutions |= kernel;
    facts.depthwise |= kernel && parameter.size(1) == 1 && parameter.size(0) > 1 && parameter.size(2) > 1;
  }
  return facts;
}

/// Returns `config` when it is valid and all processes have the same one, and the same data.
const Config& checked(const Config& config, const Workload& workload, at::Device device, Ranks* ranks) {
  checked_combinations(config, device, ranks != nullptr ? ranks->world() : 1);
  if (ranks != nullptr) {
    std::map<std::string, std::string> shared = shared_settings(config);
    shared.merge(shared_data(workload));
    ranks->agree_on(shared);
  }
  return config;
}

}  // namespace

Trainer::Trainer(Workload& workload, const Config& config, at::Device device, Events& events, TrainOptions options)
    : workload_(workload),
      config_(checked(config, workload, device, options.ranks)),
      device_(device),
      events_(events),
      options_(std::move(options)),
      batch_(batch_within_run(config, world())),
      accumulation_(config.integer("batch.accumulation")),
      total_(config.integer("train.samples") / samples_per_step() * samples_per_step()),
      step_(workload, config, device, events, total_ / samples_per_step(), options_.ranks, options_.capture,
            options_.stop),
      losses_(config.integer("metrics.interval")),
      evaluation_(workload, config, device, options_.ranks) {
  if (const std::int64_t asked = config.integer("batch.size"); batch_ < asked && rank() == 0) {
    spdlog::warn("batch.size is {}, not {}: a larger step would be longer than train.samples", batch_, asked);
  }
  if (rank() == 0) {
    unread_ = warn_of_unread(config, workload);
  }
  if (options_.resume) {
    std::filesystem::path found;
    const Snapshot snapshot = read_newest(*options_.resume, found);
    restore(snapshot, live_state(), rank(), world(), found.string());
    position_ = snapshot.position;
  }
  if (config.integer("checkpoint.interval") > 0) {
    checkpoints_.emplace(checkpoint_folder(config), config.integer("checkpoint.keep"));
  }
  share_model();
  first_sample_ = position_.samples;
  read_up_to_ = position_;
  open_input();
}

void Trainer::share_model() {
  if (options_.ranks != nullptr) {
    options_.ranks->broadcast(workload_.model().parameters());
    options_.ranks->broadcast(workload_.model().buffers());
  }
}

data::LoaderOptions Trainer::loader_options(std::int64_t samples) const {
  data::LoaderOptions options = input_options(config_).loader;
  options.batch = batch_;
  options.rank = rank();
  options.world = world();
  // When the items do not divide evenly, an epoch of each process is as long as the longest; see EpochEnd.
  const std::int64_t per_item = workload_.source().samples_per_item();
  const std::int64_t items = workload_.source().items();
  if (items == 0) {
    throw Error(ErrorCode::kInput, config_.name(),
                fmt::format("the workload {} has no data to train with", config_.text("workload")),
                "check its data and the share that is held out");
  }
  const std::int64_t epoch = (items + world() - 1) / world() * per_item;
  const std::int64_t own = samples / world();
  options.start_sample = own / epoch * items * per_item + own % epoch * world();
  return options;
}

LiveState Trainer::live_state() {
  return {.workload = config_.text("workload"),
          .seed = config_.integer("seed"),
          .model = workload_.model(),
          .optimizer = step_.optimizer(),
          .precision = step_.precision(),
          .averaged = step_.averaged(),
          .device = device_};
}

void Trainer::open_input() {
  InputOptions options = input_options(config_);
  options.loader = loader_options(position_.samples);
  options.batches_of_step = step_.graphs().on() ? accumulation_ : 0;
  input_.reset();  // frees its memory first
  try {
    input_ = std::make_unique<Input>(workload_.source(), workload_.field_uses(), device_, options);
  } catch (const Error& error) {
    throw_with_key(error, config_);
  }
}

void Trainer::note_settings() {
  Effective noted = effective();
  for (const Setting* setting : unread_) {  // what switches something stays as it is by default
    if (setting->type == SettingType::kBool || setting->type == SettingType::kChoice) {
      noted.emplace(setting->name, setting->fallback);
    }
  }
  if (device_.is_cpu()) {
    // There is no transfer on a CPU: these two are off, but not ignored.
    noted.erase("loader.pin_memory");
    noted.erase("transfer.non_blocking");
  }
  // The run's length is the configured one in whole steps: rounding does not mean that the setting is ignored.
  noted["train.samples"] = config_.text("train.samples");
  events_.settings(config_, noted);
  events_.unread(config_, unread_);
}

void Trainer::note_start() {
  events_.startup();
  note_settings();
  device_facts_ = events_.observed() ? device_facts(device_) : std::nullopt;
  note_device();
  events_.model(facts_of(workload_.model()));
  events_.data(workload_.source().items() * workload_.source().samples_per_item());
  events_.begin(static_cast<std::uint64_t>(position_.steps), static_cast<std::uint64_t>(position_.samples));
}

Summary Trainer::run() {
  note_start();
  start_ns_ = Events::now_ns();
  warm_ns_ = start_ns_;
  const std::string compile_mode = step_.compile_mode();
  loop();
  if (step_.compile_mode() != compile_mode) {
    note_settings();
  }
  note_calls();
  step_.device_timer().collect();
  note_device();
  const bool stopped = position_.samples < total_;
  loop_end_ns_ = Events::now_ns();
  if (!stopped) {
    validate();
  }
  if (checkpoints_) {
    save();
    checkpoints_->finish();
  }
  end_ns_ = Events::now_ns();
  return summarise(stopped);
}

void Trainer::loop() {
  const double validation_epochs = config_.real("validation.interval");
  const double validation_samples =
      std::ceil(validation_epochs * static_cast<double>(input_->loader().samples_per_epoch()));
  const auto validation_interval = static_cast<std::int64_t>(std::min(validation_samples, static_cast<double>(total_)));
  const std::int64_t checkpoint_interval = config_.integer("checkpoint.interval");
  Tracing tracing(events_, !device_.is_cpu(), position_.steps, total_ / samples_per_step());
  while (position_.samples < total_) {
    const std::int64_t before = position_.samples;
    step();
    aside([&] { tracing.step_over(position_.steps); });
    start_clock_when_warm();
    if (passed(validation_interval, before)) {
      aside([&] { validate(); });
      step_.device_timer().pause();
    }
    if (passed(checkpoint_interval, before)) {
      aside([&] { save(); });
      step_.device_timer().pause();
    }
    if (options_.on_progress) {
      options_.on_progress({position_.samples, total_, losses_.last(), step_.input_wait_ns()});
    }
    if (stopping_ || (world() == 1 && stop_requested())) {
      break;
    }
  }
  read_losses();
}

void Trainer::step() {
  events_.begin_step(static_cast<std::uint64_t>(position_.steps));
  losses_.add(run_step());
  position_.samples += samples_per_step();
  ++position_.steps;
  if (losses_.due()) {
    read_losses();
  }
  const std::int64_t flush_interval = config_.integer("memory.flush_interval");
  if (flush_interval > 0 && position_.steps % flush_interval == 0) {
    flush();
  }
  events_.end_step(samples_per_step(), accumulation_);
}

at::Tensor Trainer::run_step() {
  while (true) {
    try {
      return step_.run(*input_, accumulation_, position_.steps);
    } catch (const std::exception& failure) {
      // An update that has begun cannot be repeated.
      const bool graphs_hold_memory = step_.graphs().hold_memory();
      if (!is_out_of_memory(failure) || step_.updating() || (batch_ == 1 && !graphs_hold_memory)) {
        throw;
      }
      if (graphs_hold_memory) {  // before shrinking the batch: it may fit without graphs
        step_.drop_gradients();
        step_.give_up_graphs();
        open_input();
        continue;
      }
      if (world() > 1) {
        refuse_to_shrink();
      }
      shrink_batch();
    }
  }
}

void Trainer::refuse_to_shrink() const {
  const std::int64_t parts = smallest_divisor(batch_);
  throw Error(
      ErrorCode::kOutOfMemory, fmt::format("step {}", position_.steps + 1),
      fmt::format("no memory for a batch.size of {}, and all {} processes need the same one", batch_, world()),
      fmt::format("batch.size={} batch.accumulation={} is the same training", batch_ / parts, accumulation_ * parts));
}

void Trainer::shrink_batch() {
  step_.drop_gradients();
  step_.drop_graphs();
  const std::int64_t parts = smallest_divisor(batch_);
  batch_ /= parts;
  accumulation_ *= parts;
  spdlog::warn("out of memory: from step {} on batch.size is {} and batch.accumulation {}, which is the same training",
               position_.steps + 1, batch_, accumulation_);
  open_input();
}

void Trainer::flush() {
  const std::uint64_t start = Events::now_ns();
  flush_memory(device_);
  events_.flush(start);
  flushes_.ns += Events::now_ns() - start;
  ++flushes_.count;
}

void Trainer::note_device() {
  if (device_facts_) {
    const DeviceTimer& timer = step_.device_timer();
    events_.device(device_.index(), *device_facts_, timer.looked_at(), timer.kept_up());
  }
}

void Trainer::note_calls() {
  const auto note = [this](std::string_view call, std::string_view key, const Calls& calls) {
    const std::string& where = config_.location(key);
    events_.calls(call, where.empty() ? config_.name() : where, calls.count, calls.ns);
  };
  note("item", "metrics.interval", reads_);
  note("empty_cache", "memory.flush_interval", flushes_);
  events_.stages(input_->loader().work());
}

void Trainer::read_losses() {
  const std::uint64_t start = Events::now_ns();
  const std::vector<double> values = losses_.read([this](at::Tensor& losses) { combine(losses); });
  if (values.empty()) {
    return;
  }
  events_.part(UNIDLE_STEP_SYNC, start);
  reads_.ns += Events::now_ns() - start;
  ++reads_.count;
  for (const double value : values) {
    events_.loss(static_cast<std::uint64_t>(read_up_to_.steps), static_cast<std::uint64_t>(read_up_to_.samples), value);
    check_finite(value, read_up_to_);
    ++read_up_to_.steps;
    read_up_to_.samples += samples_per_step();
  }
  events_.pace({.steps = static_cast<std::uint64_t>(read_up_to_.steps),
                .samples = static_cast<std::uint64_t>(read_up_to_.samples),
                .input_wait_ns = step_.input_wait_ns(),
                .learning_rate = step_.schedule().rate(read_up_to_.steps - 1)});
}

void Trainer::combine(at::Tensor& losses) {
  if (options_.ranks == nullptr) {
    return;
  }
  at::Tensor all = at::cat({losses, at::full({1}, stop_requested() ? 1.0 : 0.0, losses.options())});
  options_.ranks->sum(all);
  losses = all.narrow(0, 0, losses.size(0)) / world();
  stopping_ = all[-1].item<double>() > 0;
}

void Trainer::check_finite(double loss, const Position& at) {
  if (std::isfinite(loss) || config_.text("train.on_nan") != "stop") {
    losses_not_finite_ = 0;
    return;
  }
  ++losses_not_finite_;
  if (!step_.precision().scaling() || losses_not_finite_ >= kNotFiniteWhileScaling) {
    stop_for(loss, at);
  }
}

void Trainer::stop_for(double loss, const Position& at) {
  const std::string subject = fmt::format("step {}", at.steps + 1);
  const data::LoaderOptions options = loader_options(at.samples);
  const std::int64_t own = batch_ * accumulation_;
  const std::vector<std::string> unfit = find_not_finite(workload_.source(), options, own);
  if (!unfit.empty()) {
    throw Error(ErrorCode::kInput, subject, fmt::format("the loss is {}: {} is not finite", loss, unfit.front()),
                "mend the data, or set train.on_nan: skip");
  }
  throw Error(
      ErrorCode::kCancelled, subject,
      fmt::format("the loss is {}, and the data is finite: {}", loss, name_items(workload_.source(), options, own)),
      "a lower optimizer.lr or grad.clip_norm may help; train.on_nan: skip leaves such steps out");
}

bool Trainer::passed(std::int64_t interval, std::int64_t before) const {
  // The last one comes after the loop.
  return interval > 0 && position_.samples < total_ && position_.samples / interval > before / interval;
}

template <typename Work>
void Trainer::aside(const Work& work) {
  const std::uint64_t start = Events::now_ns();
  work();
  aside_ns_ += Events::now_ns() - start;
}

void Trainer::start_clock_when_warm() {
  if (warm_samples_ == 0 && position_.samples - first_sample_ >= config_.integer("train.warmup_samples")) {
    synchronize(device_);
    warm_ns_ = Events::now_ns();
    warm_samples_ = position_.samples - first_sample_;
    aside_ns_ = 0;
  }
}

std::map<std::string, double> Trainer::evaluate() {
  try {
    return evaluation_.run(step_.precision());
  } catch (const std::exception& failure) {
    if (!is_out_of_memory(failure) || !step_.graphs().hold_memory()) {
      throw;
    }
  }
  step_.drop_graphs();  // captured again when training continues
  return evaluation_.run(step_.precision());
}

void Trainer::validate() {
  const std::uint64_t start = Events::now_ns();
  {
    share_model();
    const AveragedWeights::InUse averages(step_.averaged());
    metric_ = evaluate();
  }
  const auto step = static_cast<std::uint64_t>(position_.steps);
  events_.span(UNIDLE_EVENT_VALIDATE, start, step, evaluation_.samples());
  for (const auto& [name, value] : metric_) {
    events_.metric(name, value, step, static_cast<std::uint64_t>(position_.samples));
    if (!std::isfinite(value) && rank() == 0) {
      spdlog::warn("validation after {} steps: {} is not finite: the model's outputs or the held-out data are not",
                   position_.steps, name);
    }
  }
}

void Trainer::save() {
  const std::uint64_t start = Events::now_ns();
  std::optional<RandomStates> random;
  if (options_.ranks != nullptr) {
    share_model();
    random = own_random_states(device_);
    random->host = options_.ranks->gather(random->host[0]);
    if (random->device.defined()) {
      random->device = options_.ranks->gather(random->device[0]);
    }
  }
  if (rank() == 0) {
    checkpoints_->save(live_state(), position_, random);
  }
  events_.span(UNIDLE_EVENT_CHECKPOINT, start, static_cast<std::uint64_t>(position_.steps));
}

Summary Trainer::summarise(bool stopped) const {
  Summary summary;
  summary.workload = config_.text("workload");
  summary.device = device_.is_cpu() ? "cpu" : "cuda";
  summary.config = config_.name();
  summary.samples = position_.samples - first_sample_;
  summary.steps = summary.samples / samples_per_step();
  summary.skipped_steps = step_.precision().skipped();
  summary.seconds = elapsed_s(start_ns_, end_ns_);
  // For a run shorter than its warm-up only the whole run can be measured.
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
