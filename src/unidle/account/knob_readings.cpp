#include "unidle/account/knob_readings.h"

namespace unidle::account {

KnobReadings knob_readings(const RunData& run) {
  KnobReadings readings;
  for (const record::Setting& setting : run.settings) {
    KnobReading& reading = readings[setting.knob];
    if (setting.source == "configured") {
      reading.configured = setting.value;
      reading.configured_at = setting.location;
      reading.written.clear();
    } else if (setting.source == "effective") {
      reading.effective = setting.value;
      reading.effective_at = setting.location;
    } else if (setting.source == "environment") {
      reading.environment.emplace_back(setting.location, setting.value);
    } else if (setting.source == "written" && setting.location == reading.configured_at) {
      reading.written = setting.value;
    } else if (setting.source == "unnamed") {
      reading.unnamed_key = setting.location;
    }
  }
  return readings;
}

}  // namespace unidle::account
