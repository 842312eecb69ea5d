#include "unidle/train/ranks/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/base/split.h"
#include "unidle/train/device_facts.h"
#include "unidle/train/ranks/nccl.h"
#include "unidle/train/ranks/peer_watch.h"

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace unidle::train {

namespace {

using Bytes = std::vector<std::uint8_t>;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr const char* kFailed = "failed";
constexpr const char* kHeard = "heard";
constexpr const char* kSettings = "settings";
constexpr milliseconds kReasonTimeout{
    2000};  // time to wait for the reason, which is written before a connection closes
constexpr milliseconds kDeliveryTimeout{10000};  // machines may be busy
constexpr milliseconds kBetweenLooks{20};
constexpr std::size_t kBroadcastBytes = std::size_t{250} << 20;  // as in DistributedDataParallel

Bytes to_bytes(std::string_view text) { return {text.begin(), text.end()}; }
std::string to_text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
std::string joined_key(int rank) { return fmt::format("joined/{}", rank); }
std::string gpu_key(int rank) { return fmt::format("gpu/{}", rank); }

/// Another process reported that it ends.
struct AnotherFailed final : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Whether another process caused the failure: it reported so, or its connection closed.
bool caused_by_another(const std::exception& failure) {
  constexpr std::array<std::string_view, 7> kWords = {
      "gloo", "Gloo", "NCCL", "onnection closed", "onnection reset", "ocket", "Broken pipe"};
  const std::string_view text = failure.what();
  const bool of_connection =
      std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
  return dynamic_cast<const AnotherFailed*>(&failure) != nullptr ||
         (of_connection && dynamic_cast<const Error*>(&failure) == nullptr);
}

/// The first line of a failure, and NCCL's details from further down.
std::string short_of(std::string_view text) {
  constexpr std::string_view kLast = "Last error:";
  std::string message(first_line(text));
  const std::size_t at = text.find(kLast);
  if (at != std::string_view::npos) {
    std::string_view more = text.substr(at + kLast.size());
    more.remove_prefix(std::min(more.find_first_not_of(" \n"), more.size()));
    message += more.empty() ? "" : fmt::format(": {}", first_line(more));
  }
  return message;
}

/// Drops torch's warning that a gradient's strides differ from the parameter's: sizes of one cause it, the values are
/// right.
class WithoutStrides final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("strides") == std::string::npos) {
      c10::WarningHandler::process(warning);
    }
  }
};

/// Torch reorders its buckets after the first pass, by when gradients arrive. The first step of a resumed run would
/// then add the numbers of three or more processes in another order than an uninterrupted run. Here the order is fixed.
class SteadyReducer final : public c10d::Reducer {
 public:
  template <typename... Arguments>
  explicit SteadyReducer(Arguments&&... arguments) : Reducer(std::forward<Arguments>(arguments)...) {
    has_rebuilt_bucket_ = true;
  }
};

}  // namespace

struct Ranks::Impl {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> gloo;
  c10::intrusive_ptr<c10d::Backend> nccl;  // null on CPUs
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::unique_ptr<c10d::Reducer> reducer;
  std::unique_ptr<PeerWatch> watch;  // with NCCL
  WithoutStrides warnings;
  c10::WarningUtils::WarningHandlerGuard guard{&warnings};

  /// The store, and each process's key in it.
  void join(const RankPlace& place, milliseconds timeout);
  void connect(const RankPlace& place, milliseconds timeout);
  std::string missing(const RankPlace& place) const;
  /// The value that a process has written; waits for it.
  std::string value_of(const std::string& key, milliseconds timeout) const;
  /// Makes other processes' calls fail from now on.
  void disconnect();
};

Ranks::Ranks(const RankPlace& place, std::chrono::seconds timeout)
    : place_(place), timeout_(timeout), impl_(std::make_unique<Impl>()) {
  impl_->join(place, timeout);
  impl_->connect(place, timeout);
}

Ranks::~Ranks() {
  if (impl_->nccl != nullptr) {
    impl_->watch->done();
    impl_->watch.reset();
    try {
      impl_->nccl->shutdown();
    } catch (const std::exception& failure) {  // training results are written already; nothing may leave a destructor
      spdlog::warn("the connection of the processes did not end well: {}", first_line(failure.what()));
    }
  }
}

void Ranks::Impl::join(const RankPlace& place, milliseconds timeout) {
  const std::string address = fmt::format("{}:{}", place.address, place.port);
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = place.rank == 0 && !place.store_exists;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    store = c10::make_intrusive<c10d::PrefixStore>(place.prefix,
                                                   c10::make_intrusive<c10d::TCPStore>(place.address, options));
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    store->set(joined_key(place.rank), to_bytes(host.data()));
  } catch (const std::exception& failure) {
    throw Error(ErrorCode::kChild, address,
                fmt::format("rank {} cannot reach the first process: {}", place.rank, first_line(failure.what())),
                "MASTER_ADDR and MASTER_PORT give its address; ranks.timeout_s sets the limit");
  }
  std::vector<std::string> all;
  for (int rank = 0; rank < place.world; ++rank) {
    all.push_back(joined_key(rank));
  }
  try {
    store->wait(all, timeout);
  } catch (const std::exception&) {
    throw Error(
        ErrorCode::kChild, address,
        fmt::format("{} of {} processes did not join within {} s", missing(place), place.world, timeout.count() / 1000),
        "look whether it was started; ranks.timeout_s says how long to wait");
  }
}

std::string Ranks::Impl::missing(const RankPlace& place) const {
  std::string names;
  for (int rank = 0; rank < place.world; ++rank) {
    if (!store->check({joined_key(rank)})) {
      names += fmt::format("{}{}", names.empty() ? "rank " : ", ", rank);
    }
  }
  return names.empty() ? "some" : names;
}

std::string Ranks::Impl::value_of(const std::string& key, milliseconds timeout) const {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const bool failed = store->check({kFailed});  // checked before the key: it may write that and end between two polls
    if (store->check({key})) {
      return to_text(store->get(key));
    }
    if (failed) {
      throw AnotherFailed("it ended before it wrote " + key);
    }
    if (std::chrono::steady_clock::now() > until) {
      throw Error(ErrorCode::kChild, key, fmt::format("another process did not write it within {} s", timeout / 1s),
                  "check whether it hangs; ranks.timeout_s sets the limit");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Ranks::Impl::connect(const RankPlace& place, milliseconds timeout) {
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(timeout);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  const bool here = place.local_world == place.world;
  options->devices.push_back(interface != nullptr ? Gloo::createDeviceForInterface(interface)
                             : here               ? Gloo::createDeviceForHostname("127.0.0.1")
                                                  : Gloo::createDefaultDevice());
  gloo = c10::make_intrusive<Gloo>(store, place.rank, place.world, options);
  group = c10::make_intrusive<c10d::ProcessGroup>(store, place.rank, place.world);
  for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
    group->setBackend(device, c10d::ProcessGroup::BackendType::GLOO, gloo);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group->setGroupName("unidle");
}

void Ranks::use_device(at::Device device) {
  if (!device.is_cuda() || world() == 1) {
    return;
  }
  refuse_shared(device);
  impl_->nccl = nccl_backend(impl_->store, rank(), world(), timeout_);
  if (impl_->nccl == nullptr) {
    return;
  }
  impl_->group->setBackend(at::kCUDA, c10d::ProcessGroup::BackendType::NCCL, impl_->nccl);
  impl_->watch = std::make_unique<PeerWatch>(impl_->gloo, [nccl = impl_->nccl] { nccl->abort(); });
}

void Ranks::refuse_shared(at::Device device) {
  const std::optional<DeviceFacts> facts = device_facts(device);
  impl_->store->set(gpu_key(rank()), to_bytes(facts ? facts->uuid : ""));
  std::map<std::string, int> owners;
  for (int one = 0; one < world(); ++one) {
    const std::string uuid = impl_->value_of(gpu_key(one), timeout_);
    const auto [known, is_new] = owners.emplace(uuid, one);
    if (!is_new && !uuid.empty()) {
      throw Error(ErrorCode::kMissing, "device: cuda",
                  fmt::format("ranks {} and {} have the same GPU", known->second, one),
                  "start as many processes as there are GPUs, each with one of its own (srun --gpus-per-task=1)");
    }
  }
}

void Ranks::Impl::disconnect() {
  watch.reset();
  if (nccl != nullptr) {
    nccl->abort();
  }
  reducer.reset();
  group.reset();
  nccl.reset();
  gloo.reset();
}

namespace {

std::string shortened(const std::string& value) {
  constexpr std::size_t kMost = 200;
  return value.size() <= kMost ? value : value.substr(0, kMost) + "...";
}

}  // namespace

void Ranks::agree_on(const std::map<std::string, std::string>& settings) {
  std::string own;
  for (const auto& [key, value] : settings) {
    own += fmt::format("{}={}\n", key, value);
  }
  if (first()) {
    impl_->store->set(kSettings, to_bytes(own));
    return;
  }
  const std::string of_first = impl_->value_of(kSettings, timeout_);
  for (const auto& [key, value] : settings) {
    if (("\n" + of_first).find(fmt::format("\n{}={}\n", key, value)) == std::string::npos) {
      throw Error(ErrorCode::kInput, key,
                  fmt::format("is '{}' here, and not so in the first process", shortened(value)),
                  "start all processes with the same configuration and data");
    }
  }
}

void Ranks::broadcast(std::vector<at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  if (!tensors.empty()) {
    c10d::broadcast_coalesced(impl_->group, tensors, kBroadcastBytes);
  }
}

void Ranks::sum(at::Tensor tensor) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  impl_->group->allreduce(tensors)->wait();
}

at::Tensor Ranks::gather(const at::Tensor& row) {
  std::vector<std::int64_t> shape = row.sizes().vec();
  shape.insert(shape.begin(), world());
  at::Tensor rows = at::zeros(shape, row.options());
  rows[rank()].copy_(row);
  sum(rows);
  return rows;
}

void Ranks::join_gradients(const std::vector<at::Tensor>& parameters) {
  // In the order in which a backward pass reaches them. The first bucket is small, so that it is sent early.
  const std::vector<at::Tensor> backwards(parameters.rbegin(), parameters.rend());
  std::vector<std::int64_t> places(parameters.size());
  std::iota(places.rbegin(), places.rend(), 0);
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      backwards, {c10d::kDefaultFirstBucketBytes, c10d::kDefaultBucketBytesCap}, {}, places);
  impl_->reducer = std::make_unique<SteadyReducer>(
      parameters, std::move(buckets), impl_->group, std::vector<bool>(parameters.size(), false),
      c10d::kDefaultBucketBytesCap, /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false,
      std::unordered_map<std::size_t, std::string>{}, c10d::kDefaultFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<std::int64_t>{});
}

void Ranks::before_backward(const at::Tensor& loss) { impl_->reducer->prepare_for_backward({loss}); }

/// The first process may own the store that the others read.
void Ranks::wait_for_acknowledgement() {
  const auto until = std::chrono::steady_clock::now() + kDeliveryTimeout;
  while (impl_->store->add(kHeard, 0) < world() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Ranks::end_all() {
  const std::exception_ptr current = std::current_exception();
  std::string message;
  bool of_another = false;
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& failure) {
    message = short_of(failure.what());
    of_another = caused_by_another(failure);
  }
  try {
    if (!of_another) {
      impl_->store->set(kFailed, to_bytes(fmt::format("rank {}: {}", rank(), message)));
    }
    // The others' calls fail when this connection closes; then they read the reason in the store, which this process
    // may own.
    impl_->disconnect();
    if (of_another) {
      impl_->store->wait({kFailed}, kReasonTimeout);
      message = to_text(impl_->store->get(kFailed));
    }
    impl_->store->add(kHeard, 1);
    if (first()) {
      wait_for_acknowledgement();
    }
  } catch (const std::exception&) {  // nobody left a reason, or nobody is there to read it
  }
  if (!of_another) {
    std::rethrow_exception(current);
  }
  const bool told = message.starts_with("rank ");
  throw Error(ErrorCode::kChild, told ? message.substr(0, message.find(':')) : "another rank",
              told ? message.substr(message.find(':') + 2) : "ended without a message, or does not answer: " + message,
              told ? "" : "its own output says more; checkpoints are whole, --resume goes on from them");
}

}  // namespace unidle::train
