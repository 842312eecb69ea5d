#include "unidle/record/detail/ended.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"
#include "unidle/base/json.h"
#include "unidle/base/sqlite.h"
#include "unidle/record/detail/schema.h"
#include "unidle/record/record.h"

namespace unidle::record {

namespace fs = std::filesystem;

namespace {

/// The start of every SQLite file. Source: the file format's description, "The Database Header".
using Header = std::array<unsigned char, 100>;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kPageSizeAt = 16;
constexpr std::size_t kWriteVersionAt = 18;  // 1: a rollback journal, 2: a write-ahead log
constexpr std::size_t kUserVersionAt = 60;
constexpr std::size_t kApplicationIdAt = 68;

std::uint64_t number_at(const Header& header, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number = number << 8U | header[at + i];
  }
  return number;
}

/// A writer uses a write-ahead log while it runs and turns the record into one plain file at the end.
bool is_of_ended(const Header& header, std::uint64_t bytes) {
  const std::uint64_t page = number_at(header, kPageSizeAt, 2);
  return std::memcmp(header.data(), kMagic.data(), kMagic.size()) == 0 && header[kWriteVersionAt] == 1 && page > 1 &&
         bytes % page == 0 && number_at(header, kApplicationIdAt, 4) == kApplicationId &&
         number_at(header, kUserVersionAt, 4) <= kSchemaVersion;
}

/// Size and time of a file. If they differ, somebody has written to it.
struct State {
  std::uint64_t bytes = 0;
  std::int64_t seconds = 0;
  std::int64_t ns = 0;
  bool operator==(const State&) const = default;
};

std::optional<State> state_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  return State{static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

bool is_written_to(const fs::path& file) {
  return std::any_of(sqlite::kLeftovers.begin(), sqlite::kLeftovers.end(),
                     [&](const char* suffix) { return ::access((file.string() + suffix).c_str(), F_OK) == 0; });
}

std::optional<std::map<std::string, nlohmann::json>> read_values(const fs::path& file) {
  sqlite::Database db(file, sqlite::uri_of(file, "?immutable=1"), SQLITE_OPEN_READONLY, ErrorCode::kInput, kRecordKind);
  sqlite::Statement statement(db, "SELECT key, value FROM meta WHERE key IN (?, ?, ?, ?, ?, ?, ?)");
  statement.bind_all(meta::kStartedUtc, meta::kOutcome, meta::kExit, meta::kCommand, meta::kTier, meta::kStartNs,
                     meta::kEndNs);
  std::map<std::string, nlohmann::json> values;
  while (statement.step()) {
    nlohmann::json value = parse_json(statement.bytes(1));
    if (value.is_discarded()) {
      return std::nullopt;
    }
    values.emplace(statement.text(0), std::move(value));
  }
  return values;
}

}  // namespace

std::optional<std::map<std::string, nlohmann::json>> meta_of_ended(const fs::path& folder) try {
  const fs::path file = folder / "record.db";
  // O_NONBLOCK: opening a FIFO of that name must not wait.
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto before = opened ? state_of(opened.get()) : std::nullopt;
  Header header{};
  if (!before || ::pread(opened.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      !is_of_ended(header, before->bytes) || is_written_to(file)) {
    return std::nullopt;
  }
  auto values = read_values(file);
  // Read without SQLite's locks. If the file changed meanwhile, the caller reads it again with locks.
  const bool untouched = state_of(opened.get()) == before && !is_written_to(file);
  return untouched && values && values->contains(std::string(meta::kEndNs)) ? std::move(values) : std::nullopt;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace unidle::record
