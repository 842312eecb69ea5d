// Serves snapshots to Prometheus over HTTP.
#pragma once

#include <memory>
#include <string>

#include "unidle/monitor/snapshot.h"

namespace unidle::monitor {

/// Serves http://HOST:PORT/metrics on its own threads until destroyed. Names follow the conventions of Prometheus: base
/// units, _total for counters. Absent readings have no sample. docs/monitor.md lists the metrics.
class Exporter {
 public:
  /// `address`: see listen_address(). Throws kIo when it cannot listen there.
  explicit Exporter(const std::string& address);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// Replaces the served snapshot. Thread-safe.
  void publish(const Snapshot& snapshot);
  /// The served URL, with the actual port when port 0 was requested.
  std::string url() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Renders one snapshot in Prometheus' text format.
std::string prometheus_text(const Snapshot& snapshot);

}  // namespace unidle::monitor
