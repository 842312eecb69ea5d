#include "unidle/data/detail/tar_index.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/foreign_bytes.h"

namespace unidle::data::detail {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kMostNameBytes = std::uint64_t{1} << 20;
constexpr int kIndexVersion = 3;  // version 1 could stop at the first of several archives, 2 lacked links

using Block = std::array<char, kBlock>;

std::string_view field_text(const Block& block, std::size_t at, std::size_t bytes) {
  const std::string_view field(block.data() + at, bytes);
  return field.substr(0, field.find('\0'));
}

/// Parses octal digits or, for larger numbers, the binary form behind a marker.
std::optional<std::uint64_t> number_in_field(const Block& block, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(block[at]) & 0x80U) != 0) {
    for (std::size_t i = 1; i < bytes; ++i) {
      if (value >> 55 != 0) {
        return std::nullopt;
      }
      value = value << 8 | static_cast<unsigned char>(block[at + i]);
    }
    return value;
  }
  std::string_view digits = field_text(block, at, bytes);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  const bool all = error == std::errc() && end == digits.data() + digits.size();
  return digits.empty() ? std::optional<std::uint64_t>(0) : all ? std::optional(value) : std::nullopt;
}

bool has_its_checksum(const Block& block) {
  constexpr std::size_t kAt = 148;
  constexpr std::size_t kBytes = 8;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    sum += i >= kAt && i < kAt + kBytes ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number_in_field(block, kAt, kBytes) == sum;
}

/// Iterates over the headers.
class TarReader {
 public:
  TarReader(OpenFiles& files, std::size_t file) : files_(files), file_(file), end_(files.bytes(file)) {}

  std::vector<TarMember> run() {
    refuse_other_bytes();
    read_all();
    follow_links();
    return std::move(members_);
  }

 private:
  void read_all() {
    Block block{};
    while (at_ + kBlock <= end_) {
      read(at_, block.data(), kBlock);
      if (is_empty(block)) {
        require_end();
        return;
      }
      take(block);
    }
    if (at_ != end_) {  // in the middle of a header or of a member's last block
      fail(fmt::format("is cut off at byte {}", end_));
    }
  }

  static bool is_empty(const Block& block) {
    return std::all_of(block.begin(), block.end(), [](char byte) { return byte == 0; });
  }

  /// Throws when anything but padding follows the first empty block: several archives may be in one file.
  void require_end() const {
    std::vector<char> piece(std::size_t{64} << 10);
    for (std::uint64_t at = at_; at < end_; at += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), end_ - at)));
      read(at, piece.data(), piece.size());
      const auto more = std::find_if(piece.begin(), piece.end(), [](char byte) { return byte != 0; });
      if (more != piece.end()) {
        const std::uint64_t found = at + static_cast<std::uint64_t>(more - piece.begin());
        fail(fmt::format("ends at byte {}, and more follows at byte {}", at_, found / kBlock * kBlock),
             "is it damaged, or are these several tars in one file? Give them as several files");
      }
    }
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    throw Error(ErrorCode::kInput, files_.path(file_), what, hint);
  }
  void read(std::uint64_t offset, char* to, std::size_t bytes) const {
    files_.read(file_, offset, std::as_writable_bytes(std::span(to, bytes)));
  }

  /// Rejects compressed archives, which may be shorter than a header.
  void refuse_other_bytes() const {
    std::string head(static_cast<std::size_t>(std::min<std::uint64_t>(end_, kForeignHeadBytes)), '\0');
    read(0, head.data(), head.size());
    if (const auto foreign = foreign_bytes(head)) {
      fail(foreign->what + "; expected a plain tar, whose files can be read at random", foreign->hint);
    }
  }

  void take(const Block& block) {
    const std::optional<std::uint64_t> size = number_in_field(block, 124, 12);
    if (!size || !has_its_checksum(block)) {
      fail(fmt::format("has no tar header at byte {}", at_));
    }
    const char kind = block[156];
    const std::uint64_t data = at_ + kBlock;
    const bool has_data = kind == '\0' || kind == '0' || kind > '6';
    const std::uint64_t bytes = kind == '\0' || kind == '0' || kind == '7' ? large_size_.value_or(*size) : *size;
    if (has_data && bytes > end_ - data) {
      fail(fmt::format("is cut off in the file {}", name_of(block)));
    }
    at_ = data + (has_data ? (bytes + kBlock - 1) / kBlock * kBlock : 0);
    if (kind == 'L') {
      long_name_ = extra(data, bytes);
      long_name_.erase(std::min(long_name_.find('\0'), long_name_.size()));
    } else if (kind == 'K') {
      long_target_ = extra(data, bytes);
      long_target_.erase(std::min(long_target_.find('\0'), long_target_.size()));
    } else if (kind == 'x') {
      take_pax(extra(data, bytes));
    } else if (kind == 'S' || sparse_) {
      fail(fmt::format("has the sparse file {}; expected plain ones", name_of(block)));
    } else if (kind != 'g') {
      if (kind == '\0' || kind == '0' || kind == '7') {
        members_.push_back({name_of(block), data, bytes});
      } else if (kind == '1' || kind == '2') {
        links_.push_back({members_.size(), kind == '2', target_of(block)});
        members_.push_back({name_of(block), 0, 0});
      }
      long_name_.clear();
      long_target_.clear();
      large_size_.reset();
    }
  }

  /// Gives hard and symbolic links the data of their targets. A link out of the archive that has a suffix, and so
  /// belongs to a sample, is an error.
  void follow_links() {
    if (links_.empty()) {
      return;
    }
    std::map<std::string, std::size_t, std::less<>> places;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      places.insert_or_assign(clean(members_[i].name), i);
    }
    std::map<std::size_t, std::size_t> targets;  // of links
    for (const Link& link : links_) {
      const std::string folder = fs::path(members_[link.member].name).parent_path().string();
      const auto found = places.find(clean(link.symbolic ? (fs::path(folder) / link.target).string() : link.target));
      targets[link.member] = found == places.end() ? kNowhere : found->second;
    }
    std::vector<TarMember> members;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      std::size_t at = i;
      for (std::size_t steps = 0; targets.contains(at); ++steps) {
        at = steps > targets.size() ? kNowhere : targets[at];  // a circle leads nowhere
      }
      if (at != kNowhere) {
        members.push_back({std::move(members_[i].name), members_[at].offset, members_[at].bytes});
      } else if (fs::path(members_[i].name).has_extension()) {
        fail(fmt::format("has the link {}, which leads to no file in it", members_[i].name),
             "tar --dereference stores the files themselves");
      }
    }
    members_ = std::move(members);
  }

  static std::string clean(const std::string& name) { return fs::path(name).lexically_normal().string(); }

  std::string target_of(const Block& block) const {
    return long_target_.empty() ? std::string(field_text(block, 157, 100)) : long_target_;
  }

  std::string extra(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes > kMostNameBytes) {
      fail(fmt::format("has a name of {} bytes", bytes));
    }
    std::string text(static_cast<std::size_t>(bytes), '\0');
    read(offset, text.data(), text.size());
    return text;
  }

  /// Parses lines "LENGTH KEY=VALUE".
  void take_pax(std::string_view text) {
    while (!text.empty()) {
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
      const auto digits = static_cast<std::size_t>(end - text.data());
      if (error != std::errc() || length <= digits + 1 || length > text.size()) {
        return;
      }
      std::string_view entry = text.substr(digits + 1, length - digits - 2);
      sparse_ = sparse_ || entry.starts_with("GNU.sparse.");
      if (entry.starts_with("path=")) {
        long_name_ = entry.substr(5);
      } else if (entry.starts_with("linkpath=")) {
        long_target_ = entry.substr(9);
      } else if (entry.starts_with("size=")) {
        std::uint64_t size = 0;
        entry.remove_prefix(5);
        if (std::from_chars(entry.data(), entry.data() + entry.size(), size).ec == std::errc()) {
          large_size_ = size;
        }
      }
      text.remove_prefix(length);
    }
  }

  std::string name_of(const Block& block) const {
    if (!long_name_.empty()) {
      return long_name_;
    }
    const std::string name(field_text(block, 0, 100));
    const std::string_view folder =
        block[262] == '\0' && field_text(block, 257, 5) == "ustar" ? field_text(block, 345, 155) : std::string_view();
    return folder.empty() ? name : fmt::format("{}/{}", folder, name);
  }

  OpenFiles& files_;
  std::size_t file_;
  std::uint64_t end_;
  std::uint64_t at_ = 0;
  struct Link {
    std::size_t member;
    bool symbolic;
    std::string target;
  };

  std::string long_name_;    // of the next member
  std::string long_target_;  // of the next member, if it is a link
  std::optional<std::uint64_t> large_size_;
  bool sparse_ = false;  // the next member is sparse, by its pax header
  std::vector<TarMember> members_;
  std::vector<Link> links_;
};

/// Identifies the state of the archive, to detect changes.
json fingerprint_of(const OpenFiles& files, std::size_t file) {
  const timespec changed = files.changed(file);
  return {kIndexVersion, static_cast<std::int64_t>(files.bytes(file)), changed.tv_sec, changed.tv_nsec};
}

/// An index is its own hash followed by a CBOR document.
std::optional<std::vector<TarMember>> members_in_index(const std::string& index, const json& wanted,
                                                       std::uint64_t end) {
  std::uint64_t hash = 0;
  if (index.size() < sizeof hash) {
    return std::nullopt;
  }
  std::memcpy(&hash, index.data(), sizeof hash);
  const std::string_view document = std::string_view(index).substr(sizeof hash);
  if (XXH3_64bits(document.data(), document.size()) != hash) {
    return std::nullopt;
  }
  const json all = json::from_cbor(document, true, false);
  if (!all.is_array() || all.size() != 2 || all[0] != wanted) {
    return std::nullopt;
  }
  std::vector<TarMember> members;
  for (const json& one : all[1]) {
    if (!one.is_array() || one.size() != 3 || !one[0].is_binary() || !one[1].is_number_unsigned() ||
        !one[2].is_number_unsigned()) {
      return std::nullopt;
    }
    const auto& bytes = one[0].get_binary();
    members.push_back({std::string(bytes.begin(), bytes.end()), one[1], one[2]});
    if (members.back().offset > end || members.back().bytes > end - members.back().offset) {
      return std::nullopt;
    }
  }
  return members;
}

std::string index_of(const std::vector<TarMember>& members, const json& fingerprint) {
  json rows = json::array();
  for (const TarMember& member : members) {
    rows.push_back({json::binary({member.name.begin(), member.name.end()}), member.offset, member.bytes});
  }
  const std::vector<std::uint8_t> document = json::to_cbor(json{fingerprint, std::move(rows)});
  const std::uint64_t hash = XXH3_64bits(document.data(), document.size());
  std::string index(sizeof hash, '\0');
  std::memcpy(index.data(), &hash, sizeof hash);
  return index.append(document.begin(), document.end());
}

}  // namespace

std::vector<TarMember> read_tar(OpenFiles& files, std::size_t file) { return TarReader(files, file).run(); }

std::vector<TarMember> tar_members(OpenFiles& files, std::size_t file) {
  const std::string& path = files.path(file);
  const std::string index = path + ".unidle-index";
  const json fingerprint = fingerprint_of(files, file);
  if (const std::optional<std::string> kept = try_read_file(index)) {
    if (auto members = members_in_index(*kept, fingerprint, files.bytes(file))) {
      return std::move(*members);
    }
  }
  std::vector<TarMember> members = read_tar(files, file);
  try {
    write_file_atomic(index, index_of(members, fingerprint));
  } catch (const Error&) {
    return members;  // e.g. a read-only folder: the archive is read again next time
  }
  return members;
}

}  // namespace unidle::data::detail
