#include "unidle/trace/detail/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/unfinished.h"

namespace unidle::trace::detail {

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20U;
constexpr int kGzip = 15 + 16;  // window bits with a gzip header

std::string text_of(const nlohmann::json& value) { return json_text(value, -1); }

/// Exact microseconds: viewers nest slices by their end times.
std::string microseconds(std::int64_t ns) {
  const std::int64_t whole = ns / 1000;
  const std::int64_t rest = std::abs(ns % 1000);
  return fmt::format("{}{}.{:03}", ns < 0 && whole == 0 ? "-" : "", whole, rest);
}

}  // namespace

struct EventFile::Deflater {
  Deflater() { ready = ::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK; }
  ~Deflater() { ::deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  z_stream stream{};
  bool ready = false;
};

EventFile::EventFile(const std::filesystem::path& path)
    : path_(path),
      target_(write_target(path)),
      temporary_(fmt::format("{}{}XXXXXX", target_.path.string(), kUnfinished)) {
  if (path.extension() == ".gz") {
    deflater_ = std::make_unique<Deflater>();
    if (!deflater_->ready) {
      fail(ENOMEM);
    }
  }
  fd_ = target_.in_place ? open_in_place(target_) : UniqueFd(::mkostemp(temporary_.data(), O_CLOEXEC));
  if (!fd_) {
    fail(errno);
  }
  buffer_.reserve(kBuffer + kBuffer / 4);
  buffer_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
}

EventFile::~EventFile() {
  if (fd_ && !target_.in_place) {
    fd_.reset();
    ::unlink(temporary_.c_str());
  }
}

void EventFile::fail(int error_number) {
  throw system_error(ErrorCode::kIo, path_.string(), "cannot be written", error_number);
}

void EventFile::begin_event() {
  if (buffer_.size() >= kBuffer) {
    flush(false);
  }
  if (events_++ > 0) {
    buffer_ += ",\n";
  }
}

void EventFile::slice(std::int64_t pid, std::int64_t tid, std::string_view name, std::int64_t t_ns,
                      std::int64_t duration_ns, const nlohmann::json& args) {
  begin_event();
  fmt::format_to(std::back_inserter(buffer_), R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{},"dur":{})", pid, tid,
                 text_of(name), microseconds(t_ns), microseconds(duration_ns));
  buffer_ += args.empty() ? "}" : ",\"args\":" + text_of(args) + "}";
}

void EventFile::counter(std::int64_t pid, std::string_view name, std::int64_t t_ns, double value) {
  if (!std::isfinite(value)) {
    return;
  }
  begin_event();
  fmt::format_to(std::back_inserter(buffer_), R"({{"ph":"C","pid":{},"name":{},"ts":{},"args":{{"value":{}}}}})", pid,
                 text_of(name), microseconds(t_ns), text_of(value));
}

void EventFile::instant(std::int64_t pid, std::string_view name, std::int64_t t_ns, const char* scope,
                        const nlohmann::json& args) {
  begin_event();
  fmt::format_to(std::back_inserter(buffer_), R"({{"ph":"i","s":"{}","pid":{},"tid":0,"name":{},"ts":{},"args":{}}})",
                 scope, pid, text_of(name), microseconds(t_ns), text_of(args));
}

void EventFile::name(std::int64_t pid, std::int64_t tid, std::string_view name, int order) {
  raw({{"ph", "M"},
       {"pid", pid},
       {"tid", tid},
       {"name", tid == 0 ? "process_name" : "thread_name"},
       {"args", {{"name", name}}}});
  if (tid == 0) {
    raw({{"ph", "M"}, {"pid", pid}, {"tid", 0}, {"name", "process_sort_index"}, {"args", {{"sort_index", order}}}});
  }
}

void EventFile::raw(const nlohmann::json& event) {
  begin_event();
  buffer_ += text_of(event);
}

void EventFile::flush(bool last) {
  if (!deflater_) {
    write(buffer_);
    buffer_.clear();
    return;
  }
  z_stream& stream = deflater_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(buffer_.data());
  stream.avail_in = static_cast<uInt>(buffer_.size());
  std::array<char, std::size_t{64} << 10U> packed{};
  int state = Z_OK;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    state = ::deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    write({packed.data(), packed.size() - stream.avail_out});
  } while (stream.avail_out == 0 || (last && state != Z_STREAM_END));
  buffer_.clear();
}

void EventFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      fail(errno);
    }
    bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
}

void EventFile::close(const nlohmann::json& about) {
  buffer_ += "\n],\"otherData\":" + text_of(about) + "}\n";
  flush(true);
  const bool shared = target_.in_place || ::fchmod(fd_.get(), usual_mode()) == 0;
  fd_.reset();
  if (!shared || (!target_.in_place && ::rename(temporary_.c_str(), target_.path.c_str()) != 0)) {
    const int error_number = errno;
    ::unlink(temporary_.c_str());
    fail(error_number);
  }
}

}  // namespace unidle::trace::detail
