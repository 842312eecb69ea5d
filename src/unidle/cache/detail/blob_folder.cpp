#include "unidle/cache/detail/blob_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "unidle/base/error.h"

namespace unidle::cache::detail {

namespace {

constexpr std::size_t kReadAtOnce = 1 << 20;  // larger files are read as fast through a mapping

/// Reads less than requested only at the end of the file. Negative when it cannot be read.
ssize_t read_beginning(int fd, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno != EINTR) {
      return -1;
    }
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

BlobFolder::BlobFolder(const BlobFiles& files, std::size_t part) : files_(files) {
  const std::filesystem::path path = files.folder_of(part);
  listing_.reset(::opendir(path.c_str()));
  if (!listing_) {
    if (errno == EMFILE || errno == ENFILE) {
      throw system_error(ErrorCode::kIo, path.string(), "cannot be listed", errno);
    }
    return;
  }
  std::vector<std::pair<ino_t, Key>> found;
  while (const dirent* entry = ::readdir(listing_.get())) {
    const auto key = Key::from_hex(entry->d_name);
    if (key && key->bytes[0] == part) {
      found.emplace_back(entry->d_ino, *key);
    }
  }
  std::sort(found.begin(), found.end());
  keys_.reserve(found.size());
  for (const auto& [inode, key] : found) {
    keys_.push_back(key);
  }
}

UniqueFd BlobFolder::open(const Key& key) const {
  return UniqueFd(::openat(::dirfd(listing_.get()), key.hex().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

std::optional<std::uint64_t> BlobFolder::bytes(const Key& key) const {
  struct stat status {};
  return ::fstatat(::dirfd(listing_.get()), key.hex().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
             ? std::optional(static_cast<std::uint64_t>(status.st_size))
             : std::nullopt;
}

std::optional<BlobFacts> BlobFolder::facts(const Key& key) const {
  std::array<std::byte, kNameBytes> begin{};
  struct stat status {};
  const UniqueFd fd = open(key);
  if (!fd) {  // e.g. no permission
    const auto size = bytes(key);
    return size ? std::optional(BlobFacts{key, *size, false}) : std::nullopt;
  }
  const ssize_t got = read_beginning(fd.get(), begin);
  if (::fstat(fd.get(), &status) != 0) {
    return std::nullopt;
  }
  const auto there = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  return BlobFacts{key, static_cast<std::uint64_t>(status.st_size), is_named_blob(std::span(begin).first(there))};
}

CheckedBlob BlobFolder::check(const Key& key, std::vector<std::byte>& buffer) const {
  using State = OpenedBlob::State;
  const UniqueFd fd = open(key);
  if (!fd && errno == ENOENT) {
    return {};
  }
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) > kReadAtOnce) {
    const OpenedBlob opened = files_.open(key);
    return {opened.state, opened.held ? opened.held->bytes : 0};
  }
  const auto length = static_cast<std::size_t>(status.st_size);
  buffer.resize(std::max(buffer.size(), length));
  const std::span<std::byte> content(buffer.data(), length);
  const ssize_t got = read_beginning(fd.get(), content);
  if (got < 0) {
    return {State::kUnreadable, 0};
  }
  switch (parse_blob(content.first(static_cast<std::size_t>(got)), key).state) {
    case BlobState::kGood: return {State::kGood, content.size()};
    case BlobState::kNewer: return {State::kNewer, 0};
    case BlobState::kDamaged: return {State::kDamaged, 0};
  }
  return {};
}

}  // namespace unidle::cache::detail
