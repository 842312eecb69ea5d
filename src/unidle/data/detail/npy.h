// numpy's files: the header of an .npy, and the uncompressed members of an .npz.
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
  bool swapped = false;  // the bytes of a value are in the other order than this machine's
  bool fortran = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  // from the start of the header

  /// Of all values.
  std::uint64_t data_bytes() const;
};

/// How many bytes from the start of a file read_npy_header() needs at most to tell the length of the header.
constexpr std::size_t kNpyStartBytes = 12;
/// The length of the whole header, out of its start. Throws kInput, naming `subject`, for what is no .npy.
std::size_t npy_header_bytes(std::span<const std::byte> start, std::string_view subject);

/// Versions 1 to 3. Throws kInput, naming `subject`, for damage, types without a place in DType (objects, structures,
/// texts, dates, complex and long numbers), and shapes whose size no machine holds.
NpyHeader read_npy_header(std::span<const std::byte> header, std::string_view subject);

/// A member of a zip file that is stored as it is.
struct ZipMember {
  std::string name;
  std::uint64_t offset = 0;  // of its local header
  std::uint64_t bytes = 0;
};

/// Where the list of members lies, out of the end of the file: its last kZipEndBytes, or all of a shorter one.
struct ZipDirectory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
constexpr std::size_t kZipEndBytes = 22 + 65535 + 20 + 56;
ZipDirectory find_zip_directory(std::span<const std::byte> end, std::uint64_t file_bytes, std::string_view subject);

/// The members. Throws kInput, naming `subject`, for damage and for members that are compressed or encrypted.
std::vector<ZipMember> read_zip_directory(std::span<const std::byte> directory, std::uint64_t file_bytes,
                                          std::string_view subject);

/// Bytes of a local header that zip_data_offset() needs.
constexpr std::size_t kZipLocalBytes = 30;
/// Where the data of a member begins.
std::uint64_t zip_data_offset(std::span<const std::byte> local_header, const ZipMember& member,
                              std::uint64_t file_bytes, std::string_view subject);

}  // namespace unidle::data::detail
