// Peptides with their structure features, in batches of similar length.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/source.h"
#include "workloads/protein/structure.h"

namespace unidle::workloads::protein {

constexpr std::string_view kAminoAcids = "ACDEFGHIKLMNPQRSTVWY";
constexpr std::int64_t kShortest = 5;
constexpr std::int64_t kLongest = 50;
/// On a GPU, lengths of batches are rounded up to a multiple of this: each shape has a captured step, so few are
/// wanted.
constexpr std::int64_t kLengthsOfGpu = 8;
/// Fields of a PeptideSource.
enum PeptideField : std::size_t { kTokens, kLength, kResidues, kAngles, kPairs };
constexpr std::int64_t kResidueFeatures = 7;  // secondary structure (3), position (3), confidence

/// A sample is a peptide of n residues: "tokens" int64 {n} (1 to 20, 0 for padding), "length" int64, "residues" float32
/// {n, 7}, "angles" float32 {n, 3} in degrees, "pairs" float32 {n, 50, 2} (distances in angstrom and contacts; columns
/// past the end are 0). n is the longest of the batch, rounded up to a multiple of `lengths`, at most 50. An item is
/// `group` peptides of similar length: peptides are sorted by length, and each epoch shuffles those of eight
/// neighbouring groups. Thread-safe.
class PeptideSource final : public data::Source {
 public:
  /// `sequences`: each has 5 to 50 of the twenty letters. `structures` must outlive this. With `keep_order`, an item is
  /// the same in every epoch.
  PeptideSource(std::vector<std::string> sequences, Structures& structures, std::int64_t group, bool keep_order,
                std::int64_t lengths = 1);

  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override;
  std::int64_t samples_per_item() const override { return group_; }
  std::int64_t extent(std::int64_t item, std::size_t field) const override;
  std::uint64_t read(const data::ItemRequest& request, std::span<const data::Places> samples) const override;
  std::int64_t look_ahead() const override;
  void expect(std::span<const data::ItemRequest> requests) const override;

 private:
  struct Block {
    std::int64_t first;
    std::int64_t count;
  };
  Block block_of(std::int64_t item) const;
  const std::string& peptide(const data::ItemRequest& request, std::int64_t row) const;
  void write(const std::string& sequence, const data::Places& places) const;

  std::vector<std::string> sequences_;  // longest first
  Structures& structures_;
  std::int64_t group_;
  bool keep_order_;
  std::int64_t lengths_;
  std::vector<data::Field> fields_;
};

/// The peptides of a text with one per line, in the first cell when there are commas. Drops other lines (headers, too
/// long, other letters) and duplicates. `left_out` counts them, except empty lines.
std::vector<std::string> peptides_of(std::string_view text, std::int64_t* left_out = nullptr);

}  // namespace unidle::workloads::protein
