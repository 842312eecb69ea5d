#include "unidle/data/sources/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/csv_rows.h"
#include "unidle/data/detail/line_ends.h"
#include "unidle/data/loader.h"
#include "unidle/data/random.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

namespace {

std::string extension_of(const std::string& path) { return lower(std::filesystem::path(path).extension().string()); }

}  // namespace

bool is_fasta(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".fasta" || extension == ".fa" || extension == ".faa" || extension == ".fna";
}

SequenceSource::SequenceSource(const std::string& path, const SequenceOptions& options) : options_(options) {
  check_options();
  starts_.push_back(0);
  const std::string text = detail::without_mark(detail::with_line_feeds(read_file(path)));
  const std::string kind = extension_of(path);
  if (options_.column.empty() && (kind == ".csv" || kind == ".tsv")) {
    throw Error(ErrorCode::kUsage, path, "is a table; expected the option column, with the name of its texts");
  }
  if (!options_.column.empty()) {
    read_csv(path, text);
  } else {
    read_lines(path, text, is_fasta(path));
  }
  if (texts() == 0) {
    throw Error(ErrorCode::kInput, path, "holds no texts");
  }
  number_characters();
  make_buckets();
  std::int64_t most_rows = 0;
  std::int64_t most_tokens = 0;
  for (const Bucket& bucket : buckets_) {
    most_rows = std::max(most_rows, bucket.rows);
    most_tokens = std::max(most_tokens, bucket.rows * bucket.length);
  }
  fields_ = {{"tokens", DType::kI64, {most_tokens}, true}, {"lengths", DType::kI64, {most_rows}, true}};
  if (!options_.label.empty()) {
    fields_.push_back({"label", DType::kI64, {most_rows}, true});
  }
}

void SequenceSource::check_options() const {
  const auto fail = [](std::string_view name, std::string message) {
    throw Error(ErrorCode::kUsage, fmt::format("sequences option {}", name), std::move(message));
  };
  if (options_.tokens_per_batch < 1 || options_.tokens_per_batch > (1 << 30)) {
    fail("tokens_per_batch", fmt::format("expected 1 to {}, found {}", 1 << 30, options_.tokens_per_batch));
  }
  if (!(options_.padding >= 0 && options_.padding < 1)) {
    fail("padding", fmt::format("expected a share from 0 to below 1, found {}", options_.padding));
  }
  if (!options_.label.empty() && options_.column.empty()) {
    fail("label", "expected with a column: only CSV files have labels");
  }
  if (std::set<char>(options_.alphabet.begin(), options_.alphabet.end()).size() != options_.alphabet.size() ||
      options_.alphabet.size() > 255) {
    fail("alphabet", "expected different characters, at most 255");
  }
}

void SequenceSource::add(std::string_view text, const std::string& where) {
  if (text.empty()) {
    throw Error(ErrorCode::kInput, where, "is an empty text");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::kInput, where, "holds a zero byte, so it is not text");
  }
  for (const char character : text) {
    if (!options_.alphabet.empty() && options_.alphabet.find(character) == std::string::npos) {
      throw Error(ErrorCode::kInput, where, fmt::format("the character {:?} is not in the alphabet", character));
    }
  }
  characters_ += text;
  starts_.push_back(static_cast<std::int64_t>(characters_.size()));
}

void SequenceSource::read_csv(const std::string& path, std::string_view text) {
  CsvRows rows(text, path);
  if (!rows.next()) {
    throw Error(ErrorCode::kInput, path, "has no header line");
  }
  const std::vector<std::string> header = rows.fields();
  const auto column_of = [&](const std::string& name) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", path, rows.line()),
                  fmt::format("has no column {}; there are: {}", name, fmt::join(header, ", ")));
    }
    return static_cast<std::size_t>(found - header.begin());
  };
  const std::size_t column = column_of(options_.column);
  const std::size_t label = options_.label.empty() ? 0 : column_of(options_.label);
  while (rows.next()) {
    const std::string where = fmt::format("{}:{}", path, rows.line());
    if (rows.fields().size() != header.size()) {
      throw Error(ErrorCode::kInput, where,
                  fmt::format("has {} columns; expected {}", rows.fields().size(), header.size()));
    }
    add(rows.fields()[column], where);
    if (!options_.label.empty()) {
      const std::string& cell = rows.fields()[label];
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc() || end != cell.data() + cell.size()) {
        throw Error(ErrorCode::kInput, where, fmt::format("label: expected a whole number, found {}", cell));
      }
      labels_.push_back(value);
    }
  }
}

void SequenceSource::read_lines(const std::string& path, std::string_view text, bool fasta) {
  std::string record;
  std::int64_t record_line = 0;
  std::int64_t number = 0;
  const auto finish = [&] {
    if (record_line != 0) {
      add(record, fmt::format("{}:{}", path, record_line));
    }
    record.clear();
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    ++number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      continue;
    }
    if (fasta && line.front() != '>') {
      if (record_line == 0) {
        throw Error(ErrorCode::kInput, fmt::format("{}:{}", path, number), "expected a line with > before a sequence");
      }
      record += line;
      continue;
    }
    finish();
    record_line = number;
    record = fasta ? "" : line;
  }
  finish();
}

void SequenceSource::number_characters() {
  if (options_.alphabet.empty()) {
    const std::set<unsigned char> found(characters_.begin(), characters_.end());
    options_.alphabet.assign(found.begin(), found.end());
    if (options_.alphabet.size() > 255) {
      throw Error(ErrorCode::kInput, "sequences", "more than 255 different characters");
    }
  }
  for (std::size_t i = 0; i < options_.alphabet.size(); ++i) {
    numbers_[static_cast<unsigned char>(options_.alphabet[i])] = static_cast<std::uint8_t>(i + 1);
  }
}

void SequenceSource::make_buckets() {
  sorted_.resize(static_cast<std::size_t>(texts()));
  std::iota(sorted_.begin(), sorted_.end(), std::size_t{0});
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [this](std::size_t a, std::size_t b) { return length(a) > length(b); });
  for (std::size_t first = 0; first < sorted_.size();) {
    const std::int64_t longest = length(sorted_[first]);
    std::size_t end = first;
    for (std::int64_t tokens = 0; end < sorted_.size(); ++end) {
      tokens += length(sorted_[end]);
      const auto places = static_cast<double>(longest * static_cast<std::int64_t>(end + 1 - first));
      if (places - static_cast<double>(tokens) > options_.padding * places) {
        break;
      }
    }
    const std::int64_t rows = std::max<std::int64_t>(1, options_.tokens_per_batch / longest);
    const auto count = static_cast<std::int64_t>(end - first);
    const std::int64_t before = buckets_.empty() ? 0 : buckets_.back().end;
    buckets_.push_back({before + (count + rows - 1) / rows, longest, std::min(rows, count), first, end - first});
    first = end;
  }
}

SequenceSource::Batch SequenceSource::batch(std::int64_t item) const {
  const auto bucket = std::upper_bound(buckets_.begin(), buckets_.end(), item,
                                       [](std::int64_t wanted, const Bucket& one) { return wanted < one.end; });
  const std::int64_t before = bucket == buckets_.begin() ? 0 : std::prev(bucket)->end;
  const std::int64_t first = (item - before) * bucket->rows;
  return {&*bucket, first, std::min(bucket->rows, static_cast<std::int64_t>(bucket->count) - first)};
}

std::int64_t SequenceSource::extent(std::int64_t item, std::size_t field) const {
  const Batch wanted = batch(item);
  return field == 0 ? wanted.rows * wanted.bucket->length : wanted.rows;
}

std::uint64_t SequenceSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  const Batch wanted = batch(request.item);
  const Bucket& bucket = *wanted.bucket;
  const Places& places = samples[0];
  for (std::span<std::byte> place : places) {
    std::memset(place.data(), 0, place.size());  // also behind the rows, when a batch of batches is longer
  }
  // Each bucket has its own order; otherwise texts of two buckets would meet again and again.
  const std::uint64_t key = hash_words({request.seed, bucket.first});
  for (std::int64_t row = 0; row < wanted.rows; ++row) {
    const std::int64_t chosen =
        shuffled_index(key, request.epoch, wanted.first + row, static_cast<std::int64_t>(bucket.count));
    const std::size_t text = sorted_[bucket.first + static_cast<std::size_t>(chosen)];
    auto* tokens = reinterpret_cast<std::int64_t*>(places[0].data()) + row * bucket.length;
    const std::int64_t characters = length(text);
    for (std::int64_t i = 0; i < characters; ++i) {
      tokens[i] = numbers_[static_cast<unsigned char>(characters_[static_cast<std::size_t>(starts_[text] + i)])];
    }
    const auto at = static_cast<std::size_t>(row) * sizeof(std::int64_t);
    std::memcpy(places[1].data() + at, &characters, sizeof characters);
    if (places.size() > 2) {
      std::memcpy(places[2].data() + at, &labels_[text], sizeof(std::int64_t));
    }
  }
  return 0;
}

double SequenceSource::padding() const {
  double places = 0;
  for (const Bucket& bucket : buckets_) {
    places += static_cast<double>(bucket.length) * static_cast<double>(bucket.count);
  }
  return 1 - static_cast<double>(characters_.size()) / places;
}

std::string SequenceSource::describe() const {
  return nlohmann::json{{"batched", true},
                        {"texts", texts()},
                        {"alphabet", options_.alphabet},
                        {"padding", padding()},
                        {"buckets", buckets_.size()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace sources {

namespace {

std::unique_ptr<Source> open_sequences(SourceOptions& options, std::span<const ArrayView>) {
  SequenceOptions wanted;
  const std::string path = options.text("path");
  wanted.tokens_per_batch = options.integer("tokens_per_batch", wanted.tokens_per_batch);
  wanted.padding = options.real("padding", wanted.padding);
  wanted.column = options.word("column", "");
  wanted.label = options.word("label", "");
  wanted.alphabet = options.word("alphabet", "");
  options.done();
  return std::make_unique<SequenceSource>(path, wanted);
}

}  // namespace

const SourceKind& sequences() {
  static const SourceKind kKind = {"sequences", open_sequences};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
