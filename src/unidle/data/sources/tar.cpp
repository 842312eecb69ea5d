#include "unidle/data/sources/tar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/split.h"
#include "unidle/data/detail/natural_order.h"
#include "unidle/data/detail/scratch_pool.h"
#include "unidle/data/detail/tar_index.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

namespace fs = std::filesystem;

struct TarSource::Pool : detail::ScratchPool<std::vector<std::byte>> {};

/// Members that belong together.
struct TarSource::Sample {
  std::size_t file = 0;
  std::string key;
  std::vector<std::pair<std::string, detail::TarMember>> members;  // by suffix

  const detail::TarMember* find(const std::vector<std::string>& suffixes) const {
    for (const std::string& suffix : suffixes) {
      for (const auto& [name, member] : members) {
        if (name == suffix) {
          return &member;
        }
      }
    }
    return nullptr;
  }
};

namespace {

bool is_among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool is_picture_suffix(std::string_view suffix) { return is_among(suffix, {"jpg", "jpeg", "png", "webp"}); }
bool is_whole_suffix(std::string_view suffix) {
  return is_among(suffix, {"cls", "cls2", "class", "count", "index", "inx", "id"});
}
bool is_tensor_suffix(std::string_view suffix) { return suffix == "npy" || suffix.ends_with(".npy"); }

/// Key and suffix of a member's name; nothing for a name without them.
std::optional<std::pair<std::string, std::string>> parts_of_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t point = name.find('.', begin);
  if (point == std::string::npos || point == begin) {
    return std::nullopt;
  }
  return std::pair(name.substr(0, point), lower(name.substr(point + 1)));
}

std::vector<std::string> archives_of(const std::vector<std::string>& paths) {
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
              [](const std::string& a, const std::string& b) { return detail::natural_less(a, b); });
    found.insert(found.end(), inside.begin(), inside.end());
  }
  if (found.empty()) {
    throw Error(ErrorCode::kUsage, "tar option paths", "expected at least one archive");
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

/// The number at a key, "a.b" for {"a": {"b": 1}}.
nlohmann::json number_at(std::span<const std::byte> bytes, std::string_view key, const std::string& subject) {
  nlohmann::json value = parse_json(trimmed(bytes));
  for (std::string_view rest = key; value.is_object();) {
    const std::size_t point = std::min(rest.find('.'), rest.size());
    const auto found = value.find(rest.substr(0, point));
    if (found == value.end()) {
      break;
    }
    value = nlohmann::json(*found);
    if (point == rest.size()) {
      break;
    }
    rest.remove_prefix(point + 1);
  }
  if (value.is_boolean()) {
    value = value.get<bool>() ? 1 : 0;
  }
  if (!value.is_number()) {
    throw Error(ErrorCode::kInput, subject, fmt::format("expected a number at {}", key));
  }
  return value;
}

void copy_values(std::span<const std::byte> from, std::size_t size, bool swapped, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), to.size());
  for (std::size_t at = 0; swapped && at < to.size(); at += size) {
    std::reverse(to.begin() + static_cast<std::ptrdiff_t>(at), to.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

detail::NpyHeader tensor_header(std::span<const std::byte> bytes, const std::string& subject) {
  const std::size_t head =
      detail::npy_header_bytes(bytes.first(std::min(bytes.size(), detail::kNpyStartBytes)), subject);
  if (head > bytes.size()) {
    throw Error(ErrorCode::kInput, subject, "is cut off in its npy header");
  }
  detail::NpyHeader header = detail::read_npy_header(bytes.first(head), subject);
  if (header.fortran && header.shape.size() > 1) {
    throw Error(ErrorCode::kInput, subject, "is in Fortran order; expected rows one after the other");
  }
  if (header.data_bytes() != bytes.size() - header.data_offset) {
    throw Error(
        ErrorCode::kInput, subject,
        fmt::format("has {} bytes of values; expected {}", bytes.size() - header.data_offset, header.data_bytes()));
  }
  return header;
}

}  // namespace

TarSource::Wanted TarSource::wanted_of(const std::string& text) {
  if (text.starts_with("json:") && text.size() > 5) {
    return {{"json"}, Kind::kJson, text.substr(5), {}};
  }
  Wanted wanted{{}, Kind::kPicture, {}, {}};
  for (const std::string_view suffix : split(text, ';')) {
    wanted.suffixes.push_back(lower(suffix));
  }
  const auto all = [&](bool (*is_one)(std::string_view)) {
    return std::all_of(wanted.suffixes.begin(), wanted.suffixes.end(), is_one);
  };
  if (all(is_picture_suffix)) {
    return wanted;
  }
  if (!all(is_tensor_suffix) && !all(is_whole_suffix)) {
    throw Error(ErrorCode::kUsage, "tar option fields",
                fmt::format("expected pictures (jpg, jpeg, png, webp), npy, cls or json:KEY, found {}", text));
  }
  wanted.kind = all(is_tensor_suffix) ? Kind::kTensor : Kind::kWhole;
  return wanted;
}

TarSource::TarSource(const TarOptions& options)
    : files_(std::make_unique<detail::OpenFiles>()),
      pictures_(options.pictures, "tar"),
      pool_(std::make_unique<Pool>()) {
  for (const std::string& path : archives_of(options.paths)) {
    const std::size_t file = files_->add(path);
    ++shards_;
    Sample sample{file, {}, {}};
    const auto finish = [&] {
      if (!sample.members.empty()) {
        if (wanted_.empty()) {
          choose_fields(options.fields, sample);
        }
        take(sample);
      }
      sample.members.clear();
    };
    for (detail::TarMember& member : detail::tar_members(*files_, file)) {
      const auto parts = parts_of_name(member.name);
      if (!parts) {
        continue;
      }
      if (parts->first != sample.key) {
        finish();
        sample.key = parts->first;
      }
      if (sample.find({parts->second}) != nullptr) {
        throw Error(ErrorCode::kInput, fmt::format("{}:{}", path, member.name), "is there twice");
      }
      sample.members.emplace_back(parts->second, std::move(member));
    }
    finish();
  }
  if (keys_.empty()) {
    throw Error(ErrorCode::kInput, options.paths.front(), "holds no samples; expected files as 0001.jpg and 0001.cls");
  }
}

TarSource::~TarSource() = default;

void TarSource::choose_fields(std::vector<std::string> names, const Sample& first) {
  if (names.empty()) {
    for (const auto& [suffix, member] : first.members) {
      if (is_picture_suffix(suffix) || is_tensor_suffix(suffix) || is_whole_suffix(suffix)) {
        names.push_back(suffix);
      }
    }
    if (names.empty()) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", files_->path(first.file), first.key),
                  "has neither picture nor npy nor cls", "name the fields, as json:KEY");
    }
  }
  for (const std::string& name : names) {
    wanted_.push_back(wanted_of(name));
    lay_out_field(name.starts_with("json:") ? name.substr(5) : wanted_.back().suffixes.front(), wanted_.back(), first);
  }
}

void TarSource::lay_out_field(const std::string& name, Wanted& wanted, const Sample& first) {
  const detail::TarMember* member = first.find(wanted.suffixes);
  if (member == nullptr) {
    return;  // take() says so
  }
  const std::string subject = fmt::format("{}:{}", files_->path(first.file), member->name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(member->bytes));
  files_->read(first.file, member->offset, bytes);
  Field field{name, DType::kI64, {}};
  if (wanted.kind == Kind::kPicture) {
    field = pictures_.field();
    field.name = name;
  } else if (wanted.kind == Kind::kTensor) {
    wanted.header = tensor_header(bytes, subject);
    field = {name, wanted.header.dtype, wanted.header.shape};
  } else if (wanted.kind == Kind::kJson && !number_at(bytes, wanted.key, subject).is_number_integer()) {
    field.dtype = DType::kF32;
  }
  fields_.push_back(field);
}

void TarSource::take(const Sample& sample) {
  for (const Wanted& wanted : wanted_) {
    const detail::TarMember* member = sample.find(wanted.suffixes);
    if (member == nullptr) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", files_->path(sample.file), sample.key),
                  fmt::format("has no .{}", fmt::join(wanted.suffixes, " and no .")));
    }
    pieces_.push_back({sample.file, member->offset, member->bytes});
  }
  keys_.push_back(sample.key);
}

std::string TarSource::subject(std::int64_t item, std::size_t field) const {
  const auto number = static_cast<std::size_t>(item);
  const Piece& piece = pieces_[number * wanted_.size() + field];
  return fmt::format("{}:{}.{}", files_->path(piece.file), keys_[number], wanted_[field].suffixes.front());
}

void TarSource::make(const Wanted& wanted, std::span<const std::byte> bytes, const std::string& subject,
                     const ItemRequest& request, std::span<std::byte> to) const {
  switch (wanted.kind) {
    case Kind::kPicture: pictures_.make(bytes, subject, request, to); return;
    case Kind::kTensor: {
      const detail::NpyHeader header = tensor_header(bytes, subject);
      if (header.dtype != wanted.header.dtype || header.shape != wanted.header.shape) {
        throw Error(ErrorCode::kInput, subject,
                    fmt::format("is {} [{}]; expected {} [{}], as of the first sample", name_of(header.dtype),
                                fmt::join(header.shape, ", "), name_of(wanted.header.dtype),
                                fmt::join(wanted.header.shape, ", ")));
      }
      copy_values(bytes.subspan(header.data_offset), size_of(header.dtype), header.swapped, to);
      return;
    }
    case Kind::kWhole: {
      const std::int64_t value = whole_number(bytes, subject);
      std::memcpy(to.data(), &value, sizeof value);
      return;
    }
    case Kind::kJson: {
      const nlohmann::json value = number_at(bytes, wanted.key, subject);
      if (to.size() == sizeof(float)) {
        const auto real = value.get<float>();
        std::memcpy(to.data(), &real, sizeof real);
      } else if (value.is_number_integer()) {
        const auto whole = value.get<std::int64_t>();
        std::memcpy(to.data(), &whole, sizeof whole);
      } else {
        throw Error(ErrorCode::kInput, subject,
                    fmt::format("expected a whole number at {}, as the first sample has", wanted.key));
      }
      return;
    }
  }
}

std::uint64_t TarSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  Pool::Lease scratch(*pool_);
  std::uint64_t sum = 0;
  const std::size_t first = static_cast<std::size_t>(request.item) * wanted_.size();
  for (std::size_t field = 0; field < wanted_.size(); ++field) {
    const Piece& piece = pieces_[first + field];
    scratch->resize(std::max<std::size_t>(scratch->size(), piece.bytes));
    const std::span bytes(scratch->data(), static_cast<std::size_t>(piece.bytes));
    files_->read(piece.file, piece.offset, bytes);
    make(wanted_[field], bytes, subject(request.item, field), request, samples[0][field]);
    sum += piece.bytes;
  }
  return sum;
}

std::string TarSource::describe() const { return json_text(nlohmann::json{{"shards", shards_}}, -1); }

namespace sources {

namespace {

std::unique_ptr<Source> open_tar(SourceOptions& options, std::span<const ArrayView>) {
  TarOptions wanted;
  wanted.paths = options.texts("paths", {});
  wanted.fields = options.texts("fields", {});
  wanted.pictures = image_options(options, "tar");
  options.done();
  if (wanted.pictures.tell_crop) {
    throw Error(ErrorCode::kUsage, "tar option tell_crop", "is for images alone");
  }
  return std::make_unique<TarSource>(wanted);
}

}  // namespace

const SourceKind& tar() {
  static const SourceKind kKind = {"tar", open_tar};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
