#include "unidle/trace/detail/events.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/units.h"
#include "unidle/trace/detail/flops.h"
#include "unidle/trace/detail/lenient_json.h"

namespace unidle::trace::detail {

namespace {

using Json = nlohmann::json;
constexpr std::size_t kLongestText = 512;  // of a name that is kept
constexpr std::size_t kDeepest = 200;      // profilers write fewer than ten levels

[[noreturn]] void refuse_depth(const std::string& name) {
  throw Error(ErrorCode::kInput, name, fmt::format("is nested deeper than {} levels", kDeepest),
              "a torch profiler trace (Chrome JSON) was expected");
}

struct FeedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  LenientJson* feed = nullptr;

  char operator*() const { return feed->current(); }
  FeedIterator& operator++() {
    feed->advance();
    return *this;
  }
  FeedIterator operator++(int) {
    const FeedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const FeedIterator& other) const {
    const bool mine = feed == nullptr || feed->at_end();
    const bool theirs = other.feed == nullptr || other.feed->at_end();
    return mine == theirs;
  }
  bool operator!=(const FeedIterator& other) const { return !(*this == other); }
};

/// The parser's place in the document: only events, their args, device entries and the rank are read.
enum class Place { kOutside, kEvents, kEvent, kArgs, kShapes, kShape, kTypes, kValues, kDevices, kDevice, kRanks };

/// Slices that have begun and not yet ended, by thread, for traces that write a slice as a begin and an end event.
class OpenSlices {
 public:
  void begin(const std::string& thread, const TraceEvent& event) {
    if (count_ < kMost && event.begin_us) {
      open_[thread].push_back(event);
      ++count_;
    }
  }
  /// The whole slice that `end` ends; nothing when no slice is open.
  std::optional<TraceEvent> end(const std::string& thread, const TraceEvent& end) {
    const auto found = open_.find(thread);
    if (found == open_.end() || found->second.empty() || !end.begin_us) {
      return std::nullopt;
    }
    TraceEvent whole = std::move(found->second.back());
    found->second.pop_back();
    --count_;
    whole.duration_us = *end.begin_us - *whole.begin_us;
    return whole;
  }

 private:
  static constexpr std::size_t kMost = 1'000'000;
  std::unordered_map<std::string, std::vector<TraceEvent>> open_;
  std::size_t count_ = 0;
};

class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(std::string name, const std::function<void(const TraceEvent&)>& on_event,
          const std::function<void(const TraceDevice&)>& on_device)
      : name_(std::move(name)), on_event_(on_event), on_device_(on_device) {}

  bool seen_events = false;
  std::optional<std::int64_t> rank;

  bool null() override { return no_number(); }
  bool boolean(bool) override { return no_number(); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  bool string(string_t& value) override {
    const Place place = place_.empty() ? Place::kOutside : place_.back();
    if (place == Place::kEvent) {
      text_of_event(value);
    } else if (place == Place::kDevice && key_ == "name") {
      device_.name = value.substr(0, kLongestText);
    } else if (place == Place::kArgs && (key_ == "name" || key_ == "labels")) {
      label_.assign(value, 0, kLongestText);
    } else if (place == Place::kTypes) {
      keep(event_.types, value);
    } else if (place == Place::kValues) {
      keep(event_.values, value);
    } else {
      no_number();
    }
    return true;
  }

  bool key(string_t& value) override {
    key_.assign(value, 0, kLongestText);
    return true;
  }

  bool start_object(std::size_t) override {
    const Place outer = place_.empty() ? Place::kOutside : place_.back();
    Place inner = Place::kOutside;
    if (outer == Place::kEvents) {
      inner = Place::kEvent;
      event_.clear();
      thread_.clear();
      label_.clear();
    } else if (outer == Place::kEvent && key_ == "args") {
      inner = Place::kArgs;
    } else if (outer == Place::kDevices) {
      inner = Place::kDevice;
      device_ = {};
    } else if (place_.size() == 1 && key_ == "distributedInfo") {
      inner = Place::kRanks;
    }
    return enter(inner);
  }

  bool end_object() override {
    const Place place = place_.back();
    place_.pop_back();
    if (place == Place::kEvent) {
      end_event();
    } else if (place == Place::kDevice) {
      on_device_(device_);
    }
    return true;
  }

  bool start_array(std::size_t) override {
    Place inner = Place::kOutside;
    if (place_.empty() || (place_.size() == 1 && key_ == "traceEvents")) {
      inner = Place::kEvents;  // the bare array form has no object around it
      seen_events = true;
    } else if (place_.size() == 1 && key_ == "deviceProperties") {
      inner = Place::kDevices;
    } else {
      inner = inner_of_arguments(place_.back());
    }
    return enter(inner);
  }

  bool end_array() override {
    place_.pop_back();
    return true;
  }

 private:
  void end_event() {
    event_.thread = event_.process + "/" + thread_;
    if (event_.phase == "B") {
      open_.begin(event_.thread, event_);
    } else if (event_.phase == "E") {
      if (const auto whole = open_.end(event_.thread, event_)) {
        on_event_(*whole);
      }
    } else if (event_.phase == "X" && event_.begin_us && event_.duration_us) {
      on_event_(event_);
    } else if (event_.phase == "M" && event_.name.starts_with("process_") && !label_.empty()) {
      on_device_({.name = {}, .process = label_, .id = {}, .memory = {}, .major = {}, .minor = {}});
    }
  }

  /// The place of an array among the arguments of an operator whose operations are counted.
  Place inner_of_arguments(Place outer) {
    if (outer == Place::kArgs && has_flops(event_.name)) {
      return key_ == "Input Dims"        ? Place::kShapes
             : key_ == "Input type"      ? Place::kTypes
             : key_ == "Concrete Inputs" ? Place::kValues
                                         : Place::kOutside;
    }
    if ((outer == Place::kShapes || outer == Place::kShape) && event_.shapes.size() < kMostArguments) {
      event_.shapes.emplace_back();
      return Place::kShape;
    }
    return Place::kOutside;
  }

  static void keep(std::vector<std::string>& texts, const std::string& text) {
    if (texts.size() < kMostArguments) {
      texts.emplace_back(text, 0, kLongestText);
    }
  }

  /// A size that is none must not be left out: the others would look like a whole shape.
  bool no_number() {
    return place_.empty() || place_.back() != Place::kShape || number(std::numeric_limits<double>::quiet_NaN());
  }

  bool enter(Place place) {
    if (place_.size() == kDeepest) {
      refuse_depth(name_);
    }
    place_.push_back(place);
    return true;
  }

  void text_of_event(const std::string& value) {
    if (key_ == "name") {
      event_.name.assign(value, 0, kLongestText);
    } else if (key_ == "cat") {
      event_.category.assign(value, 0, kLongestText);
    } else if (key_ == "ph") {
      event_.phase.assign(value, 0, 8);
    } else if (key_ == "tid") {
      thread_.assign(value, 0, 64);
    } else if (key_ == "pid") {
      event_.process.assign(value, 0, 64);
    } else if (key_ == "ts" || key_ == "dur") {
      double parsed = 0;
      const char* value_end = value.data() + value.size();
      const auto [end, error] = std::from_chars(value.data(), value_end, parsed);
      if (error == std::errc{} && end == value_end && std::isfinite(parsed)) {
        number(parsed);
      }
    }
  }

  static bool is_whole(double value) { return value >= 0 && value < 9e15; }

  bool number(double value) {
    const Place place = place_.empty() ? Place::kOutside : place_.back();
    if (place == Place::kEvent) {
      if (key_ == "ts") {
        event_.begin_us = value;
      } else if (key_ == "dur") {
        event_.duration_us = value;
      } else if (key_ == "tid") {
        thread_ = fmt::format("{}", value);
      } else if (key_ == "pid") {
        event_.process = fmt::format("{}", value);
      }
    } else if (place == Place::kArgs && key_ == "device") {
      event_.device = fmt::format("{}", value);
    } else if (place == Place::kArgs && key_ == "bytes") {
      event_.bytes = value;
    } else if (place == Place::kArgs && key_ == "correlation" && is_whole(value)) {
      event_.correlation = static_cast<std::int64_t>(value);
    } else if (place == Place::kShape && event_.shapes.back().size() < kMostArguments) {
      event_.shapes.back().push_back(value);
    } else if (place == Place::kRanks && key_ == "rank" && is_whole(value)) {
      rank = static_cast<std::int64_t>(value);
    } else if (place == Place::kDevice) {
      device_number(value);
    }
    return true;
  }

  void device_number(double value) {
    if (key_ == "id") {
      device_.id = fmt::format("{}", value);
    } else if (key_ == "totalGlobalMem") {
      device_.memory = value;
    } else if (key_ == "computeMajor" && value >= 0 && value < 1000) {
      device_.major = static_cast<std::int64_t>(value);
    } else if (key_ == "computeMinor" && value >= 0 && value < 1000) {
      device_.minor = static_cast<std::int64_t>(value);
    }
  }

  std::string name_;
  const std::function<void(const TraceEvent&)>& on_event_;
  const std::function<void(const TraceDevice&)>& on_device_;
  std::vector<Place> place_;
  std::string key_;
  std::string thread_;
  std::string label_;  // args.name or args.labels
  TraceEvent event_;
  OpenSlices open_;
  TraceDevice device_;
};

/// Throws with the reason when a trace was not read to its end or has no events.
void check_end(const logs::Source& source, const LenientJson& feed, bool whole, bool seen_events) {
  if (!whole) {
    throw Error(ErrorCode::kInput, source.name(),
                fmt::format("{} after {}", feed.at_end() ? "the JSON is cut off" : "the JSON is damaged",
                            format_bytes(feed.position())),
                "a whole torch profiler trace (Chrome JSON) was expected");
  }
  if (!seen_events) {
    throw Error(ErrorCode::kInput, source.name(), "is JSON without traceEvents",
                "a torch profiler trace (Chrome JSON) was expected");
  }
}

}  // namespace

void TraceEvent::clear() {
  name.clear();
  category.clear();
  phase.clear();
  process.clear();
  thread.clear();
  device.clear();
  begin_us.reset();
  duration_us.reset();
  bytes.reset();
  correlation.reset();
  shapes.clear();
  types.clear();
  values.clear();
}

std::optional<std::int64_t> for_each_event(logs::Source& source, const std::function<void(const TraceEvent&)>& on_event,
                                           const std::function<void(const TraceDevice&)>& on_device) {
  LenientJson feed(source);
  Handler handler(source.name(), on_event, on_device);
  const bool whole = Json::sax_parse(FeedIterator{&feed}, FeedIterator{}, &handler);
  check_end(source, feed, whole, handler.seen_events);
  return handler.rank;
}

void for_each_raw_event(logs::Source& source, const std::function<void(Json&)>& on_event) {
  LenientJson feed(source);
  std::string key;
  bool seen_events = false;
  int array_depth = -1;  // of traceEvents; its elements are one level deeper
  const Json::parser_callback_t visit = [&](int depth, Json::parse_event_t kind, Json& value) {
    if (depth > static_cast<int>(kDeepest)) {
      refuse_depth(source.name());
    }
    if (kind == Json::parse_event_t::key && depth == 1) {
      key = value.get<std::string>();
    } else if (kind == Json::parse_event_t::array_start && (depth == 0 || (depth == 1 && key == "traceEvents"))) {
      array_depth = depth;
      seen_events = true;
    } else if (kind == Json::parse_event_t::array_end && depth == array_depth) {
      array_depth = -1;
    } else if (kind == Json::parse_event_t::object_end && array_depth >= 0 && depth == array_depth + 1) {
      on_event(value);
      return false;  // processed: nothing is kept
    }
    return true;
  };
  const Json rest = Json::parse(FeedIterator{&feed}, FeedIterator{}, visit, false);
  check_end(source, feed, !rest.is_discarded(), seen_events);
}

}  // namespace unidle::trace::detail
