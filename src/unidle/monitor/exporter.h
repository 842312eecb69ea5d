// Snapshots for Prometheus, served over HTTP.
#pragma once

#include <memory>
#include <string>

#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

/// Serves http://HOST:PORT/metrics from threads of its own until destroyed. Names follow the conventions of Prometheus:
/// base units, _total for what only grows; what is absent has no sample. docs/monitor.md lists them.
class Exporter {
 public:
  /// `address`: "HOST:PORT", ":PORT" or "PORT"; without a host it is 127.0.0.1. Throws kUsage for a malformed address,
  /// kIo when it cannot be listened on.
  explicit Exporter(const std::string& address);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// What is served from now on. Thread-safe.
  void publish(const Snapshot& snapshot);
  /// Where it is served, with the port that was chosen for port 0.
  std::string url() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The page of one snapshot.
std::string prometheus_text(const Snapshot& snapshot);

}  // namespace unidle::monitor
