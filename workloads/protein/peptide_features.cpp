#include "workloads/protein/peptide_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "unidle/base/printable.h"

namespace unidle::workloads::protein {

namespace {

constexpr std::size_t kMostResidues = 4096;
constexpr double kContact = 8.0;  // angstrom between CA, the usual limit of contact maps

enum Structure : std::size_t { kHelix, kStrand, kTurn, kStructures };

/// Chou and Fasman 1978: P(helix), P(strand), P(turn), times 100. In AAindex: CHOP780201, CHOP780202 and CHOP780101
/// (CHOP780203 has other values for turns). Some published lists give lysine 114 instead of 116.
struct Propensity {
  char residue;
  std::array<double, kStructures> of;
};
constexpr std::array<Propensity, 20> kPropensities = {{
    {'A', {142, 83, 66}},  {'R', {98, 93, 95}},   {'N', {67, 89, 156}},  {'D', {101, 54, 146}}, {'C', {70, 119, 119}},
    {'Q', {111, 110, 98}}, {'E', {151, 37, 74}},  {'G', {57, 75, 156}},  {'H', {100, 87, 95}},  {'I', {108, 160, 47}},
    {'L', {121, 130, 59}}, {'K', {116, 74, 101}}, {'M', {145, 105, 60}}, {'F', {113, 138, 60}}, {'P', {57, 55, 152}},
    {'S', {77, 75, 143}},  {'T', {83, 119, 96}},  {'W', {108, 137, 96}}, {'Y', {69, 147, 114}}, {'V', {106, 170, 50}},
}};
/// Window lengths for nucleation: a helix in six residues, a strand in five, a turn in four.
constexpr std::array<std::size_t, kStructures> kWindows = {6, 5, 4};

/// Of an alpha helix, an antiparallel strand, and the second residue of a type I turn.
constexpr std::array<Torsions, kStructures> kIdeal = {{{-57, -47, 180}, {-139, 135, 180}, {-60, -30, 180}}};

// Engh and Huber 1991, in angstrom and degrees.
constexpr double kBondNCa = 1.458, kBondCaC = 1.525, kBondCN = 1.329;
constexpr double kAngleNCaC = 111.2, kAngleCaCN = 116.2, kAngleCNCa = 121.7;

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

Point minus(const Point& a, const Point& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Point cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double length(const Point& a) { return std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]); }
Point unit(const Point& a) {
  const double size = length(a);
  return {a[0] / size, a[1] / size, a[2] / size};
}

/// The atom at distance `bond` from c, with the angle b-c-d and the torsion a-b-c-d.
Point next_atom(const Point& a, const Point& b, const Point& c, double bond, double angle, double torsion) {
  const Point along = unit(minus(c, b));
  const Point normal = unit(cross(minus(b, a), along));
  const Point across = cross(normal, along);
  const double theta = radians(180 - angle);
  const double chi = radians(torsion);
  const double x = bond * std::cos(theta);
  const double y = bond * std::cos(chi) * std::sin(theta);
  const double z = bond * std::sin(chi) * std::sin(theta);
  return {c[0] + x * along[0] + y * across[0] + z * normal[0], c[1] + x * along[1] + y * across[1] + z * normal[1],
          c[2] + x * along[2] + y * across[2] + z * normal[2]};
}

const Propensity* propensity_of(char residue) {
  const auto found = std::find_if(kPropensities.begin(), kPropensities.end(),
                                  [&](const Propensity& each) { return each.residue == residue; });
  return found == kPropensities.end() ? nullptr : found;
}

using Shares = std::array<double, kStructures>;

/// The mean over the window around each residue, cut off at the ends.
std::vector<Shares> structure_shares(std::string_view sequence) {
  std::vector<Shares> shares(sequence.size());
  for (std::size_t structure = 0; structure < kStructures; ++structure) {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      const std::size_t before = (kWindows[structure] - 1) / 2;
      const std::size_t begin = i < before ? 0 : i - before;
      const std::size_t end = std::min(begin + kWindows[structure], sequence.size());
      double sum = 0;
      for (std::size_t k = begin; k < end; ++k) {
        sum += propensity_of(sequence[k])->of[structure];
      }
      shares[i][structure] = sum / static_cast<double>(end - begin);
    }
  }
  for (Shares& each : shares) {
    const double sum = each[kHelix] + each[kStrand] + each[kTurn];
    for (double& share : each) {
      share /= sum;
    }
  }
  return shares;
}

/// The CA atoms only, centred.
std::vector<Point> centred_alphas(const std::vector<Point>& atoms) {
  std::vector<Point> alphas;
  Point centre{};
  for (std::size_t i = 1; i < atoms.size(); i += 3) {
    alphas.push_back(atoms[i]);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      centre[axis] += atoms[i][axis] * 3 / static_cast<double>(atoms.size());
    }
  }
  for (Point& alpha : alphas) {
    alpha = minus(alpha, centre);
  }
  return alphas;
}

cache::Tensor float_tensor(std::string name, std::vector<std::uint64_t> shape, const std::vector<float>& values) {
  return cache::make_tensor<float>(std::move(name), cache::DType::kF32, std::move(shape), values);
}

}  // namespace

std::vector<Point> backbone(std::span<const Torsions> torsions) {
  std::vector<Point> atoms;
  atoms.reserve(3 * torsions.size());
  for (std::size_t i = 0; i < torsions.size(); ++i) {
    if (i == 0) {
      const double angle = radians(kAngleNCaC);
      atoms = {{0, 0, 0}, {kBondNCa, 0, 0}, {kBondNCa - kBondCaC * std::cos(angle), kBondCaC * std::sin(angle), 0}};
      continue;
    }
    const auto place = [&](double bond, double angle, double torsion) {
      const std::size_t n = atoms.size();
      atoms.push_back(next_atom(atoms[n - 3], atoms[n - 2], atoms[n - 1], bond, angle, torsion));
    };
    place(kBondCN, kAngleCaCN, torsions[i - 1].psi);     // N, by N-CA-C-N
    place(kBondNCa, kAngleCNCa, torsions[i - 1].omega);  // CA, by CA-C-N-CA
    place(kBondCaC, kAngleNCaC, torsions[i].phi);        // C, by C-N-CA-C
  }
  return atoms;
}

cache::Prediction peptide_features(std::string_view sequence) {
  const auto wrong = std::find_if(sequence.begin(), sequence.end(), [](char c) { return propensity_of(c) == nullptr; });
  if (sequence.empty() || sequence.size() > kMostResidues) {
    return {{}, fmt::format("a sequence of 1 to {} residues was expected, not of {}", kMostResidues, sequence.size())};
  }
  if (wrong != sequence.end()) {
    return {{},
            fmt::format("residue {} ('{}') is none of the twenty amino acids", wrong - sequence.begin() + 1,
                        printable_line(std::string(1, *wrong)))};
  }
  const std::uint64_t count = sequence.size();
  std::vector<Torsions> torsions;
  std::vector<float> structure, angles, confidence, positions, distances;
  for (const Shares& shares : structure_shares(sequence)) {
    Shares sorted = shares;
    std::sort(sorted.begin(), sorted.end());
    const auto most = static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    torsions.push_back(kIdeal[most]);
    for (const double share : shares) {
      structure.push_back(static_cast<float>(share));
    }
    for (const double angle : {kIdeal[most].phi, kIdeal[most].psi, kIdeal[most].omega}) {
      angles.push_back(static_cast<float>(angle));
    }
    confidence.push_back(static_cast<float>(100 * (sorted[kStructures - 1] - sorted[kStructures - 2])));
  }
  const std::vector<Point> alphas = centred_alphas(backbone(torsions));
  std::vector<std::uint8_t> contacts;
  for (const Point& alpha : alphas) {
    for (const double coordinate : alpha) {
      positions.push_back(static_cast<float>(coordinate));
    }
    for (const Point& other : alphas) {
      const double distance = length(minus(alpha, other));
      distances.push_back(static_cast<float>(distance));
      contacts.push_back(distance < kContact ? 1 : 0);
    }
  }
  cache::Prediction prediction;
  prediction.tensors = {float_tensor("secondary_structure", {count, kStructures}, structure),
                        float_tensor("angles", {count, 3}, angles),
                        float_tensor("positions", {count, 3}, positions),
                        float_tensor("distances", {count, count}, distances),
                        cache::make_tensor<std::uint8_t>("contacts", cache::DType::kU8, {count, count}, contacts),
                        float_tensor("confidence", {count}, confidence)};
  return prediction;
}

}  // namespace unidle::workloads::protein
