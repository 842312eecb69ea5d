// Texts of different lengths, batched by similar length.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/source.h"

namespace unidle::data {

struct SequenceOptions {
  std::int64_t tokens_per_batch = 4096;  // including padding; a longer text is a batch of its own
  double padding = 0.05;                 // maximum share of padding in a bucket
  std::string column{};                  // of a CSV file; unused for FASTA and plain lines
  std::string label{};                   // column of whole numbers; no label when empty
  /// Characters by number, from 1; when empty, those of the file in order.
  std::string alphabet{};
};

/// True for .fasta, .fa, .faa and .fna, in upper or lower case.
bool is_fasta(const std::string& path);

/// Texts from a CSV column, a FASTA file or plain lines; a token is a byte. An item is a whole batch: "tokens" {rows *
/// length}, int64, row by row and padded with 0, "lengths" {rows}, and "label" {rows} with a label column. Texts of
/// similar length share a bucket, so narrow that at most `padding` of it is padding; each epoch has the same number of
/// batches per bucket, and (seed, epoch) determine their texts.
///
/// All texts are held in memory. Throws kInput with file and line for no texts, a missing column, a missing or empty
/// cell, a character outside the alphabet, and a label that is not a number; kUsage for invalid options. Thread-safe.
class SequenceSource final : public Source {
 public:
  SequenceSource(const std::string& path, const SequenceOptions& options);

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return buckets_.back().end; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::int64_t extent(std::int64_t item, std::size_t field) const override;
  std::string describe() const override;

  std::int64_t texts() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  /// Share of padding in all batches.
  double padding() const;

 private:
  struct Bucket {
    std::int64_t end;     // number of batches up to this bucket's end
    std::int64_t length;  // of its longest text
    std::int64_t rows;    // per batch
    std::size_t first;    // in sorted_
    std::size_t count;
  };
  struct Batch {
    const Bucket* bucket;
    std::int64_t first;  // row in the bucket's order
    std::int64_t rows;
  };
  void check_options() const;
  void add(std::string_view text, const std::string& where);
  void read_csv(const std::string& path, std::string_view text);
  void read_lines(const std::string& path, std::string_view text, bool fasta);
  void number_characters();
  void make_buckets();
  Batch batch(std::int64_t item) const;
  std::int64_t length(std::size_t text) const { return starts_[text + 1] - starts_[text]; }

  SequenceOptions options_;
  std::vector<Field> fields_;
  std::string characters_;            // of all texts
  std::vector<std::int64_t> starts_;  // of each text, and the end
  std::vector<std::int64_t> labels_;
  std::vector<std::size_t> sorted_;  // texts by length
  std::vector<Bucket> buckets_;
  std::array<std::uint8_t, 256> numbers_{};
};

}  // namespace unidle::data
