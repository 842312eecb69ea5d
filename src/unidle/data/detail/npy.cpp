#include "unidle/data/detail/npy.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "unidle/base/error.h"

namespace unidle::data::detail {

namespace {

Error npy_error(std::string_view subject, std::string message, std::string hint = {}) {
  return Error(ErrorCode::kInput, std::string(subject), std::move(message), std::move(hint));
}

std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  }
  return value;
}

/// The dict in an .npy header: a Python literal with three keys, in any order and with any whitespace.
class HeaderText {
 public:
  HeaderText(std::string_view text, std::string_view subject) : text_(text), subject_(subject) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        read_type(header);
        descr = true;
      } else if (key == "fortran_order") {
        header.fortran = truth();
        order = true;
      } else if (key == "shape") {
        header.shape = extents();
        shape = true;
      } else {
        fail(fmt::format("has the unknown key {}", key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!descr || !order || !shape || at_ != text_.size()) {
      fail("is not a dict of descr, fortran_order and shape");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { throw npy_error(subject_, fmt::format("npy header {}", what)); }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
      ++at_;
    }
  }
  bool take(char wanted) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == wanted) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char wanted) {
    if (!take(wanted)) {
      fail(fmt::format("lacks '{}' at byte {}", wanted, at_));
    }
  }
  std::string_view quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') {
      fail(fmt::format("lacks a text at byte {}", at_));
    }
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      fail("is cut off in a text");
    }
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  bool truth() {
    skip_spaces();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail(fmt::format("lacks True or False at byte {}", at_));
  }
  std::vector<std::int64_t> extents() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::int64_t extent = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || shape.size() == 32) {
        fail(fmt::format("lacks an extent at byte {}", at_));
      }
      at_ = static_cast<std::size_t>(end - text_.data());
      at_ += at_ < text_.size() && text_[at_] == 'L' ? 1 : 0;  // the suffix of long numbers in Python 2
      shape.push_back(extent);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void read_type(NpyHeader& header) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw npy_error(subject_, "holds a structure of several types; expected one", "save each of them by itself");
    }
    const std::string_view type = quoted();
    const char order = type.empty() ? '\0' : type[0];
    const std::optional<DType> dtype = type_of(type.substr(type.empty() ? 0 : 1));
    if (!dtype || (order != '<' && order != '>' && order != '|' && order != '=')) {
      throw npy_error(subject_,
                      fmt::format("holds {} ({}); expected real numbers or booleans of up to 8 bytes",
                                  kind_of(type.substr(type.empty() ? 0 : 1)), type),
                      advice(type.substr(type.empty() ? 0 : 1)));
    }
    header.dtype = *dtype;
    const bool little = std::endian::native == std::endian::little;
    header.swapped = size_of(*dtype) > 1 && order == (little ? '>' : '<');
  }
  static std::string kind_of(std::string_view letters) {
    switch (letters.empty() ? '\0' : letters[0]) {
      case 'c': return "complex numbers";
      case 'U':
      case 'S': return "texts";
      case 'M': return "dates";
      case 'm': return "durations";
      case 'O': return "Python objects";
      case 'V': return "untyped bytes";
      case 'f': return "floats of more than 8 bytes";
      default: return "values of an unknown type";
    }
  }
  static std::string advice(std::string_view letters) {
    switch (letters.empty() ? '\0' : letters[0]) {
      case 'c':
        return fmt::format("save array.view(\"{}\"): the real and the imaginary parts, side by side",
                           letters == "c8" ? "float32" : "float64");
      case 'U':
      case 'S': return "save a number for each, np.unique(array, return_inverse=True)[1]";
      case 'M':
      case 'm': return "save array.view(\"int64\")";
      case 'f': return "save array.astype(\"float64\")";
      default: return {};
    }
  }
  static std::optional<DType> type_of(std::string_view letters) {
    constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"b1", DType::kBool}, {"u1", DType::kU8},  {"i1", DType::kI8},  {"u2", DType::kU16},
        {"i2", DType::kI16},  {"u4", DType::kU32}, {"i4", DType::kI32}, {"u8", DType::kU64},
        {"i8", DType::kI64},  {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}};
    for (const auto& [name, dtype] : kTypes) {
      if (letters == name) {
        return dtype;
      }
    }
    return std::nullopt;
  }

  std::string_view text_;
  std::string_view subject_;
  std::size_t at_ = 0;
};

}  // namespace

std::uint64_t NpyHeader::data_bytes() const {
  std::uint64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) {
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

std::size_t npy_header_bytes(std::span<const std::byte> start, std::string_view subject) {
  if (start.size() < 10 || std::memcmp(start.data(), "\x93NUMPY", 6) != 0) {
    throw npy_error(subject, "is not a .npy file");
  }
  const auto version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3) {
    throw npy_error(subject, fmt::format("is an .npy file of version {}; expected 1 to 3", version));
  }
  if (version == 1) {
    return 10 + static_cast<std::size_t>(little_endian(start, 8, 2));
  }
  constexpr std::size_t kMost = 1 << 20;  // numpy itself rejects more than 10,000 by default
  const std::size_t length = start.size() < 12 ? 0 : static_cast<std::size_t>(little_endian(start, 8, 4));
  if (length == 0 || length > kMost) {
    throw npy_error(subject, fmt::format("npy header has {} bytes; expected 1 to {}", length, kMost));
  }
  return 12 + length;
}

NpyHeader read_npy_header(std::span<const std::byte> bytes, std::string_view subject) {
  const std::size_t length = npy_header_bytes(bytes, subject);
  if (bytes.size() < length) {
    throw npy_error(subject, fmt::format("is cut off in its header, after {} bytes", bytes.size()));
  }
  const std::size_t start = std::to_integer<int>(bytes[6]) == 1 ? 10 : 12;
  NpyHeader header = HeaderText({reinterpret_cast<const char*>(bytes.data()) + start, length - start}, subject).parse();
  header.data_offset = length;
  std::uint64_t size = size_of(header.dtype);
  for (const std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size) || size > (std::uint64_t{1} << 62)) {
      throw npy_error(subject, "npy header tells of more bytes than there can be");
    }
  }
  return header;
}

void turn_to_rows(const NpyHeader& header, std::span<const std::byte> columns, std::span<std::byte> rows) {
  const std::size_t size = size_of(header.dtype);
  std::vector<std::int64_t> at(header.shape.size(), 0);
  for (std::size_t from = 0; from < columns.size(); from += size) {
    std::size_t to = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      to = to * static_cast<std::size_t>(header.shape[axis]) + static_cast<std::size_t>(at[axis]);
    }
    std::memcpy(rows.data() + to * size, columns.data() + from, size);
    for (std::size_t axis = 0; axis < at.size() && ++at[axis] == header.shape[axis]; ++axis) {
      at[axis] = 0;
    }
  }
}

ZipDirectory find_zip_directory(std::span<const std::byte> end, std::uint64_t file_bytes, std::string_view subject) {
  constexpr std::size_t kEnd = 22;
  constexpr std::size_t kLocator = 20;
  for (std::size_t behind = kEnd; behind <= end.size(); ++behind) {
    const std::size_t at = end.size() - behind;
    if (std::memcmp(end.data() + at, "PK\5\6", 4) != 0 || little_endian(end, at + 20, 2) != behind - kEnd) {
      continue;
    }
    ZipDirectory directory{little_endian(end, at + 16, 4), little_endian(end, at + 12, 4)};
    if (at >= kLocator && std::memcmp(end.data() + at - kLocator, "PK\6\7", 4) == 0) {
      const std::uint64_t place = little_endian(end, at - kLocator + 8, 8);
      const std::uint64_t first = file_bytes - end.size();
      if (place < first || place - first > end.size() - 56 || end.size() < 56 ||
          std::memcmp(end.data() + (place - first), "PK\6\6", 4) != 0) {
        throw npy_error(subject, "is not a .npz file: its list of members cannot be found");
      }
      const auto from = static_cast<std::size_t>(place - first);
      directory = {little_endian(end, from + 48, 8), little_endian(end, from + 40, 8)};
    }
    if (directory.bytes > file_bytes || directory.offset > file_bytes - directory.bytes) {
      throw npy_error(subject, "is not a .npz file: its list of members lies outside of it");
    }
    return directory;
  }
  throw npy_error(subject, "is not a .npz file, or is cut off");
}

std::vector<ZipMember> read_zip_directory(std::span<const std::byte> directory, std::uint64_t file_bytes,
                                          std::string_view subject) {
  constexpr std::size_t kEntry = 46;
  std::vector<ZipMember> members;
  for (std::size_t at = 0; at < directory.size();) {
    if (directory.size() - at < kEntry || std::memcmp(directory.data() + at, "PK\1\2", 4) != 0) {
      throw npy_error(subject, "list of members is damaged");
    }
    const auto name_bytes = static_cast<std::size_t>(little_endian(directory, at + 28, 2));
    const auto extra_bytes = static_cast<std::size_t>(little_endian(directory, at + 30, 2));
    const auto comment_bytes = static_cast<std::size_t>(little_endian(directory, at + 32, 2));
    const std::size_t whole = kEntry + name_bytes + extra_bytes + comment_bytes;
    if (directory.size() - at < whole) {
      throw npy_error(subject, "list of members is cut off");
    }
    ZipMember member{std::string(reinterpret_cast<const char*>(directory.data()) + at + kEntry, name_bytes),
                     little_endian(directory, at + 42, 4), little_endian(directory, at + 24, 4)};
    std::uint64_t packed = little_endian(directory, at + 20, 4);
    constexpr std::uint64_t kInExtra = 0xffffffff;
    const std::size_t extra_end = at + kEntry + name_bytes + extra_bytes;
    for (std::size_t extra = at + kEntry + name_bytes; extra_end - extra >= 4;) {
      const auto length = static_cast<std::size_t>(little_endian(directory, extra + 2, 2));
      if (length > extra_end - extra - 4) {
        throw npy_error(subject, "list of members is damaged");
      }
      std::size_t field = extra + 4;
      const std::size_t field_end = field + length;
      const bool wide = little_endian(directory, extra, 2) == 1;
      for (std::uint64_t* value : {&member.bytes, &packed, &member.offset}) {
        if (wide && *value == kInExtra && field_end - field >= 8) {
          *value = little_endian(directory, field, 8);
          field += 8;
        }
      }
      extra += 4 + length;
    }
    const bool encrypted = (little_endian(directory, at + 8, 2) & 1) != 0;
    if (little_endian(directory, at + 10, 2) != 0 || packed != member.bytes || encrypted) {
      throw npy_error(fmt::format("{}: {}", subject, member.name), "is compressed; expected it stored",
                      "save it with numpy.savez instead of savez_compressed");
    }
    if (member.bytes > file_bytes || member.offset > file_bytes - member.bytes) {
      throw npy_error(fmt::format("{}: {}", subject, member.name), "lies outside of the file");
    }
    members.push_back(std::move(member));
    at += whole;
  }
  return members;
}

std::uint64_t zip_data_offset(std::span<const std::byte> local, const ZipMember& member, std::uint64_t file_bytes,
                              std::string_view subject) {
  if (local.size() < kZipLocalBytes || std::memcmp(local.data(), "PK\3\4", 4) != 0) {
    throw npy_error(fmt::format("{}: {}", subject, member.name), "has no header where the list says");
  }
  const std::uint64_t offset =
      member.offset + kZipLocalBytes + little_endian(local, 26, 2) + little_endian(local, 28, 2);
  if (offset > file_bytes || member.bytes > file_bytes - offset) {
    throw npy_error(fmt::format("{}: {}", subject, member.name), "lies outside of the file");
  }
  return offset;
}

}  // namespace unidle::data::detail
