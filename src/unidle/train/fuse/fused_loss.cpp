#include "unidle/train/fuse/fused_loss.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/base/split.h"
#include "unidle/train/checkpoints/checkpoint.h"
#include "unidle/train/failure.h"
#include "unidle/train/fuse/rnn_operations.h"
#include "unidle/train/fuse/traced_loss.h"

namespace unidle::train {

namespace {

/// Each takes minutes to compile the first time.
constexpr std::size_t kMostPackages = 4;
/// A shape that occurs once is not worth compiling.
constexpr int kTimesBefore = 1;
/// Compiled kernels assume that their inputs have this alignment, as all memory that torch allocates does.
constexpr std::uintptr_t kInputAlignment = 64;
/// Relative to the norm of all gradients, and to the step's change of the buffers. In 16 bits a package rounds less
/// often than the operations that it replaces.
constexpr double kMostGradientDifference = 0.05;
constexpr double kBufferRounding = 1e-5;  // for values that hardly change
constexpr double kMostFusedLossDifference = 0.01;

std::vector<at::Tensor> clones_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().clone());
  }
  return copies;
}

/// The 2-norm of a - b over all tensors; of a when b is empty.
double norm_over(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b = {}) {
  std::vector<at::Tensor> norms;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined()) {
      const at::Tensor whole = a[i].to(at::kDouble);
      norms.push_back(at::linalg_vector_norm(b.empty() ? whole : whole - b[i].to(at::kDouble)));
    }
  }
  return norms.empty() ? 0 : at::linalg_vector_norm(at::stack(norms)).item<double>();
}

/// Packages are linked with libtorch; a program linked with its parts only has not loaded it.
void load_libtorch() {
  const std::string library = (libtorch_folder() / "libtorch.so").string();
  static_cast<void>(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL));  // on failure, loading the package reports it
}

at::Tensor aligned(const at::Tensor& tensor) {
  const bool fits = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % kInputAlignment == 0;
  return fits ? tensor : tensor.clone();
}

}  // namespace

/// The package for one shape of micro-batches.
struct FusedLoss::Package {
  struct Field {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    at::ScalarType dtype;
    explicit Field(const at::Tensor& tensor)
        : sizes(tensor.sizes().vec()), strides(tensor.strides().vec()), dtype(tensor.scalar_type()) {}
    bool fits(const at::Tensor& tensor) const {
      return tensor.scalar_type() == dtype && tensor.sizes() == sizes && tensor.strides() == strides;
    }
  };

  explicit Package(const std::vector<at::Tensor>& given) : fields(given.begin(), given.end()) {}
  bool fits(const std::vector<at::Tensor>& given) const {
    return std::equal(fields.begin(), fields.end(), given.begin(), given.end(),
                      [](const Field& field, const at::Tensor& tensor) { return field.fits(tensor); });
  }

  std::vector<Field> fields;
  int times_before = 0;
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loaded;
  std::vector<std::size_t> learning;  // the parameters that have gradients
  bool trusted = false;               // it was compared on data other than those of the trace
};

FusedLoss::FusedLoss(Workload& workload, const Precision& precision, at::Device device, std::string against,
                     const std::atomic<bool>* stop)
    : workload_(workload),
      precision_(precision),
      device_(device),
      reason_(std::move(against)),
      maker_(device, stop),
      parameters_(learning_parameters(workload.model())),
      others_(other_state(workload.model())) {}

FusedLoss::~FusedLoss() = default;

at::Tensor FusedLoss::learn(const std::vector<at::Tensor>& fields, double share) {
  Package* package = on() ? package_for(fields) : nullptr;
  if (package == nullptr || (!package->trusted && !prepare(*package, fields))) {
    return {};
  }
  try {
    Learned learned = run(*package, fields, factor(share));
    add(learned.gradients);
    ++runs_;
    return share == 1 ? learned.loss : learned.loss * share;
  } catch (const std::exception& failure) {
    if (is_out_of_memory(failure)) {
      throw;  // a smaller batch, or a step without graphs, may fit
    }
    give_up(fmt::format("it cannot be run: {}", first_line(failure.what())));
    return {};
  }
}

FusedLoss::Package* FusedLoss::package_for(const std::vector<at::Tensor>& fields) {
  for (const auto& package : packages_) {
    if (package->fits(fields)) {
      return package.get();
    }
  }
  if (packages_.size() == kMostPackages) {
    tell_of_many_shapes();
    return nullptr;
  }
  return packages_.emplace_back(std::make_unique<Package>(fields)).get();
}

void FusedLoss::tell_of_many_shapes() {
  if (!told_of_many_shapes_) {
    told_of_many_shapes_ = true;
    spdlog::warn(
        "compile.mode: fused: batches have more than {} shapes, and further ones are not fused (give batches of fewer "
        "shapes, by data.group or by padding)",
        kMostPackages);
  }
}

bool FusedLoss::prepare(Package& package, const std::vector<at::Tensor>& fields) {
  if (package.times_before < kTimesBefore) {
    ++package.times_before;
    return false;
  }
  ++prepared_;
  State before;
  try {
    before = state();
    if (package.loaded == nullptr) {
      load(package, fields);
      put_back(before);
      return false;  // constants frozen by the trace show only with other data
    }
    std::string fault = compare(package, fields, before);
    put_back(before);
    if (fault.empty()) {
      package.trusted = true;
      return true;
    }
    give_up(std::move(fault));
  } catch (const std::exception& failure) {
    if (before.random.defined()) {
      put_back(before);
    }
    give_up(std::string(first_line(failure.what())));
  }
  return false;
}

void FusedLoss::load(Package& package, const std::vector<at::Tensor>& fields) {
  register_rnn_operations();
  load_libtorch();
  const TracedLoss traced = trace_loss(workload_, fields, precision_, device_);
  const auto open = [this](const std::filesystem::path& path) {
    // Its own locks and events would be captured.
    return std::make_unique<torch::inductor::AOTIModelPackageLoader>(path.string(), "model",
                                                                     /*run_single_threaded=*/true, /*num_runners=*/1,
                                                                     device_.is_cuda() ? device_.index() : -1);
  };
  const std::filesystem::path path = maker_.package_of(traced);
  try {
    package.loaded = open(path);
  } catch (const std::exception&) {
    package.loaded = open(maker_.rebuild(traced));
  }
  const std::string numbers = package.loaded->get_metadata()["gradients"];
  for (std::string_view rest = numbers; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::size_t number = parameters_.size();
    std::from_chars(rest.data(), rest.data() + comma, number);
    TORCH_CHECK(number < parameters_.size(), "the package is not of this loss");
    package.learning.push_back(number);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

std::string FusedLoss::compare(const Package& package, const std::vector<at::Tensor>& fields, const State& before) {
  const Learned plain = run_plain(fields);
  const std::vector<at::Tensor> plain_others = clones_of(others_);
  put_back(before);
  const Learned fused = run(package, fields, at::ones({1}, at::TensorOptions(at::kFloat).device(device_)));

  const auto loss = fused.loss.item<double>();
  const auto plain_loss = plain.loss.item<double>();
  const bool both_not_finite = !std::isfinite(loss) && !std::isfinite(plain_loss);
  // Written so that NaN counts as a difference.
  if (!both_not_finite && !(std::abs(loss - plain_loss) <= kMostFusedLossDifference * std::abs(plain_loss))) {
    return fmt::format("its loss is {:.6g}, that of the workload {:.6g}", loss, plain_loss);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (plain.gradients[i].defined() != fused.gradients[i].defined()) {
      return fmt::format("parameter {} has a gradient only {} the package", i + 1,
                         plain.gradients[i].defined() ? "without" : "with");
    }
  }
  const double size = norm_over(plain.gradients);
  const double difference = norm_over(fused.gradients, plain.gradients);
  if (both_not_finite || size == 0) {
    return fmt::format("the loss is {:.6g} and the norm of its gradients {:.2g}, which proves nothing", plain_loss,
                       size);
  }
  if (!(difference <= kMostGradientDifference * size)) {
    return fmt::format("its gradients are {:.2g} from those without it, whose norm is {:.2g}", difference, size);
  }
  const double change = norm_over(plain_others, before.others);
  const double others_difference = norm_over(others_, plain_others);
  if (!(others_difference <= kMostGradientDifference * change + kBufferRounding * norm_over(before.others))) {
    return fmt::format("its buffers are {:.2g} from those without it, which change by {:.2g}", others_difference,
                       change);
  }
  spdlog::info("compile.mode: fused: gradients differ by {:.2g} of their norm", difference / size);
  return "";
}

FusedLoss::Learned FusedLoss::run(const Package& package, const std::vector<at::Tensor>& fields,
                                  const at::Tensor& factor) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> inputs = parameters_;
  inputs.insert(inputs.end(), others_.begin(), others_.end());
  for (const at::Tensor& field : fields) {
    inputs.push_back(aligned(field));
  }
  inputs.push_back(factor);
  std::vector<at::Tensor> outputs = package.loaded->boxed_run(std::move(inputs));
  TORCH_CHECK(outputs.size() == package.learning.size() + 1, "the package gives other results than it says");
  Learned learned{std::move(outputs.front()), std::vector<at::Tensor>(parameters_.size())};
  std::set<const void*> taken;
  for (std::size_t i = 0; i < package.learning.size(); ++i) {
    at::Tensor& gradient = outputs[i + 1];
    // Parameters with the same gradient (the biases of a recurrent layer) would share its memory.
    const bool own = taken.insert(gradient.const_data_ptr()).second;
    learned.gradients[package.learning[i]] = own ? std::move(gradient) : gradient.clone();
  }
  return learned;
}

FusedLoss::Learned FusedLoss::run_plain(const std::vector<at::Tensor>& fields) {
  at::Tensor loss;
  {
    const AutocastGuard autocast = precision_.autocast();
    loss = workload_.loss(fields);
  }
  std::vector<at::Tensor> gradients =
      torch::autograd::grad({loss}, parameters_, {}, /*retain_graph=*/false, /*create_graph=*/false,
                            /*allow_unused=*/true);
  return {loss.detach(), std::move(gradients)};
}

at::Tensor FusedLoss::factor(double share) {
  if (share != share_) {
    share_ = share;
    share_on_device_ = at::full({1}, share, at::TensorOptions(at::kFloat).device(device_));
  }
  return precision_.scale(share_on_device_);
}

void FusedLoss::add(std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  std::vector<at::Tensor> more;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& sum = parameters_[i].mutable_grad();
    if (!gradients[i].defined()) {
      continue;
    }
    if (!sum.defined()) {
      sum = std::move(gradients[i]);
    } else {
      sums.push_back(sum);
      more.push_back(std::move(gradients[i]));
    }
  }
  if (!sums.empty()) {
    at::_foreach_add_(sums, more);
  }
}

FusedLoss::State FusedLoss::state() const { return {clones_of(others_), random_state(device_)}; }

void FusedLoss::put_back(const State& state) const {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    others_[i].detach().copy_(state.others[i]);
  }
  set_random_state(device_, state.random);
}

void FusedLoss::give_up(std::string reason) {
  reason_ = std::move(reason);
  // Packages stay loaded: captured graphs may read their constants.
  spdlog::warn("compile.mode: fused is off from here on: {}", reason_);
}

}  // namespace unidle::train
