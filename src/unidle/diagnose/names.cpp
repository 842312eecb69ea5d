#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose {

std::string to_string(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kCritical: return "critical";
  }
  return "info";
}

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted: return "completed";
    case Outcome::kFailed: return "failed";
    case Outcome::kTimedOut: return "timed-out";
    case Outcome::kStopped: return "stopped";
    case Outcome::kUnknown: return "unknown";
  }
  return "unknown";
}

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHealthy: return "healthy";
    case Verdict::kInputBound: return "input-bound";
    case Verdict::kTransferBound: return "transfer-bound";
    case Verdict::kSyncBound: return "sync-bound";
    case Verdict::kLaunchBound: return "launch-bound";
    case Verdict::kComputeBound: return "compute-bound";
    case Verdict::kCommunicationBound: return "communication-bound";
    case Verdict::kValidationBound: return "validation-bound";
    case Verdict::kOverheadBound: return "overhead-bound";
    case Verdict::kDeviceUnused: return "device-unused";
    case Verdict::kFailed: return "failed";
    case Verdict::kUnknown: return "unknown";
  }
  return "unknown";
}

}  // namespace unidle::diagnose
