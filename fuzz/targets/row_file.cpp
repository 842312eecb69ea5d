// Built tables as they are, and with their sums set right, so that damage reaches what lies behind them.
#include <xxhash.h>

#include <cstring>

#include "fuzz.h"
#include "unidle/base/disk.h"
#include "unidle/data/tables/row_file.h"

namespace unidle::fuzz::targets {

namespace {

// Of the footer, from its start; src/unidle/data/tables/row_file.cpp has it.
constexpr std::size_t kFooterBytes = 56;
constexpr std::size_t kTailHash = 32;
constexpr std::size_t kCheck = 44;

template <typename Number>
Number number_at(const std::string& bytes, std::size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string repaired(std::string_view damaged) {
  std::string bytes(damaged);
  if (bytes.size() < kFooterBytes) {
    return bytes;
  }
  const std::size_t footer = bytes.size() - kFooterBytes;
  const auto rows = number_at<std::uint64_t>(bytes, footer);
  const auto width = number_at<std::uint32_t>(bytes, footer + 8);
  const std::uint64_t data = rows * width * sizeof(float);
  if (data <= footer) {
    const std::uint64_t hash = XXH3_64bits(bytes.data() + data, footer - data);
    std::memcpy(bytes.data() + footer + kTailHash, &hash, sizeof hash);
  }
  std::memset(bytes.data() + footer + kCheck, 0, sizeof(std::uint32_t));
  const auto check = static_cast<std::uint32_t>(XXH3_64bits(bytes.data() + footer, kFooterBytes));
  std::memcpy(bytes.data() + footer + kCheck, &check, sizeof check);
  return bytes;
}

void read_all(std::string_view bytes) {
  const std::filesystem::path path = put("row_file/a.rows", bytes);
  may_refuse(
      [&] {
        const auto file = data::tables::RowFile::open(path, system_disk());
        std::vector<float> copy(file ? file->width() : 0);
        for (std::int64_t row = 0; file && row < file->rows(); ++row) {
          std::memcpy(copy.data(), file->row(row), copy.size() * sizeof(float));  // all of it is there
        }
      },
      {ErrorCode::kCorrupt});
}

void run_row_file(std::string_view bytes) {
  read_all(bytes);
  read_all(repaired(bytes));
}

}  // namespace

const Target& row_file() {
  static const Target kTarget = {"row_file", run_row_file};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
