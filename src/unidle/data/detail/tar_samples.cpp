#include "unidle/data/detail/tar_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/natural_order.h"

namespace unidle::data::detail {

namespace {

namespace fs = std::filesystem;

bool ends_in(std::string_view suffix, std::initializer_list<std::string_view> kinds) {
  const std::string_view last = suffix.substr(suffix.rfind('.') + 1);
  return std::find(kinds.begin(), kinds.end(), last) != kinds.end();
}

/// What WebDataset keeps about an archive: in a folder such as "__info__".
bool is_about_archive(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

/// Splits a member's name into key and suffix; nothing for a name without suffix.
std::optional<std::pair<std::string, std::string>> parts_of_name(const std::string& name) {
  if (is_about_archive(name)) {
    return std::nullopt;
  }
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t point = name.find('.', begin);
  if (point == std::string::npos || point == begin) {
    return std::nullopt;
  }
  return std::pair(name.substr(0, point), lower(name.substr(point + 1)));
}

}  // namespace

bool is_picture_suffix(std::string_view suffix) { return ends_in(suffix, {"jpg", "jpeg", "png", "webp"}); }
bool is_tensor_suffix(std::string_view suffix) { return ends_in(suffix, {"npy"}); }
bool is_whole_suffix(std::string_view suffix) {
  return ends_in(suffix, {"cls", "cls2", "class", "count", "index", "inx", "id"});
}
bool is_json_suffix(std::string_view suffix) { return ends_in(suffix, {"json", "jsn"}); }

std::string_view stem_of(std::string_view suffix) {
  const std::size_t point = suffix.rfind('.');
  return suffix.substr(0, point == std::string_view::npos ? 0 : point);
}

const TarMember* TarSample::find(const std::vector<std::string>& suffixes) const {
  for (const std::string& suffix : suffixes) {
    for (const auto& [name, member] : members) {
      if (name == suffix) {
        return &member;
      }
    }
  }
  return nullptr;
}

std::size_t for_each_sample(std::vector<TarMember> members, const std::string& archive,
                            const std::function<void(const TarSample&)>& take) {
  std::size_t others = 0;
  TarSample sample;
  const auto finish = [&] {
    if (!sample.members.empty()) {
      take(sample);
    }
    sample.members.clear();
  };
  for (TarMember& member : members) {
    const auto parts = parts_of_name(member.name);
    if (!parts) {
      ++others;
      continue;
    }
    if (parts->first != sample.key) {
      finish();
      sample.key = parts->first;
    }
    if (sample.find({parts->second}) != nullptr) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", archive, member.name), "is there twice");
    }
    sample.members.emplace_back(parts->second, std::move(member));
  }
  finish();
  return others;
}

std::vector<std::string> find_archives(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    if (!fs::is_directory(status_of(path))) {
      found.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (lower(entry.path().extension().string()) == ".tar") {
        inside.push_back(entry.path().string());
      }
    }
    if (inside.empty()) {
      throw Error(ErrorCode::kInput, path, "has no *.tar");
    }
    std::sort(inside.begin(), inside.end(),
              [](const std::string& a, const std::string& b) { return natural_less(a, b); });
    found.insert(found.end(), inside.begin(), inside.end());
  }
  return found;
}

std::string_view trimmed(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto is_space = [](char c) { return is_blank(c) || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::int64_t whole_number(std::span<const std::byte> bytes, const std::string& subject) {
  const std::string_view text = trimmed(bytes);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorCode::kInput, subject,
                fmt::format("expected a whole number, found {:?}", text.substr(0, std::size_t{40})));
  }
  return value;
}

NpyHeader tensor_header(std::span<const std::byte> start, std::uint64_t bytes, const std::string& subject) {
  const std::size_t head = npy_header_bytes(start.first(std::min(start.size(), kNpyStartBytes)), subject);
  if (head > start.size()) {
    throw Error(ErrorCode::kInput, subject,
                head > bytes ? "is cut off in its npy header" : fmt::format("has an npy header of {} bytes", head));
  }
  NpyHeader header = read_npy_header(start.first(head), subject);
  if (header.data_bytes() != bytes - header.data_offset) {
    throw Error(ErrorCode::kInput, subject,
                fmt::format("has {} bytes of values; expected {}", bytes - header.data_offset, header.data_bytes()));
  }
  return header;
}

void copy_tensor(const NpyHeader& header, std::span<const std::byte> file, std::span<std::byte> to) {
  if (header.fortran && header.shape.size() > 1) {
    turn_to_rows(header, file.subspan(header.data_offset, to.size()), to);
  } else {
    std::memcpy(to.data(), file.data() + header.data_offset, to.size());
  }
  const std::size_t size = size_of(header.dtype);
  for (std::size_t at = 0; header.swapped && at < to.size(); at += size) {
    std::reverse(to.begin() + static_cast<std::ptrdiff_t>(at), to.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

}  // namespace unidle::data::detail
