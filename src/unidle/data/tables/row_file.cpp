#include "unidle/data/tables/row_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "unidle/base/error.h"

namespace unidle::data::tables {

namespace {

constexpr std::string_view kMagic = "unidlerw";

/// The last bytes of the file. The whole file is little-endian.
struct Footer {
  std::uint64_t rows;
  std::uint32_t width;
  std::uint32_t block_shift;  // a block has 2^this rows
  std::uint64_t flag_bytes;   // after the rows: one byte per row, or none
  std::uint64_t facts_bytes;  // after the block hashes, eight bytes each
  std::uint64_t tail_hash;    // of everything between the rows and this footer
  std::uint32_t version;
  std::uint32_t check;  // of this footer, computed with 0 here
  char magic[8];
};
static_assert(sizeof(Footer) == 56 && std::endian::native == std::endian::little);

std::uint32_t check_of(Footer footer) {
  footer.check = 0;
  return static_cast<std::uint32_t>(XXH3_64bits(&footer, sizeof footer));
}

int block_shift_for(std::size_t width) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  return std::bit_width(std::max<std::size_t>(1, kBlockBytes / (width * sizeof(float)))) - 1;
}

std::uint64_t blocks_of(std::uint64_t rows, std::uint32_t shift) {
  return (rows >> shift) + ((rows & ((std::uint64_t{1} << shift) - 1)) != 0 ? 1 : 0);
}

std::string_view known_type(std::string_view name) {
  for (const std::string_view type : {"integer", "float", "text"}) {
    if (name == type) {
      return type;
    }
  }
  return "float";
}

nlohmann::json to_json(const RowFileFacts& facts) {
  nlohmann::json columns = nlohmann::json::array();
  for (const TableColumn& column : facts.columns) {
    columns.push_back({{"name", column.name},
                       {"type", column.type},
                       {"missing", column.missing},
                       {"mean", column.mean},
                       {"deviation", column.deviation},
                       {"categories", column.categories}});
  }
  nlohmann::json joins = nlohmann::json::array();
  for (const JoinedTable& join : facts.joins) {
    joins.push_back({{"key", join.key}, {"rows", join.rows}, {"unmatched", join.unmatched}});
  }
  nlohmann::json left_out = nlohmann::json::array();
  for (const LeftOutColumn& one : facts.left_out) {
    left_out.push_back({{"name", one.name}, {"why", one.why}, {"doubtful", one.is_doubtful}});
  }
  return {{"key", facts.key},   {"inputs", facts.inputs}, {"features", facts.features},
          {"columns", columns}, {"left_out", left_out},   {"joins", joins}};
}

/// Throws unless the value is a whole number: get() would convert anything.
std::uint64_t count(const nlohmann::json& value) { return value.get_ref<const nlohmann::json::number_unsigned_t&>(); }

RowFileFacts from_json(const nlohmann::json& document) {
  RowFileFacts facts;
  facts.key = document.at("key");
  facts.inputs = document.at("inputs");
  facts.features = count(document.at("features"));
  for (const nlohmann::json& one : document.at("left_out")) {
    facts.left_out.push_back(
        {one.at("name").get<std::string>(), one.at("why").get<std::string>(), one.at("doubtful").get<bool>()});
  }
  for (const nlohmann::json& one : document.at("columns")) {
    TableColumn column;
    column.name = one.at("name").get<std::string>();
    column.type = known_type(one.at("type").get<std::string>());
    column.missing = static_cast<std::int64_t>(count(one.at("missing")));
    column.mean = one.at("mean").get<double>();
    column.deviation = one.at("deviation").get<double>();
    column.categories = one.at("categories").get<std::vector<std::string>>();
    facts.columns.push_back(std::move(column));
  }
  for (const nlohmann::json& one : document.value("joins", nlohmann::json::array())) {
    facts.joins.push_back({one.at("key").get<std::string>(), static_cast<std::int64_t>(count(one.at("rows"))),
                           static_cast<std::int64_t>(count(one.at("unmatched")))});
  }
  return facts;
}

}  // namespace

struct RowFileWriter::Hasher {
  Hasher() { XXH3_64bits_reset(state); }
  ~Hasher() { XXH3_freeState(state); }
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  XXH3_state_t* state = XXH3_createState();
};

RowFileWriter::RowFileWriter(const std::filesystem::path& path, std::size_t width, Disk& disk)
    : path_(path), unfinished_(path.string() + ".part"), disk_(disk), width_(width), hasher_(new Hasher) {
  disk_.unlink(unfinished_);  // left by a killed program
  int fd = -1;
  const int failure = disk_.create(unfinished_, fd);
  if (failure != 0) {
    throw system_error(ErrorCode::kIo, unfinished_.string(), "cannot be created", failure);
  }
  fd_.reset(fd);
}

RowFileWriter::~RowFileWriter() {
  if (fd_) {
    disk_.unlink(unfinished_);
  }
}

void RowFileWriter::write(std::string_view bytes) {
  if (const int failure = disk_.write(fd_.get(), bytes)) {
    throw system_error(ErrorCode::kIo, unfinished_.string(), "cannot be written", failure);
  }
}

void RowFileWriter::end_block() {
  hashes_.push_back(XXH3_64bits_digest(hasher_->state));
  XXH3_64bits_reset(hasher_->state);
  rows_in_block_ = 0;
}

void RowFileWriter::append(std::span<const float> values) {
  write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  const std::int64_t block_rows = std::int64_t{1} << block_shift_for(width_);
  auto rows = static_cast<std::int64_t>(values.size() / width_);
  rows_ += rows;
  const float* at = values.data();
  while (rows > 0) {
    const std::int64_t taken = std::min(rows, block_rows - rows_in_block_);
    const std::size_t count = static_cast<std::size_t>(taken) * width_;
    XXH3_64bits_update(hasher_->state, at, count * sizeof(float));
    at += count;
    rows -= taken;
    rows_in_block_ += taken;
    if (rows_in_block_ == block_rows) {
      end_block();
    }
  }
}

void RowFileWriter::append_validation(std::span<const std::uint8_t> flags) {
  validation_.append(reinterpret_cast<const char*>(flags.data()), flags.size());
}

void RowFileWriter::finish(const RowFileFacts& facts) {
  if (rows_in_block_ > 0) {
    end_block();
  }
  std::string tail = validation_;
  tail.append(reinterpret_cast<const char*>(hashes_.data()), hashes_.size() * sizeof(std::uint64_t));
  const std::vector<std::uint8_t> encoded = nlohmann::json::to_cbor(to_json(facts));
  tail.append(encoded.begin(), encoded.end());
  Footer footer{};
  footer.rows = static_cast<std::uint64_t>(rows_);
  footer.width = static_cast<std::uint32_t>(width_);
  footer.block_shift = static_cast<std::uint32_t>(block_shift_for(width_));
  footer.flag_bytes = validation_.size();
  footer.facts_bytes = encoded.size();
  footer.tail_hash = XXH3_64bits(tail.data(), tail.size());
  footer.version = kRowFileVersion;
  std::copy(kMagic.begin(), kMagic.end(), footer.magic);
  footer.check = check_of(footer);
  tail.append(reinterpret_cast<const char*>(&footer), sizeof footer);
  write(tail);
  if (const int failure = disk_.sync(fd_.get())) {
    throw system_error(ErrorCode::kIo, unfinished_.string(), "cannot be written", failure);
  }
  if (const int failure = disk_.rename(unfinished_, path_)) {
    throw system_error(ErrorCode::kIo, path_.string(), "cannot be given its name", failure);
  }
  fd_.reset();
}

std::unique_ptr<RowFile> RowFile::open(const std::filesystem::path& path, Disk& disk) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
    return nullptr;
  }
  std::unique_ptr<RowFile> file(new RowFile);
  file->path_ = path;
  void* address = nullptr;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (const int failure = disk.map(fd.get(), bytes, address)) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be mapped", failure);
  }
  file->bytes_ = {static_cast<const char*>(address), bytes};
  try {
    return file->parse(file->bytes_) ? std::move(file) : nullptr;
  } catch (const nlohmann::json::exception&) {
    return nullptr;
  }
}

RowFile::~RowFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
}

bool RowFile::parse(std::string_view bytes) {
  Footer footer{};
  if (bytes.size() < sizeof footer) {
    return false;
  }
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  if (std::string_view(footer.magic, sizeof footer.magic) != kMagic || footer.version != kRowFileVersion ||
      footer.check != check_of(footer) || footer.width == 0 || footer.rows > kMost / footer.width ||
      footer.block_shift != static_cast<std::uint32_t>(block_shift_for(footer.width)) ||
      (footer.flag_bytes != 0 && footer.flag_bytes != footer.rows) || footer.facts_bytes > bytes.size()) {
    return false;
  }
  const std::uint64_t blocks = blocks_of(footer.rows, footer.block_shift);
  const std::uint64_t data = footer.rows * footer.width * sizeof(float);
  const std::uint64_t hash_bytes = blocks * sizeof(std::uint64_t);
  if (data + footer.flag_bytes + hash_bytes + footer.facts_bytes + sizeof footer != bytes.size()) {
    return false;
  }
  const std::string_view tail = bytes.substr(data, bytes.size() - sizeof footer - data);
  if (XXH3_64bits(tail.data(), tail.size()) != footer.tail_hash) {
    return false;
  }
  const std::string_view facts = tail.substr(footer.flag_bytes + hash_bytes);
  facts_ = from_json(nlohmann::json::from_cbor(facts.begin(), facts.end()));
  if (facts_.columns.size() != footer.width || facts_.features > footer.width) {
    return false;
  }
  values_ = reinterpret_cast<const float*>(bytes.data());
  width_ = footer.width;
  rows_ = static_cast<std::int64_t>(footer.rows);
  block_shift_ = static_cast<int>(footer.block_shift);
  validation_ = {reinterpret_cast<const std::uint8_t*>(tail.data()), static_cast<std::size_t>(footer.flag_bytes)};
  hashes_ = reinterpret_cast<const std::byte*>(tail.data() + footer.flag_bytes);
  checked_ = std::make_unique<std::atomic<std::uint8_t>[]>(std::max<std::size_t>(1, blocks));
  return true;
}

void RowFile::check(std::size_t block) const {
  const std::int64_t first = static_cast<std::int64_t>(block) << block_shift_;
  const std::int64_t rows = std::min(rows_ - first, std::int64_t{1} << block_shift_);
  std::uint64_t expected = 0;
  std::memcpy(&expected, hashes_ + block * sizeof expected, sizeof expected);
  if (XXH3_64bits(place(first), static_cast<std::size_t>(rows) * width_ * sizeof(float)) != expected) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    throw Error(ErrorCode::kCorrupt, path_.string(), "rows of this built table are damaged",
                "it was removed: open the table again to rebuild it");
  }
  checked_[block].store(1, std::memory_order_release);
}

}  // namespace unidle::data::tables
