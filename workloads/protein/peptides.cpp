#include "workloads/protein/peptides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::workloads::protein {

namespace {

constexpr std::int64_t kGroupsInBlock = 8;
/// How many peptides ahead features are requested.
constexpr std::int64_t kAhead = 256;

std::span<float> floats(std::span<std::byte> place) {
  return {reinterpret_cast<float*>(place.data()), place.size() / sizeof(float)};
}

const cache::TensorView& find(const cache::Entry& entry, std::string_view name) {
  const cache::TensorView* found = entry.find(name);
  if (found == nullptr) {
    throw Error(ErrorCode::kCorrupt, std::string(name), "is missing among structure features",
                "unidle cache prune, or another cache.folder");
  }
  return *found;
}

}  // namespace

PeptideSource::PeptideSource(std::vector<std::string> sequences, Structures& structures, std::int64_t group,
                             bool keep_order, std::int64_t lengths)
    : sequences_(std::move(sequences)),
      structures_(structures),
      group_(group),
      keep_order_(keep_order),
      lengths_(lengths) {
  if (static_cast<std::int64_t>(sequences_.size()) < group_) {
    throw Error(ErrorCode::kInput, "data.group",
                fmt::format("is {}, and there are {} peptides", group_, sequences_.size()), "take a smaller group");
  }
  std::stable_sort(sequences_.begin(), sequences_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  fields_ = {{"tokens", data::DType::kI64, {kLongest}, true},
             {"length", data::DType::kI64, {}},
             {"residues", data::DType::kF32, {kLongest, kResidueFeatures}, true},
             {"angles", data::DType::kF32, {kLongest, 3}, true},
             {"pairs", data::DType::kF32, {kLongest, kLongest, 2}, true}};
}

std::int64_t PeptideSource::items() const { return static_cast<std::int64_t>(sequences_.size()) / group_; }

/// The last block also takes the remainder that fills no group, so that every peptide occurs in some epoch.
PeptideSource::Block PeptideSource::block_of(std::int64_t item) const {
  const std::int64_t block = item / kGroupsInBlock;
  const std::int64_t first = block * kGroupsInBlock * group_;
  const bool last = (block + 1) * kGroupsInBlock >= items();
  return {first, (last ? static_cast<std::int64_t>(sequences_.size()) : first + kGroupsInBlock * group_) - first};
}

std::int64_t PeptideSource::extent(std::int64_t item, std::size_t) const {
  const std::int64_t longest = keep_order_ ? item * group_ : block_of(item).first;
  const auto length = static_cast<std::int64_t>(sequences_[static_cast<std::size_t>(longest)].size());
  return std::min(kLongest, (length + lengths_ - 1) / lengths_ * lengths_);
}

const std::string& PeptideSource::peptide(const data::ItemRequest& request, std::int64_t row) const {
  std::int64_t chosen = request.item * group_ + row;
  if (!keep_order_) {
    const Block block = block_of(request.item);
    const std::uint64_t key = data::hash_words({request.seed, static_cast<std::uint64_t>(block.first)});
    chosen = block.first + data::shuffled_index(key, request.epoch, chosen - block.first, block.count);
  }
  return sequences_[static_cast<std::size_t>(chosen)];
}

std::uint64_t PeptideSource::read(const data::ItemRequest& request, std::span<const data::Places> samples) const {
  for (std::size_t row = 0; row < samples.size(); ++row) {
    write(peptide(request, static_cast<std::int64_t>(row)), samples[row]);
  }
  return 0;
}

std::int64_t PeptideSource::look_ahead() const {
  return structures_.computes_ahead() ? std::max<std::int64_t>(1, kAhead / group_) : 0;
}

void PeptideSource::expect(std::span<const data::ItemRequest> requests) const {
  std::vector<std::string> sequences;
  for (const data::ItemRequest& request : requests) {
    for (std::int64_t row = 0; row < group_; ++row) {
      sequences.push_back(peptide(request, row));
    }
  }
  structures_.expect(sequences);
}

void PeptideSource::write(const std::string& sequence, const data::Places& places) const {
  for (const std::span<std::byte> place : places) {
    std::memset(place.data(), 0, place.size());
  }
  const cache::Entry entry = structures_.get(sequence);
  const auto structure = find(entry, "secondary_structure").as<float>();
  const auto positions = find(entry, "positions").as<float>();
  const auto confidence = find(entry, "confidence").as<float>();
  const auto angles = find(entry, "angles").as<float>();
  const auto distances = find(entry, "distances").as<float>();
  const auto contacts = find(entry, "contacts").as<std::uint8_t>();
  const std::size_t count = sequence.size();
  const auto length = static_cast<std::int64_t>(count);
  std::memcpy(places[kLength].data(), &length, sizeof(length));
  auto* tokens = reinterpret_cast<std::int64_t*>(places[kTokens].data());
  float* residues = floats(places[kResidues]).data();
  float* pairs = floats(places[kPairs]).data();
  std::copy(angles.begin(), angles.end(), floats(places[kAngles]).begin());
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int64_t>(kAminoAcids.find(sequence[i])) + 1;
    float* residue = residues + i * kResidueFeatures;
    std::copy_n(structure.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, residue);
    std::copy_n(positions.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, residue + 3);
    residue[6] = confidence[i];
    for (std::size_t j = 0; j < count; ++j) {
      float* pair = pairs + 2 * (i * kLongest + j);
      pair[0] = distances[i * count + j];
      pair[1] = contacts[i * count + j];
    }
  }
}

std::vector<std::string> peptides_of(std::string_view text, std::int64_t* left_out) {
  std::vector<std::string> peptides;
  std::set<std::string, std::less<>> seen;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view cell = line.substr(0, std::min(line.find_first_of(",\r \t"), line.size()));
    const auto length = static_cast<std::int64_t>(cell.size());
    if (length >= kShortest && length <= kLongest && cell.find_first_not_of(kAminoAcids) == std::string_view::npos &&
        seen.emplace(cell).second) {
      peptides.emplace_back(cell);
    } else if (left_out != nullptr && line.find_first_not_of("\r \t") != std::string_view::npos) {
      ++*left_out;
    }
  }
  return peptides;
}

}  // namespace unidle::workloads::protein
