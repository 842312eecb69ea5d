#include <array>

#include "unidle/base/error.h"
#include "unidle/trace/document.h"

namespace unidle::trace {

namespace {

using nlohmann::json;

constexpr const char* kSchema = "unidle.trace/1";

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

template <typename T>
void take(const json& from, const char* key, T& into) {
  if (const auto found = from.find(key); found != from.end() && !found->is_null()) {
    into = found->get<T>();
  }
}

template <typename T>
void take(const json& from, const char* key, std::optional<T>& into) {
  if (const auto found = from.find(key); found != from.end() && !found->is_null()) {
    into = found->get<T>();
  }
}

json parts_of(const TraceSummary& trace) {
  if (!trace.parts) {
    return nullptr;
  }
  return {{"input", trace.parts->input},
          {"transfer", trace.parts->transfer},
          {"sync", trace.parts->sync},
          {"optimizer", trace.parts->optimizer},
          {"rest", trace.parts->rest}};
}

struct IdlePart {
  const char* key;
  double IdleTime::*seconds;
};
constexpr std::array<IdlePart, 12> kIdleParts = {{
    {"seconds", &IdleTime::idle_s},
    {"input", &IdleTime::input_s},
    {"compile", &IdleTime::compile_s},
    {"allocator", &IdleTime::allocator_s},
    {"sync", &IdleTime::sync_s},
    {"copy", &IdleTime::copy_s},
    {"launch", &IdleTime::launch_s},
    {"host", &IdleTime::host_s},
    {"host_unnamed", &IdleTime::unnamed_s},
    {"profiler", &IdleTime::profiler_s},
    {"queued", &IdleTime::queued_s},
    {"unseen", &IdleTime::unseen_s},
}};

json idle_of(const TraceSummary& trace) {
  if (!trace.idle) {
    return nullptr;
  }
  json parts;
  for (const IdlePart& part : kIdleParts) {
    parts[part.key] = (*trace.idle).*part.seconds;
  }
  return parts;
}

void add_rows(const TraceSummary& trace, json& document) {
  for (const DeviceUse& device : trace.devices) {
    document["devices"].push_back({{"id", device.id}, {"busy_s", device.busy_s}});
  }
  for (const DeviceGap& gap : trace.gaps) {
    document["gaps"].push_back({{"begin_s", gap.begin_s}, {"seconds", gap.seconds}, {"host", gap.host}});
  }
  for (const KernelUse& kernel : trace.kernels) {
    document["kernels"].push_back({{"name", kernel.name},
                                   {"count", kernel.count},
                                   {"seconds", kernel.total_s},
                                   {"matrix_units", kernel.matrix_units}});
  }
  for (const CopyUse& copy : trace.copies) {
    document["copies"].push_back(
        {{"kind", copy.kind}, {"count", copy.count}, {"seconds", copy.total_s}, {"bytes", copy.bytes}});
  }
  for (const OperatorUse& use : trace.operators) {
    document["operators"].push_back({{"name", use.name}, {"count", use.count}, {"self_seconds", use.self_s}});
  }
  for (const FlopsOfType& of_type : trace.flops) {
    document["flops"].push_back({{"type", of_type.type}, {"flops", of_type.flops}});
  }
}

void take_rows(const json& document, TraceSummary& trace) {
  for (const json& row : document.at("devices")) {
    trace.devices.push_back({row.at("id"), row.at("busy_s")});
  }
  for (const json& row : document.at("gaps")) {
    trace.gaps.push_back({row.at("begin_s"), row.at("seconds"), row.at("host")});
  }
  for (const json& row : document.at("kernels")) {
    trace.kernels.push_back({row.at("name"), row.at("count"), row.at("seconds"), row.at("matrix_units")});
  }
  for (const json& row : document.at("copies")) {
    trace.copies.push_back({row.at("kind"), row.at("count"), row.at("seconds"), row.at("bytes")});
  }
  for (const json& row : document.at("operators")) {
    trace.operators.push_back({row.at("name"), row.at("count"), row.at("self_seconds")});
  }
  for (const json& row : document.value("flops", json::array())) {  // missing in older records
    trace.flops.push_back({row.at("type"), row.at("flops")});
  }
}

void take_all(const json& document, TraceSummary& trace) {
  take(document, "file", trace.file);
  take(document, "events", trace.events);
  take(document, "span_s", trace.span_s);
  take(document, "window_s", trace.window_s);
  take(document, "window_begin_us", trace.begin_us);
  take(document, "clock_zero_ns", trace.zero_ns);
  take_rows(document, trace);
  take(document, "kernel_count", trace.kernel_count);
  take(document, "kernel_s", trace.kernel_s);
  take(document, "matrix_unit_s", trace.matrix_s);
  take(document, "launches", trace.launches);
  take(document, "launch_s", trace.launch_s);
  take(document, "communication_s", trace.communication_s);
  take(document, "communication_alone_s", trace.communication_alone_s);
  take(document, "copying_s", trace.copying_s);
  take(document, "copying_alone_s", trace.copying_alone_s);
  if (const auto idle = document.find("idle"); idle != document.end() && idle->is_object()) {
    trace.idle.emplace();
    for (const IdlePart& part : kIdleParts) {
      take(*idle, part.key, (*trace.idle).*part.seconds);
    }
  }
  take(document, "python_frames", trace.python_frames);
  take(document, "rank", trace.rank);
  const json& steps = document.at("steps");
  take(steps, "count", trace.step_s.count);
  take(steps, "seconds", trace.step_s.sum);
  take(steps, "least_s", trace.step_s.least);
  take(steps, "most_s", trace.step_s.most);
  if (const auto parts = document.find("step"); parts != document.end() && parts->is_object()) {
    trace.parts.emplace();
    take(*parts, "input", trace.parts->input);
    take(*parts, "transfer", trace.parts->transfer);
    take(*parts, "sync", trace.parts->sync);
    take(*parts, "optimizer", trace.parts->optimizer);
    take(*parts, "rest", trace.parts->rest);
  }
  take(document, "syncs_per_step", trace.syncs_per_step);
  take(document, "loader_in_process", trace.loader_in_process);
  take(document, "unread_device", trace.unread_device);
  take(document, "device_name", trace.device_name);
  take(document, "capability", trace.capability);
  take(document, "device_memory", trace.device_memory);
}

}  // namespace

json to_json(const TraceSummary& trace) {
  json document = {{"schema", kSchema},
                   {"file", trace.file},
                   {"events", trace.events},
                   {"span_s", trace.span_s},
                   {"window_s", trace.window_s},
                   {"window_begin_us", trace.begin_us},
                   {"clock_zero_ns", or_null(trace.zero_ns)},
                   {"busy", or_null(trace.busy())},
                   {"unread_device", trace.unread_device},
                   {"device_name", trace.device_name},
                   {"capability", or_null(trace.capability)},
                   {"device_memory", or_null(trace.device_memory)},
                   {"kernel_count", trace.kernel_count},
                   {"kernel_s", trace.kernel_s},
                   {"matrix_unit_s", trace.matrix_s},
                   {"matrix_units", or_null(trace.matrix_share())},
                   {"launches", trace.launches},
                   {"launch_s", trace.launch_s},
                   {"communication_s", trace.communication_s},
                   {"communication_alone_s", trace.communication_alone_s},
                   {"copying_s", trace.copying_s},
                   {"copying_alone_s", trace.copying_alone_s},
                   {"idle", idle_of(trace)},
                   {"python_frames", trace.python_frames},
                   {"rank", or_null(trace.rank)},
                   {"steps",
                    {{"count", trace.step_s.count},
                     {"seconds", trace.step_s.sum},
                     {"least_s", trace.step_s.least},
                     {"most_s", trace.step_s.most}}},
                   {"step", parts_of(trace)},
                   {"syncs_per_step", or_null(trace.syncs_per_step)},
                   {"loader_in_process", or_null(trace.loader_in_process)},
                   {"flops_per_step", or_null(trace.flops_per_step())},
                   {"seconds_at_peak", or_null(trace.seconds_at_peak())}};
  for (const char* list : {"devices", "gaps", "kernels", "copies", "operators", "flops"}) {
    document[list] = json::array();
  }
  add_rows(trace, document);
  return document;
}

TraceSummary summary_from_json(const json& document, const std::string& from) {
  if (!document.is_object() || document.value("schema", json()) != kSchema) {
    throw Error(ErrorCode::kCorrupt, from, "holds no analysis of a trace");
  }
  TraceSummary trace;
  try {
    take_all(document, trace);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kCorrupt, from, std::string("holds a damaged analysis of a trace: ") + error.what());
  }
  return trace;
}

}  // namespace unidle::trace
