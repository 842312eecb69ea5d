#include "unidle/monitor/devices.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "unidle/base/clock.h"

namespace unidle::monitor {

namespace {

/// A reading takes a few milliseconds. The monitor handles keys and signals only after it, so the wait is short.
constexpr std::int64_t kWait_ns = kNsPerSecond;

}  // namespace

struct Devices::Shared {
  telemetry::GpuInventory inventory;
  std::map<std::string, telemetry::GpuFacts> facts;  // by subject
  std::vector<Device> latest;

  static void look(Shared& shared, std::int64_t /*t_ns*/, bool /*slow*/) {
    shared.inventory = telemetry::find_gpus();
    for (const auto& reader : shared.inventory.readers) {
      for (telemetry::GpuFacts& facts : reader->facts()) {
        shared.facts[fmt::format("gpu{}", facts.index)] = std::move(facts);
      }
    }
  }

  static void read(Shared& shared, std::int64_t t_ns, bool slow) {
    shared.latest.clear();
    for (const auto& reader : shared.inventory.readers) {
      for (telemetry::GpuReader::Subject& subject : reader->read(t_ns, slow)) {
        Device& device = shared.latest.emplace_back();
        const std::string whole = subject.name.substr(0, subject.name.find('/'));  // "gpu0" of "gpu0/mig1"
        if (const auto facts = shared.facts.find(whole); facts != shared.facts.end()) {
          device.facts = facts->second;
        }
        if (slow && !subject.slice) {
          device.processes = reader->processes(subject.device).value_or(std::vector<telemetry::GpuProcess>());
        }
        device.subject = std::move(subject);
      }
    }
  }

  static void release(Shared& shared, std::int64_t /*t_ns*/, bool /*slow*/) { shared.inventory.readers.clear(); }
};

Devices::Devices() : shared_(std::make_shared<Shared>()) { begin(Shared::look, 0, false); }

Devices::~Devices() {
  if (over()) {
    begin(Shared::release, 0, false);
    over();
  }
}

void Devices::begin(void (*work)(Shared&, std::int64_t, bool), std::int64_t t_ns, bool slow) {
  waited_ = false;
  work_ = std::make_unique<telemetry::DriverWork>([=, shared = shared_] { work(*shared, t_ns, slow); });
}

bool Devices::over() {
  if (work_ && !work_->wait(std::exchange(waited_, true) ? 0 : kWait_ns)) {
    return false;
  }
  if (work_) {
    work_.reset();
    known_ = shared_->inventory.known || !shared_->inventory.readers.empty();
  }
  return true;
}

bool Devices::looked() {
  waited_ = true;
  return over() || problem();
}

std::optional<std::vector<Devices::Device>> Devices::read(std::int64_t t_ns, bool slow) {
  if (!over()) {
    return std::nullopt;
  }
  begin(Shared::read, t_ns, slow);
  if (!over()) {
    return std::nullopt;
  }
  return std::exchange(shared_->latest, {});
}

std::optional<std::string> Devices::problem() const { return work_ ? work_->problem() : std::nullopt; }

}  // namespace unidle::monitor
