#include "workloads/protein/ensemble_features.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "workloads/protein/peptide_features.h"

namespace unidle::workloads::protein {

namespace {

constexpr std::size_t kMovesPerResidue = 200;
constexpr double kStepDegrees = 15;
constexpr double kWidthDegrees = 40;
constexpr double kContactAngstrom = 8.0;
constexpr double kClashAngstrom = 3.6;
constexpr double kClashEnergy = 5;
constexpr std::string_view kHydrophobic = "ACFILMV";

/// SplitMix64 (Steele, Lea and Flood 2014), seeded by the sequence (FNV-1a), so that every machine draws the same
/// numbers.
class Draws {
 public:
  explicit Draws(std::string_view sequence) {
    for (const char residue : sequence) {
      state_ = (state_ ^ static_cast<unsigned char>(residue)) * 0x100000001b3ULL;
    }
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(uniform() * static_cast<double>(count)); }
  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform());  // Box and Muller
  }

 private:
  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

/// One conformation.
struct Conformation {
  std::vector<Torsions> torsions;
  std::vector<Point> alphas;
  double energy = 0;
};

double distance(const Point& a, const Point& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

class Sampler {
 public:
  Sampler(std::string_view sequence, std::vector<Torsions> ideal)
      : draws_(sequence), ideal_(std::move(ideal)), sums_(sequence.size() * sequence.size()) {
    for (const char residue : sequence) {
      hydrophobic_.push_back(kHydrophobic.find(residue) != std::string_view::npos);
    }
    now_ = at(ideal_);
    best_ = now_;
  }

  void run() {
    const std::size_t moves = kMovesPerResidue * ideal_.size();
    for (std::size_t move = 0; move < moves; ++move) {
      step();
      if (move >= moves / 2) {
        count();
      }
    }
  }
  const Conformation& best() const { return best_; }
  double mean_distance(std::size_t i, std::size_t j) const {
    return sums_[i * ideal_.size() + j] / static_cast<double>(counted_);
  }

 private:
  Conformation at(std::vector<Torsions> torsions) const {
    Conformation made{std::move(torsions), {}, 0};
    const std::vector<Point> atoms = backbone(made.torsions);
    for (std::size_t atom = 1; atom < atoms.size(); atom += 3) {
      made.alphas.push_back(atoms[atom]);
    }
    made.energy = energy(made);
    return made;
  }
  double energy(const Conformation& of) const {
    double sum = 0;
    for (std::size_t i = 0; i < ideal_.size(); ++i) {
      const double phi = (of.torsions[i].phi - ideal_[i].phi) / kWidthDegrees;
      const double psi = (of.torsions[i].psi - ideal_[i].psi) / kWidthDegrees;
      sum += 0.5 * (phi * phi + psi * psi);
      for (std::size_t j = i + 3; j < ideal_.size(); ++j) {
        const double apart = distance(of.alphas[i], of.alphas[j]);
        sum += apart < kClashAngstrom ? kClashEnergy : 0;
        sum -= j > i + 3 && hydrophobic_[i] && hydrophobic_[j] && apart < kContactAngstrom ? 1 : 0;
      }
    }
    return sum;
  }
  void step() {
    std::vector<Torsions> moved = now_.torsions;
    Torsions& one = moved[draws_.below(moved.size())];
    one.phi += kStepDegrees * draws_.normal();
    one.psi += kStepDegrees * draws_.normal();
    Conformation next = at(std::move(moved));
    if (draws_.uniform() < std::exp(now_.energy - next.energy)) {
      now_ = std::move(next);
      if (now_.energy < best_.energy) {
        best_ = now_;
      }
    }
  }
  void count() {
    for (std::size_t i = 0; i < ideal_.size(); ++i) {
      for (std::size_t j = 0; j < ideal_.size(); ++j) {
        sums_[i * ideal_.size() + j] += distance(now_.alphas[i], now_.alphas[j]);
      }
    }
    ++counted_;
  }

  Draws draws_;
  std::vector<Torsions> ideal_;
  std::vector<bool> hydrophobic_;
  Conformation now_;
  Conformation best_;
  std::vector<double> sums_;
  std::size_t counted_ = 0;
};

/// The values of the array with that name, writable. REQUIRES: it exists.
template <typename Value>
std::span<Value> array_of(cache::Prediction& prediction, std::string_view name) {
  for (cache::Tensor& tensor : prediction.tensors) {
    if (tensor.name == name) {
      return {reinterpret_cast<Value*>(tensor.data.data()), tensor.data.size() / sizeof(Value)};
    }
  }
  return {};
}

void put_best(cache::Prediction& prediction, const Conformation& best) {
  const std::span<float> angles = array_of<float>(prediction, "angles");
  const std::span<float> positions = array_of<float>(prediction, "positions");
  Point centre{};
  for (const Point& alpha : best.alphas) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      centre[axis] += alpha[axis] / static_cast<double>(best.alphas.size());
    }
  }
  for (std::size_t i = 0; i < best.alphas.size(); ++i) {
    angles[3 * i] = static_cast<float>(std::remainder(best.torsions[i].phi, 360));
    angles[3 * i + 1] = static_cast<float>(std::remainder(best.torsions[i].psi, 360));
    for (std::size_t axis = 0; axis < 3; ++axis) {
      positions[3 * i + axis] = static_cast<float>(best.alphas[i][axis] - centre[axis]);
    }
  }
}

}  // namespace

cache::Prediction ensemble_features(std::string_view sequence) {
  cache::Prediction prediction = peptide_features(sequence);
  if (!prediction.error.empty()) {
    return prediction;
  }
  const std::span<const float> angles = array_of<float>(prediction, "angles");
  std::vector<Torsions> ideal;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    ideal.push_back({angles[3 * i], angles[3 * i + 1], angles[3 * i + 2]});
  }
  Sampler sampler(sequence, std::move(ideal));
  sampler.run();
  put_best(prediction, sampler.best());
  const std::span<float> distances = array_of<float>(prediction, "distances");
  const std::span<std::uint8_t> contacts = array_of<std::uint8_t>(prediction, "contacts");
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    for (std::size_t j = 0; j < sequence.size(); ++j) {
      const double mean = sampler.mean_distance(i, j);
      distances[i * sequence.size() + j] = static_cast<float>(mean);
      contacts[i * sequence.size() + j] = mean < kContactAngstrom ? 1 : 0;
    }
  }
  return prediction;
}

}  // namespace unidle::workloads::protein
