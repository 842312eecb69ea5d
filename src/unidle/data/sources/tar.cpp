#include "unidle/data/sources/tar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/split.h"
#include "unidle/data/detail/scratch_pool.h"
#include "unidle/data/detail/tar_samples.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

struct TarSource::Pool : detail::ScratchPool<std::vector<std::byte>> {};

namespace {

/// The number under a key, such as "a.b" in {"a": {"b": 1}}.
nlohmann::json number_at(std::span<const std::byte> bytes, std::string_view key, const std::string& subject) {
  nlohmann::json value = parse_json(detail::trimmed(bytes));
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
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    throw Error(ErrorCode::kInput, subject, fmt::format("has a number beyond int64 at {}", key));
  }
  return value;
}

std::string suffixes_of(const detail::TarSample& sample) {
  std::string text;
  for (const auto& [suffix, member] : sample.members) {
    text += (text.empty() ? "" : ", ") + suffix;
  }
  return text;
}

}  // namespace

TarSource::Wanted TarSource::wanted_of(const std::string& text) {
  if (const std::size_t colon = text.find(':'); colon < text.size() - 1) {
    if (std::string suffix = lower(text.substr(0, colon)); detail::is_json_suffix(suffix)) {
      return {{std::move(suffix)}, Kind::kJson, text.substr(colon + 1), {}};
    }
  }
  Wanted wanted{{}, Kind::kPicture, {}, {}};
  for (const std::string_view suffix : split(text, ';')) {
    wanted.suffixes.push_back(lower(suffix));
  }
  const auto all = [&](bool (*is_one)(std::string_view)) {
    return std::all_of(wanted.suffixes.begin(), wanted.suffixes.end(), is_one);
  };
  if (all(detail::is_picture_suffix)) {
    return wanted;
  }
  if (!all(detail::is_tensor_suffix) && !all(detail::is_whole_suffix)) {
    throw Error(ErrorCode::kUsage, "tar option fields",
                fmt::format("expected pictures (jpg, jpeg, png, webp), npy, cls or json:KEY, found {}", text));
  }
  wanted.kind = all(detail::is_tensor_suffix) ? Kind::kTensor : Kind::kWhole;
  return wanted;
}

TarSource::TarSource(const TarOptions& options)
    : files_(std::make_unique<detail::OpenFiles>()),
      pictures_(options.pictures, "tar"),
      pool_(std::make_unique<Pool>()) {
  if (options.paths.empty()) {
    throw Error(ErrorCode::kUsage, "tar option paths", "expected at least one archive");
  }
  for (const std::string& path : detail::find_archives(options.paths)) {
    const std::size_t file = files_->add(path);
    ++shards_;
    detail::for_each_sample(detail::tar_members(*files_, file), path, [&](const detail::TarSample& sample) {
      if (wanted_.empty()) {
        choose_fields(options.fields, file, sample);
      }
      take(file, sample);
    });
  }
  if (keys_.empty()) {
    throw Error(ErrorCode::kInput, options.paths.front(), "holds no samples; expected files as 0001.jpg and 0001.cls");
  }
}

TarSource::~TarSource() = default;

void TarSource::choose_fields(std::vector<std::string> names, std::size_t file, const detail::TarSample& first) {
  if (names.empty()) {
    for (const auto& [suffix, member] : first.members) {
      if (detail::is_picture_suffix(suffix) || detail::is_tensor_suffix(suffix) || detail::is_whole_suffix(suffix)) {
        names.push_back(suffix);
      }
    }
    if (names.empty()) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", files_->path(file), first.key),
                  fmt::format("has neither picture nor npy nor cls, but {}", suffixes_of(first)),
                  "name the fields, as json:KEY");
    }
  }
  for (const std::string& name : names) {
    wanted_.push_back(wanted_of(name));
    const Wanted& last = wanted_.back();
    lay_out_field(last.kind == Kind::kJson ? last.key : last.suffixes.front(), wanted_.back(), file, first);
  }
  for (const auto& [suffix, member] : first.members) {
    const auto takes = [&](const Wanted& wanted) {
      return std::find(wanted.suffixes.begin(), wanted.suffixes.end(), suffix) != wanted.suffixes.end();
    };
    if (std::none_of(wanted_.begin(), wanted_.end(), takes)) {
      left_out_.push_back(suffix);
    }
  }
}

void TarSource::lay_out_field(const std::string& name, Wanted& wanted, std::size_t file,
                              const detail::TarSample& first) {
  const detail::TarMember* member = first.find(wanted.suffixes);
  if (member == nullptr) {
    return;  // take() reports the error
  }
  const std::string subject = fmt::format("{}:{}", files_->path(file), member->name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(member->bytes));
  files_->read(file, member->offset, bytes);
  Field field{name, DType::kI64, {}};
  if (wanted.kind == Kind::kPicture) {
    field = pictures_.field();
    field.name = name;
  } else if (wanted.kind == Kind::kTensor) {
    wanted.header = detail::tensor_header(bytes, bytes.size(), subject);
    field = {name, wanted.header.dtype, wanted.header.shape};
  } else if (wanted.kind == Kind::kJson && !number_at(bytes, wanted.key, subject).is_number_integer()) {
    field.dtype = DType::kF32;
  }
  fields_.push_back(field);
}

void TarSource::take(std::size_t file, const detail::TarSample& sample) {
  for (const Wanted& wanted : wanted_) {
    const detail::TarMember* member = sample.find(wanted.suffixes);
    if (member == nullptr) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", files_->path(file), sample.key),
                  fmt::format("has no .{}", fmt::join(wanted.suffixes, " and no .")),
                  is_elsewhere(file, sample.key, wanted)
                      ? "its files do not follow each other in the archive; tar --sort=name puts them together"
                      : "");
    }
    pieces_.push_back({file, member->offset, member->bytes});
  }
  keys_.push_back(sample.key);
}

bool TarSource::is_elsewhere(std::size_t file, const std::string& key, const Wanted& wanted) const {
  bool found = false;
  detail::for_each_sample(detail::tar_members(*files_, file), files_->path(file), [&](const detail::TarSample& other) {
    found = found || (other.key == key && other.find(wanted.suffixes) != nullptr);
  });
  return found;
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
      const detail::NpyHeader header = detail::tensor_header(bytes, bytes.size(), subject);
      if (header.dtype != wanted.header.dtype || header.shape != wanted.header.shape) {
        throw Error(ErrorCode::kInput, subject,
                    fmt::format("is {} [{}]; expected {} [{}], as of the first sample", name_of(header.dtype),
                                fmt::join(header.shape, ", "), name_of(wanted.header.dtype),
                                fmt::join(wanted.header.shape, ", ")));
      }
      detail::copy_tensor(header, bytes, to);
      return;
    }
    case Kind::kWhole: {
      const std::int64_t value = detail::whole_number(bytes, subject);
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

std::string TarSource::describe() const {
  return json_text(nlohmann::json{{"shards", shards_}, {"left_out", left_out_}}, -1);
}

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
