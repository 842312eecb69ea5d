#include "unidle/telemetry/driver_call.h"

#include <fmt/format.h>

namespace unidle::telemetry {

namespace {

thread_local std::shared_ptr<DriverCalls> followed;

}  // namespace

void DriverCalls::follow(std::shared_ptr<DriverCalls> calls) { followed = std::move(calls); }

void DriverCalls::now_in(const char* name) {
  since_ns_ = system_clock().now_ns();  // before the name: a reader that sees the name must not see an older time
  name_ = name;
}

std::int64_t DriverCalls::taken_ns() const { return system_clock().now_ns() - since_ns_; }

std::string DriverCalls::no_answer() const {
  const char* name = name_;
  return fmt::format("the driver does not answer ({}, {:.0f} s)", name != nullptr ? name : "between two calls",
                     seconds(taken_ns()));
}

DriverCall::DriverCall(const char* name) {
  if (followed != nullptr) {
    followed->now_in(name);
  }
}

DriverCall::~DriverCall() {
  if (followed != nullptr) {
    followed->now_in(nullptr);
  }
}

DriverWork::DriverWork(std::function<void()> work)
    : thread_([calls = calls_, work = std::move(work)](const std::stop_token&) {
        DriverCalls::follow(calls);
        work();
      }) {}

bool DriverWork::wait_patiently() {
  for (std::int64_t left_ns = kDriverPatience_ns; left_ns > 0; left_ns = kDriverPatience_ns - calls_->taken_ns()) {
    if (wait(left_ns)) {
      return true;
    }
  }
  return wait(0);
}

std::optional<std::string> DriverWork::problem() const {
  return calls_->taken_ns() < kDriverPatience_ns ? std::nullopt : std::optional(calls_->no_answer());
}

}  // namespace unidle::telemetry
