#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/units.h"
#include "unidle/data/detail/tar_samples.h"
#include "unidle/data/image.h"
#include "unidle/data/inspect/cells.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/tables/parts.h"
#include "unidle/telemetry/host.h"

namespace unidle::data::inspect_kinds {

namespace {

/// A member of an inspected sample and what it contains.
struct SeenMember {
  std::size_t file;
  std::string subject;  // "archive:member"
  std::uint64_t offset;
  std::uint64_t bytes;
  std::size_t suffix;
  std::int64_t row;
  std::string type{};
  std::string cell{};
  std::optional<Error> error{};
};

// Limits how much of a member is read, so that archives of any size can be inspected: the start of tensors, numbers and
// texts; pictures and JSON completely up to these sizes.
constexpr std::uint64_t kStartBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostPictureBytes = std::uint64_t{kMaxPixels} * 8;  // 16 bits per channel, uncompressed
constexpr std::uint64_t kMostJsonBytes = std::uint64_t{64} << 20;

/// Inspects members, one object per thread. Throws the problem of a member.
class MemberLook {
 public:
  explicit MemberLook(detail::OpenFiles& files) : files_(files) {}

  void into(SeenMember& member, const std::string& suffix) {
    const std::span<const std::byte> start = first(member, std::min(member.bytes, kStartBytes));
    if (detail::is_picture_suffix(suffix)) {
      picture(member, start);
    } else if (detail::is_tensor_suffix(suffix)) {
      tensor(member, start);
    } else if (detail::is_whole_suffix(suffix)) {
      member.type = "integer";
      member.cell = std::to_string(detail::whole_number(start.first(refuse_more(member, kStartBytes)), member.subject));
    } else if (detail::is_json_suffix(suffix)) {
      json(member);
    } else {
      text(member, start);
    }
  }

 private:
  std::span<const std::byte> first(const SeenMember& member, std::uint64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes);
    memory_.resize(std::max(memory_.size(), count));
    const std::span<std::byte> place = std::span(memory_).first(count);
    files_.read(member.file, member.offset, place);
    return place;
  }

  /// Returns the size of a member; throws if it exceeds the limit.
  static std::size_t refuse_more(const SeenMember& member, std::uint64_t most) {
    if (member.bytes > most) {
      throw Error(ErrorCode::kInput, member.subject,
                  fmt::format("has {}; expected at most {}", format_bytes(member.bytes), format_bytes(most)));
    }
    return static_cast<std::size_t>(member.bytes);
  }

  void picture(SeenMember& member, std::span<const std::byte> start) {
    const bool more = member.bytes > start.size() && is_picture_start(start);
    const auto bytes = more ? first(member, refuse_more(member, kMostPictureBytes)) : start;
    const ImageInfo info = decoder_.decode_region(bytes, member.subject, {}).info;
    member.type = name_of(info.format);
    member.cell = fmt::format("{} x {}", info.width, info.height);
  }

  static void tensor(SeenMember& member, std::span<const std::byte> start) {
    const detail::NpyHeader header = detail::tensor_header(start, member.bytes, member.subject);
    member.type = array_type(header.dtype, header.shape);
    const std::size_t there =
        std::min<std::size_t>(kShownValues + 1, (start.size() - header.data_offset) / size_of(header.dtype));
    std::vector<std::byte> values(there * size_of(header.dtype));
    detail::copy_tensor(header, start, values);
    member.cell = values_text(header.dtype, values);
  }

  void json(SeenMember& member) {
    const std::string_view text = detail::trimmed(first(member, refuse_more(member, kMostJsonBytes)));
    member.type = "json";
    member.cell = shown(text, text.size());
    if (parse_json(text).is_discarded()) {
      throw Error(ErrorCode::kInput, member.subject, "is not JSON");
    }
  }

  static void text(SeenMember& member, std::span<const std::byte> start) {
    std::string_view text = detail::trimmed(start);
    const bool cut = member.bytes > start.size();
    for (int byte = 0; cut && byte < 4 && !tables::is_utf8(text); ++byte) {
      text.remove_suffix(1);  // may be part of a truncated character
    }
    member.type = tables::is_utf8(text) ? "text" : "bytes";
    member.cell = shown(text, cut ? member.bytes : text.size());
  }

  static std::string shown(std::string_view text, std::uint64_t bytes) {
    constexpr std::size_t kMost = 200;
    return bytes <= kMost && tables::is_utf8(text) ? std::string(text) : fmt::format("{} bytes", bytes);
  }

  detail::OpenFiles& files_;
  std::vector<std::byte> memory_;
  ImageDecoder decoder_;
};

/// Inspects archives. Its columns are the suffixes, named like the fields of `tar`: pictures in several formats, one
/// per sample, form one column "jpg;png" or "left.jpg;left.png".
class ArchiveInspection {
 public:
  explicit ArchiveInspection(const InspectOptions& options) : options_(options) {}

  Inspection run(const std::vector<std::string>& archives) {
    for (const std::string& archive : archives) {
      add_archive(archive);
    }
    look_at_all();
    lay_out_columns();
    for (std::size_t at = 0; at < members_.size();) {
      const std::size_t begin = at;
      while (at < members_.size() && members_[at].row == members_[begin].row) {
        ++at;
      }
      take_row({members_.data() + begin, at - begin});
    }
    if (result_.rows == 0 && result_.problems.empty()) {
      result_.add_problem(archives.front(), "holds no samples; expected files as 0001.jpg and 0001.cls");
    }
    finish();
    return std::move(result_);
  }

 private:
  struct Column {
    std::string name;
    bool needed = false;  // a default field of `tar`, which every sample must then have
    bool tensor = false;
    std::set<std::string> types{};
    std::string first_type{};
    std::int64_t missing = 0;
  };

  void add_archive(const std::string& path) {
    try {
      const std::size_t file = files_.add(path);
      const std::size_t others = detail::for_each_sample(
          detail::read_tar(files_, file), path, [&](const detail::TarSample& sample) { add_sample(file, sample); });
      if (others > 0) {
        result_.passed_over[""] += others;
      }
    } catch (const Error& error) {
      result_.add_problem(error);
    }
  }

  void add_sample(std::size_t file, const detail::TarSample& sample) {
    std::set<std::string_view> stems;
    for (const auto& [suffix, member] : sample.members) {
      if (detail::is_picture_suffix(suffix) && !stems.insert(detail::stem_of(suffix)).second) {
        several_pictures_.emplace(detail::stem_of(suffix));
      }
      members_.push_back({file, fmt::format("{}:{}", files_.path(file), member.name), member.offset, member.bytes,
                          number_of(suffix), result_.rows});
    }
    places_.push_back(fmt::format("{}:{}", files_.path(file), sample.key));
    keys_.push_back(sample.key);
    ++result_.rows;
  }

  std::size_t number_of(const std::string& suffix) {
    const auto found = std::find(suffixes_.begin(), suffixes_.end(), suffix);
    if (found == suffixes_.end()) {
      suffixes_.push_back(suffix);
      return suffixes_.size() - 1;
    }
    return static_cast<std::size_t>(found - suffixes_.begin());
  }

  /// Uses all CPUs.
  void look_at_all() {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::uint64_t done = 0;
    const auto work = [&] {
      MemberLook look(files_);
      for (std::size_t i = next++; i < members_.size(); i = next++) {
        look_at(members_[i], look);
        const std::lock_guard lock(mutex);
        ++done;
        if (options_.progress) {
          options_.progress(done, members_.size());
        }
      }
    };
    std::vector<std::jthread> threads;
    for (int i = 1, cpus = telemetry::usable_cpus(); i < cpus; ++i) {
      threads.emplace_back(work);
    }
    work();
  }

  void look_at(SeenMember& member, MemberLook& look) {
    try {
      look.into(member, suffixes_[member.suffix]);
    } catch (const Error& error) {
      member.error = error;
    } catch (const std::bad_alloc&) {
      member.error = Error(ErrorCode::kOutOfMemory, member.subject,
                           fmt::format("is too large for the memory that is free: {}", format_bytes(member.bytes)));
    }
    if (member.row >= options_.sample_rows) {
      member.cell = {};
    }
  }

  void lay_out_columns() {
    std::map<std::string_view, std::size_t> pictures;  // the column by stem
    for (const std::string& suffix : suffixes_) {
      const std::string_view stem = detail::stem_of(suffix);
      const bool picture = detail::is_picture_suffix(suffix);
      if (picture && !several_pictures_.contains(stem)) {
        if (const auto [known, is_new] = pictures.emplace(stem, columns_.size()); !is_new) {
          columns_[known->second].name += ";" + suffix;
          column_of_.push_back(known->second);
          continue;
        }
      }
      column_of_.push_back(columns_.size());
      const bool tensor = detail::is_tensor_suffix(suffix);
      columns_.push_back({suffix, picture || tensor || detail::is_whole_suffix(suffix), tensor});
    }
    const auto has = [&](bool (*is_one)(std::string_view)) {
      return std::any_of(suffixes_.begin(), suffixes_.end(), is_one);
    };
    result_.kind = has(detail::is_picture_suffix) ? "images" : has(detail::is_tensor_suffix) ? "npy" : "table";
  }

  void take_row(std::span<const SeenMember> row) {
    const std::int64_t number = row.front().row;
    std::vector<std::string> cells(columns_.size());
    std::vector<bool> there(columns_.size());
    for (const SeenMember& member : row) {
      Column& column = columns_[column_of_[member.suffix]];
      there[column_of_[member.suffix]] = true;
      cells[column_of_[member.suffix]] = member.cell;
      if (member.error) {
        result_.add_problem(*member.error);
        continue;
      }
      column.types.insert(member.type);
      column.first_type = column.first_type.empty() ? member.type : column.first_type;
      if (column.tensor && member.type != column.first_type) {
        result_.add_problem(member.subject,
                            fmt::format("is {}; expected {}, as before", member.type, column.first_type));
      }
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].missing += there[i] ? 0 : 1;
      if (!there[i] && columns_[i].needed) {
        result_.add_problem(places_[static_cast<std::size_t>(number)], fmt::format("has no .{}", columns_[i].name));
      }
    }
    if (number < options_.sample_rows) {
      cells.insert(cells.begin(), keys_[static_cast<std::size_t>(number)]);
      result_.sample.push_back(std::move(cells));
    }
  }

  void finish() {
    result_.columns.push_back({"__key__", "text", 0});  // WebDataset's name for it
    for (const Column& column : columns_) {
      const std::string type = column.tensor ? column.first_type : fmt::format("{}", fmt::join(column.types, ", "));
      result_.columns.push_back({column.name, type.empty() ? "unknown" : type, column.missing});
    }
  }

  const InspectOptions& options_;
  Inspection result_;
  detail::OpenFiles files_;
  std::vector<std::string> suffixes_;  // in the order of their first members
  std::vector<SeenMember> members_;
  std::set<std::string, std::less<>> several_pictures_;  // stems with several pictures in one sample
  std::vector<std::string> keys_;                        // by row
  std::vector<std::string> places_;                      // by row
  std::vector<Column> columns_;
  std::vector<std::size_t> column_of_;  // by suffix
};

}  // namespace

Inspection tar(const std::vector<std::string>& archives, const InspectOptions& options) {
  return ArchiveInspection(options).run(archives);
}

}  // namespace unidle::data::inspect_kinds
