#include "workloads/protein/peptide_features.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <random>

#include "unidle/base/error.h"
#include "workloads/protein/predictors.h"

namespace unidle::workloads::protein {
namespace {

using ::testing::HasSubstr;

double distance_of(const Point& a, const Point& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

/// By the law of cosines, in degrees.
double angle_of(const Point& a, const Point& b, const Point& c) {
  const double ab = distance_of(a, b), bc = distance_of(b, c), ac = distance_of(a, c);
  return std::acos((ab * ab + bc * bc - ac * ac) / (2 * ab * bc)) * 180 / std::numbers::pi;
}

/// By the triple product, in degrees: independent of the method that builds the chain.
double torsion_of(const Point& a, const Point& b, const Point& c, const Point& d) {
  const auto vector = [](const Point& from, const Point& to) {
    return Point{to[0] - from[0], to[1] - from[1], to[2] - from[2]};
  };
  const auto dot = [](const Point& x, const Point& y) { return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; };
  const auto cross_of = [](const Point& x, const Point& y) {
    return Point{x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]};
  };
  const Point first = vector(a, b), second = vector(b, c), third = vector(c, d);
  const double along = std::sqrt(dot(second, second));
  return std::atan2(along * dot(first, cross_of(second, third)),
                    dot(cross_of(first, second), cross_of(second, third))) *
         180 / std::numbers::pi;
}

TEST(Backbone, HasTheBondsAnglesAndTorsionsThatWereAskedFor) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> degrees(-180, 180);
  std::vector<Torsions> torsions(40);
  for (Torsions& each : torsions) {
    each = {degrees(random), degrees(random), degrees(random)};
  }
  const std::vector<Point> atoms = backbone(torsions);
  ASSERT_EQ(atoms.size(), 120U);
  const std::array<double, 3> bonds = {1.458, 1.525, 1.329};  // N-CA, CA-C, C-N
  const std::array<double, 3> angles = {111.2, 116.2, 121.7};
  for (std::size_t i = 0; i + 1 < atoms.size(); ++i) {
    EXPECT_NEAR(distance_of(atoms[i], atoms[i + 1]), bonds[i % 3], 1e-9);
    if (i + 2 < atoms.size()) {
      EXPECT_NEAR(angle_of(atoms[i], atoms[i + 1], atoms[i + 2]), angles[i % 3], 1e-6);
    }
    if (i + 3 < atoms.size()) {
      const double wanted = i % 3 == 0   ? torsions[i / 3].psi
                            : i % 3 == 1 ? torsions[i / 3].omega
                                         : torsions[i / 3 + 1].phi;
      EXPECT_NEAR(std::remainder(torsion_of(atoms[i], atoms[i + 1], atoms[i + 2], atoms[i + 3]) - wanted, 360), 0,
                  1e-6);
    }
  }
}

/// Textbook values for ideal structures: 1.5 angstrom per residue along a helix, about 3.3 along a strand.
TEST(Backbone, HelixAndStrandRiseAsTheyDoInProteins) {
  const auto rise = [](Torsions torsions) {
    const std::vector<Torsions> all(40, torsions);
    const std::vector<Point> atoms = backbone(all);
    // Over whole turns the motion across the axis cancels out: 18 residues are five turns of a helix.
    return distance_of(atoms[3 * 2 + 1], atoms[3 * 38 + 1]) / 36;
  };
  EXPECT_NEAR(rise({-57, -47, 180}), 1.5, 0.1);
  EXPECT_NEAR(rise({-139, 135, 180}), 3.3, 0.2);
}

std::span<const float> floats_of(const cache::Prediction& prediction, std::string_view name) {
  for (const cache::Tensor& tensor : prediction.tensors) {
    if (tensor.name == name) {
      return {reinterpret_cast<const float*>(tensor.data.data()), tensor.data.size() / sizeof(float)};
    }
  }
  return {};
}

TEST(Peptide, TellsWhatResiduesTendTo) {
  const auto most = [](std::string_view sequence, std::size_t residue) {
    const cache::Prediction prediction = peptide_features(sequence);
    const auto shares = floats_of(prediction, "secondary_structure").subspan(3 * residue, 3);
    return std::max_element(shares.begin(), shares.end()) - shares.begin();
  };
  EXPECT_EQ(most("AEMLAEMLAEML", 6), 0);
  EXPECT_EQ(most("VIYVIYVIYVIY", 6), 1);
  EXPECT_EQ(most("GNPGNPGNPGNP", 6), 2);
}

/// Written independently of the table under test: AAindex, CHOP780201, CHOP780202 and CHOP780101.
TEST(Peptide, PropensitiesAreThoseOfThePaper) {
  struct Row {
    const char* residue;
    double helix, strand, turn;
  };
  for (const auto& [residue, helix, strand, turn] :
       {Row{"A", 1.42, 0.83, 0.66}, {"C", 0.70, 1.19, 1.19}, {"D", 1.01, 0.54, 1.46}, {"E", 1.51, 0.37, 0.74},
        {"F", 1.13, 1.38, 0.60},    {"G", 0.57, 0.75, 1.56}, {"H", 1.00, 0.87, 0.95}, {"I", 1.08, 1.60, 0.47},
        {"K", 1.16, 0.74, 1.01},    {"L", 1.21, 1.30, 0.59}, {"M", 1.45, 1.05, 0.60}, {"N", 0.67, 0.89, 1.56},
        {"P", 0.57, 0.55, 1.52},    {"Q", 1.11, 1.10, 0.98}, {"R", 0.98, 0.93, 0.95}, {"S", 0.77, 0.75, 1.43},
        {"T", 0.83, 1.19, 0.96},    {"V", 1.06, 1.70, 0.50}, {"W", 1.08, 1.37, 0.96}, {"Y", 0.69, 1.47, 1.14}}) {
    const cache::Prediction prediction = peptide_features(residue);
    const auto shares = floats_of(prediction, "secondary_structure");
    ASSERT_EQ(shares.size(), 3U);
    const double sum = helix + strand + turn;
    EXPECT_NEAR(shares[0], helix / sum, 1e-6) << residue;
    EXPECT_NEAR(shares[1], strand / sum, 1e-6) << residue;
    EXPECT_NEAR(shares[2], turn / sum, 1e-6) << residue;
  }
}

TEST(Peptide, ArraysFitEachOther) {
  const std::string sequence = "ACDEFGHIKLMNPQRSTVWY";
  const cache::Prediction prediction = peptide_features(sequence);
  ASSERT_EQ(prediction.error, "");
  const auto shares = floats_of(prediction, "secondary_structure");
  const auto positions = floats_of(prediction, "positions");
  const auto distances = floats_of(prediction, "distances");
  const std::size_t count = sequence.size();
  ASSERT_EQ(positions.size(), 3 * count);
  ASSERT_EQ(distances.size(), count * count);
  // The first alanine: the mean over A, C, D, E (the window of a residue begins two before it) and so on.
  const double helix = (142 + 70 + 101 + 151 + 113 + 57) / 6.0, strand = (83 + 119 + 54 + 37 + 138) / 5.0,
               turn = (66 + 119 + 146 + 74) / 4.0;
  EXPECT_NEAR(shares[0], helix / (helix + strand + turn), 1e-6);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR(shares[3 * i] + shares[3 * i + 1] + shares[3 * i + 2], 1, 1e-6);
    for (std::size_t k = 0; k < count; ++k) {
      EXPECT_NEAR(distances[i * count + k],
                  std::hypot(positions[3 * i] - positions[3 * k], positions[3 * i + 1] - positions[3 * k + 1],
                             positions[3 * i + 2] - positions[3 * k + 2]),
                  1e-4);
    }
    if (i + 1 < count) {
      EXPECT_NEAR(distances[i * count + i + 1], 3.8, 0.1) << "CA to CA over a trans peptide bond";
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += positions[3 * i + static_cast<std::size_t>(axis)];
    }
    EXPECT_NEAR(sum, 0, 1e-3);
  }
}

TEST(Peptide, SaysWhatIsNoSequence) {
  EXPECT_THAT(peptide_features("").error, HasSubstr("1 to 4096"));
  EXPECT_THAT(peptide_features("ACXD").error, HasSubstr("residue 3 ('X')"));
  EXPECT_THAT(peptide_features("acd").error, HasSubstr("residue 1"));
  EXPECT_EQ(peptide_features("A").error, "");
  EXPECT_EQ(make_predictor("nonsense"), nullptr);
}

}  // namespace
}  // namespace unidle::workloads::protein
