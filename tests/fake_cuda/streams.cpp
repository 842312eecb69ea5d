// Calls about streams and events.
#include <algorithm>

#include "calls.h"

using namespace fake;

extern "C" {

int cudaStreamCreateWithPriority(void** out, unsigned, int) {
  Called call("cudaStreamCreate");
  if (call.error != 0) {
    return call.error;
  }
  machine().use(current_device);
  auto* made = new Stream;
  made->device = current_device;
  *out = made;
  return kSuccess;
}

int cudaStreamCreate(void** out) { return cudaStreamCreateWithPriority(out, 0, 0); }
int cudaStreamDestroy(void*) { return kSuccess; }
int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}

int cudaStreamQuery(void* handle) {
  Called call("cudaStreamQuery");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  Stream* stream = here.stream(handle);
  if (const int error = here.unsafe("cudaStreamQuery", stream)) {
    return failed(error);
  }
  here.settle(Machine::now());
  return stream->end_ns <= Machine::now() ? kSuccess : kNotReady;
}

int cudaStreamSynchronize(void* handle) {
  Called call("cudaStreamSynchronize");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  Stream* stream = here.stream(handle);
  if (const int error = here.unsafe("cudaStreamSynchronize", stream)) {
    return failed(error);
  }
  here.wait(call.held, stream->end_ns);
  return kSuccess;
}

int cudaStreamWaitEvent(void* handle, Event* event, unsigned) {
  Called call("cudaStreamWaitEvent");
  Stream* stream = machine().stream(handle);
  if (event->capture != nullptr && stream->capture == nullptr) {
    stream->capture = event->capture;
  }
  stream->end_ns = std::max(stream->end_ns, event->at_ns);
  return call.error;
}

int cudaEventCreateWithFlags(Event** out, unsigned flags) {
  Called call("cudaEventCreate");
  if (call.error != 0) {
    return call.error;
  }
  machine().use(current_device);
  *out = new Event;
  (*out)->device = current_device;
  (*out)->timing = (flags & 2U) == 0;
  return kSuccess;
}

int cudaEventCreate(Event** out) { return cudaEventCreateWithFlags(out, 0); }

int cudaEventDestroy(Event* event) {
  Called call("cudaEventDestroy");
  delete event;
  return call.error;
}

int cudaEventRecord(Event* event, void* handle) {
  Called call("cudaEventRecord");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  Stream* stream = here.stream(handle);
  if (stream->device != event->device) {
    here.say("other device: cudaEventRecord");
    return failed(kInvalidHandle);
  }
  here.use(stream->device);
  event->capture = stream->capture;
  event->recorded = true;
  event->at_ns = std::max(stream->end_ns, Machine::now());
  return kSuccess;
}

int cudaEventRecordWithFlags(Event* event, void* handle, unsigned) { return cudaEventRecord(event, handle); }

int cudaEventQuery(Event* event) {
  Called call("cudaEventQuery");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  if (const int error = here.unsafe("cudaEventQuery")) {
    return failed(error);
  }
  here.settle(Machine::now());
  return !event->recorded || event->at_ns <= Machine::now() ? kSuccess : kNotReady;
}

int cudaEventSynchronize(Event* event) {
  Called call("cudaEventSynchronize");
  if (call.error != 0) {
    return call.error;
  }
  if (const int error = machine().unsafe("cudaEventSynchronize")) {
    return failed(error);
  }
  machine().wait(call.held, event->at_ns);
  return kSuccess;
}

int cudaEventElapsedTime(float* ms, const Event* begin, const Event* end) {
  Called call("cudaEventElapsedTime");
  if (call.error != 0) {
    return call.error;
  }
  if (!begin->recorded || !end->recorded || !begin->timing || !end->timing || begin->device != end->device) {
    return failed(kInvalidHandle);
  }
  if (std::max(begin->at_ns, end->at_ns) > Machine::now()) {
    return kNotReady;
  }
  *ms = static_cast<float>(static_cast<double>(end->at_ns - begin->at_ns) * 1e-6);
  return kSuccess;
}

}  // extern "C"
