#include "unidle/data/detail/foreign_bytes.h"

#include <algorithm>
#include <array>
#include <fstream>

namespace unidle::data::detail {

namespace {

struct Format {
  std::string_view begins;
  std::string_view what;
  std::string_view hint;
};

constexpr std::string_view kWrapHint = "unidle.data.wrap takes a Python data set that reads it";

constexpr std::array kFormats = {
    Format{"\x1f\x8b\x08", "is compressed with gzip", "gunzip --keep"},
    Format{"\x28\xb5\x2f\xfd", "is compressed with zstd", "unzstd"},
    Format{"BZh", "is compressed with bzip2", "bunzip2 --keep"},
    Format{"\xfd\x37zXZ", "is compressed with xz", "unxz --keep"},
    Format{"PAR1", "is a Parquet file", "unidle.data.table reads it in Python, where pyarrow is installed"},
    Format{"ARROW1", "is an Arrow file", "unidle.data.table reads it in Python, where pyarrow is installed"},
    Format{"PK\x03\x04", "is a zip archive (Excel files and torch checkpoints are zip archives too)",
           "unzip it, or save it as CSV or .npy"},
    Format{"SQLite format 3", "is an SQLite database", "sqlite3 -header -csv FILE \"select ...\" writes a table"},
    Format{"\x80\x03", "is a Python pickle", kWrapHint},
    Format{"\x80\x04", "is a Python pickle", kWrapHint},
    Format{"\x80\x05", "is a Python pickle", kWrapHint},
    Format{"MATLAB 5.0 MAT-file", "is a MATLAB file", "scipy.io.loadmat reads it; save its arrays as .npy"},
    Format{"%PDF", "is a PDF document", ""},
};

/// A text may start with any letters: "PAR1" may be a column name.
bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](unsigned char byte) { return byte < '\t'; });
}

std::optional<ForeignBytes> format_of(std::string_view head, const auto& formats) {
  if (is_text(head.substr(0, kForeignHeadBytes))) {
    return std::nullopt;
  }
  for (const Format& format : formats) {
    if (head.starts_with(format.begins)) {
      return ForeignBytes{std::string(format.what), std::string(format.hint)};
    }
  }
  return std::nullopt;
}

/// The signature is at 0, 512, 1024 and so on: a user block may precede it, as in MATLAB's files.
bool is_hdf5(std::string_view head) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  for (std::size_t at = 0; at < head.size(); at = at == 0 ? 512 : 2 * at) {
    if (head.substr(at).starts_with(kSignature)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<ForeignBytes> foreign_bytes(std::string_view head) {
  if (is_hdf5(head)) {
    return ForeignBytes{"is an HDF5 file",
                        "in Python h5py reads it: unidle.data.arrays takes file[\"name\"][:], unidle.data.wrap a data "
                        "set over it; or save each of its arrays as .npy"};
  }
  return format_of(head, kFormats);
}

std::string foreign_head(const std::string& path) {
  std::string head(kForeignHeadBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

}  // namespace unidle::data::detail
