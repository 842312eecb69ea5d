#include "unidle/logs/source.h"

#include <fcntl.h>
#include <iconv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::logs {

namespace {
constexpr std::size_t kStoredBlock = std::size_t{256} << 10U;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip header expected
}  // namespace

struct Source::Inflater {
  z_stream stream{};
  bool in_member = true;  // a file may end between members
  bool at_end = false;    // what follows the last member is padding

  Inflater() {
    if (::inflateInit2(&stream, kGzipWindow) != Z_OK) {
      throw Error(ErrorCode::kOutOfMemory, "gzip", "no memory to unpack with");
    }
  }
  ~Inflater() { ::inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

/// Converts UTF-16 to UTF-8. What is not valid becomes U+FFFD.
struct Source::Utf16 {
  iconv_t handle;
  std::string text;  // converted but not returned yet
  std::size_t at = 0;

  Utf16(const std::string& name, bool big_endian)
      : handle(::iconv_open("UTF-8", big_endian ? "UTF-16BE" : "UTF-16LE")) {
    if (handle == reinterpret_cast<iconv_t>(-1)) {  // NOLINT(performance-no-int-to-ptr): as iconv_open documents it
      throw system_error(ErrorCode::kInput, name, "is UTF-16, which this machine cannot convert", errno);
    }
  }
  ~Utf16() { ::iconv_close(handle); }
  Utf16(const Utf16&) = delete;
  Utf16& operator=(const Utf16&) = delete;

  /// Converts `bytes` to `text` and removes them, but for the start of a character that is not complete.
  void convert(std::string_view& bytes) {
    text.resize(2 * bytes.size() + 4);  // two bytes become at most three
    at = 0;
    char* in = const_cast<char*>(bytes.data());  // iconv does not write there
    char* out = text.data();
    std::size_t in_left = bytes.size();
    std::size_t out_left = text.size();
    while (::iconv(handle, &in, &in_left, &out, &out_left) == static_cast<std::size_t>(-1) && errno == EILSEQ) {
      constexpr std::string_view kReplacement = "\xef\xbf\xbd";
      std::memcpy(out, kReplacement.data(), kReplacement.size());
      out += kReplacement.size();
      out_left -= kReplacement.size();
      in += 2;
      in_left -= 2;
    }
    bytes.remove_prefix(bytes.size() - in_left);
    text.resize(text.size() - out_left);
  }
};

Source::Source(const std::filesystem::path& path, OnRead on_read) : name_(path.string()), on_read_(std::move(on_read)) {
  if (const auto kind = why_no_file(path)) {
    throw Error(ErrorCode::kInput, name_, *kind, "name log files, or a record's folder");
  }
  fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd_) {
    throw system_error(ErrorCode::kInput, name_, "cannot be opened", errno);
  }
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInput, name_, "is not a file", "name log files, or a record's folder");
  }
  stored_bytes_ = static_cast<std::uint64_t>(std::max<off_t>(0, status.st_size));
  ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  look_at_first_bytes();
}

Source::Source(std::string name, std::string_view bytes)
    : name_(std::move(name)), memory_(bytes), stored_bytes_(bytes.size()) {
  look_at_first_bytes();
}

Source::~Source() = default;

std::size_t Source::read_stored(std::span<char> into) {
  if (!fd_) {
    const std::size_t size = std::min(into.size(), memory_.size());
    std::memcpy(into.data(), memory_.data(), size);
    memory_.remove_prefix(size);
    return size;
  }
  for (;;) {
    const ssize_t got = ::read(fd_.get(), into.data(), into.size());
    if (got >= 0) {
      taken_bytes_ += static_cast<std::uint64_t>(got);
      if (on_read_) {
        on_read_(taken_bytes_, stored_bytes_);
      }
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR) {
      throw system_error(ErrorCode::kInput, name_, "cannot be read", errno);
    }
  }
}

void Source::look_at_first_bytes() {
  stored_.resize(kStoredBlock);
  stored_.resize(read_stored(stored_));
  if (stored_.size() >= 2 && stored_[0] == '\x1f' && stored_[1] == '\x8b') {
    inflater_ = std::make_unique<Inflater>();
  } else if (stored_.size() >= 2 && (stored_[0] == '\xff' || stored_[0] == '\xfe') &&
             static_cast<unsigned char>(stored_[0]) + static_cast<unsigned char>(stored_[1]) == 0xff + 0xfe) {
    utf16_ = std::make_unique<Utf16>(name_, stored_[0] == '\xfe');
    stored_at_ = 2;
  }
}

std::size_t Source::read(std::span<char> into) {
  if (into.empty()) {
    return 0;
  }
  if (inflater_ != nullptr) {
    return inflate_into(into);
  }
  if (utf16_ != nullptr) {
    return decode_into(into);
  }
  if (stored_at_ < stored_.size()) {
    const std::size_t size = std::min(into.size(), stored_.size() - stored_at_);
    std::memcpy(into.data(), stored_.data() + stored_at_, size);
    stored_at_ += size;
    return size;
  }
  return read_stored(into);
}

std::size_t Source::decode_into(std::span<char> into) {
  Utf16& utf16 = *utf16_;
  while (utf16.at == utf16.text.size()) {
    const std::size_t left = stored_.size() - stored_at_;
    std::string_view bytes(stored_.data() + stored_at_, left);
    utf16.convert(bytes);
    if (!utf16.text.empty()) {
      stored_at_ = stored_.size() - bytes.size();
      break;
    }
    std::memmove(stored_.data(), bytes.data(), bytes.size());  // the start of a character
    stored_at_ = 0;
    stored_.resize(kStoredBlock);
    const std::size_t got = read_stored(std::span(stored_).subspan(bytes.size()));
    stored_.resize(bytes.size() + got);
    if (got == 0) {
      return 0;  // a character that was cut off is left out
    }
  }
  const std::size_t size = std::min(into.size(), utf16.text.size() - utf16.at);
  std::memcpy(into.data(), utf16.text.data() + utf16.at, size);
  utf16.at += size;
  return size;
}

std::size_t Source::inflate_into(std::span<char> into) {
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), std::size_t{1} << 30U));
  const uInt wanted = stream.avail_out;
  while (stream.avail_out == wanted && !inflater_->at_end) {
    if (stored_at_ == stored_.size()) {
      stored_.resize(kStoredBlock);
      stored_.resize(read_stored(stored_));
      stored_at_ = 0;
      if (stored_.empty()) {
        if (inflater_->in_member) {
          throw Error(ErrorCode::kInput, name_, "the gzip stream is cut off", "a complete gzip file was expected");
        }
        return 0;
      }
    }
    if (!inflater_->in_member && stored_[stored_at_] != '\x1f') {  // gzip ignores it as well
      inflater_->at_end = true;
      break;
    }
    if (!inflater_->in_member) {  // another member follows
      ::inflateReset(&stream);
      inflater_->in_member = true;
    }
    stream.next_in = reinterpret_cast<Bytef*>(stored_.data() + stored_at_);
    stream.avail_in = static_cast<uInt>(stored_.size() - stored_at_);
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    stored_at_ = stored_.size() - stream.avail_in;
    if (result == Z_STREAM_END) {
      inflater_->in_member = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw Error(ErrorCode::kInput, name_, "the gzip stream is damaged", "a complete gzip file was expected");
    }
  }
  return wanted - stream.avail_out;
}

}  // namespace unidle::logs
