// Parses numpy's files: .npy headers and uncompressed .npz members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/source.h"

namespace unidle::data::detail {

struct NpyHeader {
  DType dtype = DType::kU8;
  bool swapped = false;  // values have the opposite byte order of this machine
  bool fortran = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  // from the start of the header

  /// Of all values.
  std::uint64_t data_bytes() const;
};

/// How many bytes from the start of a file npy_header_bytes() needs.
constexpr std::size_t kNpyStartBytes = 12;
/// Returns the length of the whole header from its start. Throws kInput with `subject` for anything that is not an
/// .npy.
std::size_t npy_header_bytes(std::span<const std::byte> start, std::string_view subject);

/// Parses versions 1 to 3. Throws kInput with `subject` for damage, types without a DType (objects, structures, texts,
/// dates, complex and long numbers), and impossibly large shapes.
NpyHeader read_npy_header(std::span<const std::byte> header, std::string_view subject);

/// Copies values in Fortran order into rows one after the other.
void turn_to_rows(const NpyHeader& header, std::span<const std::byte> columns, std::span<std::byte> rows);

/// An uncompressed member of a zip file.
struct ZipMember {
  std::string name;
  std::uint64_t offset = 0;  // of its local header
  std::uint64_t bytes = 0;
};

/// Locates the list of members from the end of the file: its last kZipEndBytes, or all of a shorter one.
struct ZipDirectory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
constexpr std::size_t kZipEndBytes = 22 + 65535 + 20 + 56;
ZipDirectory find_zip_directory(std::span<const std::byte> end, std::uint64_t file_bytes, std::string_view subject);

/// Returns the members. Throws kInput with `subject` for damage and for compressed or encrypted members.
std::vector<ZipMember> read_zip_directory(std::span<const std::byte> directory, std::uint64_t file_bytes,
                                          std::string_view subject);

/// Bytes of a local header that zip_data_offset() needs.
constexpr std::size_t kZipLocalBytes = 30;
/// Returns where a member's data begins.
std::uint64_t zip_data_offset(std::span<const std::byte> local_header, const ZipMember& member,
                              std::uint64_t file_bytes, std::string_view subject);

}  // namespace unidle::data::detail
