#include "unidle/data/sources/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/natural_order.h"
#include "unidle/data/source_kind.h"
#include "unidle/data/sources/arrays.h"

namespace unidle::data {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> list_files(const fs::path& folder, std::string_view extension) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.front() != '.' && name.ends_with(extension)) {
      names.push_back(name);
    }
  }
  if (error) {
    throw Error(ErrorCode::kInput, folder.string(), fmt::format("cannot be listed: {}", error.message()));
  }
  std::sort(names.begin(), names.end(), detail::natural_less);
  return names;
}

/// True when NAME.npy belongs to the field: FIELD, FIELD_*, *_FIELD.
bool belongs(std::string_view name, std::string_view field) {
  const auto parts = [](char c) { return c == '_' || c == '-' || c == '.'; };
  name.remove_suffix(std::string_view(".npy").size());
  return name == field || (name.starts_with(field) && parts(name[field.size()])) ||
         (name.ends_with(field) && parts(name[name.size() - field.size() - 1]));
}

/// Assigns files to fields; a file that fits several belongs to the longest name.
std::map<std::string, std::vector<std::string>> files_by_field(const fs::path& folder,
                                                               const std::vector<std::string>& fields) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& name : list_files(folder, ".npy")) {
    const std::string* best = nullptr;
    for (const std::string& field : fields) {
      if (belongs(name, field) && (best == nullptr || field.size() > best->size())) {
        best = &field;
      }
    }
    if (best != nullptr) {
      files[*best].push_back((folder / name).string());
    }
  }
  return files;
}

void swap_bytes(std::span<std::byte> values, std::size_t size) {
  for (std::size_t at = 0; at + size <= values.size(); at += size) {
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(at),
                 values.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

/// "image" from "image_0001", "0001-image" and "image"; nothing from a number.
std::string name_without_number(std::string_view stem) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kBetween = "_-.";
  const std::size_t last = stem.find_last_not_of(kDigits);
  if (last + 1 < stem.size() && last != std::string_view::npos && kBetween.find(stem[last]) != std::string_view::npos) {
    stem = stem.substr(0, last);
  }
  const std::size_t first = stem.find_first_not_of(kDigits);
  if (first != 0 && first != std::string_view::npos && kBetween.find(stem[first]) != std::string_view::npos) {
    stem = stem.substr(first + 1);
  }
  return std::string(stem);
}

std::vector<detail::ZipMember> members_of(detail::OpenFiles& files, std::size_t file) {
  const std::string& path = files.path(file);
  const std::uint64_t size = files.bytes(file);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, detail::kZipEndBytes)));
  files.read(file, size - bytes.size(), bytes);
  const detail::ZipDirectory directory = detail::find_zip_directory(bytes, size, path);
  bytes.resize(static_cast<std::size_t>(directory.bytes));
  files.read(file, directory.offset, bytes);
  return detail::read_zip_directory(bytes, size, path);
}

/// The arrays of an archive.
std::set<std::string> arrays_in(const std::string& archive) {
  constexpr std::string_view kEnd = ".npy";
  detail::OpenFiles files;
  std::set<std::string> names;
  for (const detail::ZipMember& member : members_of(files, files.add(archive))) {
    if (member.name.ends_with(kEnd)) {
      names.insert(member.name.substr(0, member.name.size() - kEnd.size()));
    }
  }
  return names;
}

bool is_zip(const std::string& path) { return lower(fs::path(path).extension().string()) == ".npz"; }

/// The length of a shard if all but the last have the same, otherwise the average; or an even part of it, so that a
/// window of several fits into memory.
std::int64_t rows_of_a_run(const std::vector<std::int64_t>& ends, std::size_t row_bytes) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  bool alike = true;
  for (std::size_t shard = 1; shard + 1 < ends.size(); ++shard) {
    alike = alike && ends[shard] - ends[shard - 1] == ends.front();
  }
  const auto shards = static_cast<std::int64_t>(ends.size());
  const std::int64_t rows = std::max<std::int64_t>(1, alike ? ends.front() : (ends.back() + shards - 1) / shards);
  const auto parts =
      static_cast<std::int64_t>((static_cast<std::size_t>(rows) * row_bytes + kMostBytes - 1) / kMostBytes);
  return parts > 1 ? (rows + parts - 1) / parts : rows;
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

}  // namespace

NpySource::NpySource(const std::string& path, std::vector<std::string> field_names)
    : files_(std::make_unique<detail::OpenFiles>()) {
  if (!fs::is_directory(status_of(path)) && is_zip(path)) {
    for (const std::string& name : field_names.empty() ? find_fields(path) : field_names) {
      take_shards(name, open_archives(name, {path}));
    }
    if (fields_.empty()) {
      throw Error(ErrorCode::kInput, path, "holds no array");
    }
    return;
  }
  if (!fs::is_directory(status_of(path))) {
    add_field(field_names.empty() ? fs::path(path).stem().string() : field_names.front(), {path});
    if (field_names.size() > 1) {
      throw Error(ErrorCode::kUsage, "npy option fields", "a single file has one field");
    }
    return;
  }
  std::vector<std::string> archives = list_files(path, ".npz");
  for (std::string& archive : archives) {
    archive = (fs::path(path) / archive).string();
  }
  const auto files = files_by_field(path, field_names);
  for (const std::string& name : field_names) {
    const fs::path folder = fs::path(path) / name;
    if (fs::is_directory(status_of(folder))) {
      std::vector<std::string> inside = list_files(folder, ".npy");
      for (std::string& file : inside) {
        file = (folder / file).string();
      }
      add_field(name, inside);
    } else if (files.contains(name)) {
      add_field(name, files.at(name));
    } else {
      take_shards(name, open_archives(name, archives));
    }
  }
  if (fields_.empty()) {
    throw Error(ErrorCode::kInput, path, "holds no .npy and no .npz", "expected FIELD_1.npy, FIELD_2.npy and so on");
  }
}

NpySource::~NpySource() = default;

std::vector<std::string> NpySource::find_fields(const std::string& path) {
  if (!fs::is_directory(status_of(path))) {
    const std::set<std::string> one = is_zip(path) ? arrays_in(path) : std::set{fs::path(path).stem().string()};
    return {one.begin(), one.end()};
  }
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (std::error_code unknown; entry.is_directory(unknown) && !list_files(entry.path(), ".npy").empty()) {
      names.insert(entry.path().filename().string());
    }
  }
  for (const std::string& name : list_files(path, ".npy")) {
    names.insert(name_without_number(fs::path(name).stem().string()));
  }
  if (const std::vector<std::string> archives = list_files(path, ".npz"); !archives.empty()) {
    names.merge(arrays_in((fs::path(path) / archives.front()).string()));  // all archives have the same arrays
  }
  return {names.begin(), names.end()};
}

NpySource::Shard NpySource::open_member(std::size_t file, std::uint64_t offset, std::uint64_t bytes,
                                        const std::string& subject) {
  std::vector<std::byte> head(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, detail::kNpyStartBytes)));
  files_->read(file, offset, head);
  head.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, detail::npy_header_bytes(head, subject))));
  files_->read(file, offset, head);
  Shard shard;
  shard.file = file;
  shard.header = detail::read_npy_header(head, subject);
  shard.offset = offset + shard.header.data_offset;
  const std::uint64_t there = bytes - shard.header.data_offset;
  if (there < shard.header.data_bytes()) {
    throw Error(ErrorCode::kInput, subject,
                fmt::format("is cut off: {} bytes of data, expected {}", there, shard.header.data_bytes()));
  }
  if (shard.header.shape.empty()) {
    throw Error(ErrorCode::kInput, subject, "holds a single value; expected rows along the first axis");
  }
  if (shard.header.fortran && shard.header.shape.size() > 1) {
    turn(shard);
  }
  return shard;
}

void NpySource::turn(Shard& shard) const {
  std::vector<std::byte> columns(static_cast<std::size_t>(shard.header.data_bytes()));
  files_->read(shard.file, shard.offset, columns);
  shard.turned.resize(columns.size());
  detail::turn_to_rows(shard.header, columns, shard.turned);
}

void NpySource::add_field(const std::string& name, const std::vector<std::string>& paths) {
  Shards shards;
  for (const std::string& path : paths) {
    const std::size_t file = files_->add(path);
    shards.push_back(open_member(file, 0, files_->bytes(file), path));
  }
  take_shards(name, std::move(shards));
}

NpySource::Shards NpySource::open_archives(const std::string& name, const std::vector<std::string>& paths) {
  Shards shards;
  for (const std::string& path : paths) {
    const std::size_t file = files_->add(path);
    const std::uint64_t size = files_->bytes(file);
    const std::vector<detail::ZipMember> members = members_of(*files_, file);
    const auto member = std::find_if(members.begin(), members.end(),
                                     [&](const detail::ZipMember& one) { return one.name == name + ".npy"; });
    if (member == members.end()) {
      throw Error(ErrorCode::kInput, path, fmt::format("has no member {}.npy", name));
    }
    std::vector<std::byte> bytes(detail::kZipLocalBytes);
    files_->read(file, member->offset, bytes);
    shards.push_back(open_member(file, detail::zip_data_offset(bytes, *member, size, path), member->bytes,
                                 fmt::format("{}: {}", path, member->name)));
  }
  return shards;
}

void NpySource::take_shards(const std::string& name, Shards shards) {
  if (shards.empty()) {
    throw Error(ErrorCode::kInput, fmt::format("field {}", name), "has no files",
                fmt::format("expected {0}.npy, {0}_*.npy, *_{0}.npy, {0}/*.npy or a member of *.npz", name));
  }
  const auto fail = [&](const Shard& shard, std::string message) {
    throw Error(ErrorCode::kInput, files_->path(shard.file), std::move(message));
  };
  const detail::NpyHeader& first = shards.front().header;
  std::vector<std::int64_t> ends;
  for (const Shard& shard : shards) {
    const detail::NpyHeader& header = shard.header;
    if (header.dtype != first.dtype ||
        !std::equal(header.shape.begin() + 1, header.shape.end(), first.shape.begin() + 1, first.shape.end())) {
      fail(shard, fmt::format("holds {} {}; expected rows of {} {}, as {} has", name_of(header.dtype),
                              shape_text(header.shape), name_of(first.dtype), shape_text(first.shape),
                              files_->path(shards.front().file)));
    }
    ends.push_back((ends.empty() ? 0 : ends.back()) + header.shape[0]);
    if (!fields_.empty() && (ends.size() > ends_.size() || ends.back() != ends_[ends.size() - 1])) {
      fail(shard, fmt::format("ends at row {} of the field {}; the shards of the field {} end elsewhere", ends.back(),
                              name, fields_.front().name));
    }
  }
  if (!fields_.empty() && ends.size() != ends_.size()) {
    fail(shards.back(), fmt::format("is the last of {} shards of the field {}; the field {} has {}", ends.size(), name,
                                    fields_.front().name, ends_.size()));
  }
  ends_ = std::move(ends);
  fields_.push_back({name, first.dtype, {first.shape.begin() + 1, first.shape.end()}});
  shards_.push_back(std::move(shards));
  std::size_t row_bytes = 0;
  for (const Field& field : fields_) {
    row_bytes += field.bytes();
  }
  grain_ = rows_at_once(row_bytes);
  run_ = rows_of_a_run(ends_, row_bytes);
}

void NpySource::read_row(std::int64_t item, std::size_t field, std::span<std::byte> to) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), item);
  const std::int64_t row = item - (end == ends_.begin() ? 0 : *std::prev(end));
  const Shard& shard = shards_[field][static_cast<std::size_t>(end - ends_.begin())];
  const std::uint64_t offset = static_cast<std::uint64_t>(row) * fields_[field].bytes();
  if (!shard.turned.empty()) {
    std::copy_n(shard.turned.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
  } else {
    files_->read(shard.file, shard.offset + offset, to);
  }
  if (shard.header.swapped) {
    swap_bytes(to, size_of(shard.header.dtype));
  }
}

void NpySource::will_need(std::int64_t begin, std::int64_t end) const {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    const std::uint64_t row_bytes = fields_[field].bytes();
    for (auto shard = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
         shard < ends_.size() && (shard == 0 ? 0 : ends_[shard - 1]) < end; ++shard) {
      const std::int64_t start = shard == 0 ? 0 : ends_[shard - 1];
      const std::int64_t from = std::max(begin, start);
      const std::int64_t to = std::min(end, ends_[shard]);
      const Shard& here = shards_[field][shard];
      if (here.turned.empty() && from < to) {
        files_->will_need(here.file, here.offset + static_cast<std::uint64_t>(from - start) * row_bytes,
                          static_cast<std::uint64_t>(to - from) * row_bytes);
      }
    }
  }
}

std::uint64_t NpySource::read(const ItemRequest& request, std::span<const Places> samples) const {
  std::uint64_t bytes = 0;
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    read_row(request.item, field, samples[0][field]);
    bytes += fields_[field].bytes();
  }
  return bytes;
}

std::uint64_t NpySource::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  std::uint64_t bytes = 0;
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    for (std::size_t i = 0; i < requests.size();) {
      // Rows that are consecutive in the file are read together.
      const auto end = std::upper_bound(ends_.begin(), ends_.end(), requests[i].item);
      std::size_t count = 1;
      while (i + count < requests.size() &&
             requests[i + count].item == requests[i].item + static_cast<std::int64_t>(count) &&
             requests[i + count].item < *end) {
        ++count;
      }
      const std::size_t wanted = fields[field].stride * count;
      read_row(requests[i].item, field, {fields[field].at(i).data(), wanted});
      bytes += wanted;
      i += count;
    }
  }
  return bytes;
}

namespace sources {

namespace {

std::unique_ptr<Source> open_npy(SourceOptions& options, std::span<const ArrayView>) {
  const std::string path = options.text("path");
  std::vector<std::string> fields = options.texts("fields", {});
  options.done();
  if (fields.empty()) {
    fields = NpySource::find_fields(path);
    // Guess: the inputs of a model are larger than its outputs.
    const auto bytes = [&](const std::string& field) { return NpySource(path, {field}).fields().front().bytes(); };
    std::map<std::string, std::size_t> sizes;
    for (const std::string& field : fields) {
      sizes[field] = bytes(field);
    }
    std::stable_sort(fields.begin(), fields.end(),
                     [&](const std::string& a, const std::string& b) { return sizes[a] > sizes[b]; });
  }
  return std::make_unique<NpySource>(path, std::move(fields));
}

}  // namespace

const SourceKind& npy() {
  static const SourceKind kKind = {"npy", open_npy};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
