#include "workloads/protein/ensemble_features.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "workloads/protein/peptide_features.h"

namespace unidle::workloads::protein {
namespace {

std::span<const float> floats(const cache::Prediction& prediction, std::string_view name) {
  for (const cache::Tensor& tensor : prediction.tensors) {
    if (tensor.name == name) {
      return tensor.view().as<float>();
    }
  }
  return {};
}

TEST(Ensemble, HasTheShapesOfOneStructureAndOtherValues) {
  const std::string_view sequence = "GIGKFLKKAKKFGKAFVKILKK";
  const cache::Prediction one = peptide_features(sequence);
  const cache::Prediction many = ensemble_features(sequence);
  ASSERT_EQ(one.tensors.size(), many.tensors.size());
  for (std::size_t i = 0; i < one.tensors.size(); ++i) {
    EXPECT_EQ(one.tensors[i].name, many.tensors[i].name);
    EXPECT_EQ(one.tensors[i].shape, many.tensors[i].shape);
  }
  const std::span<const float> distances = floats(many, "distances");
  const std::size_t count = sequence.size();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(distances[i * count + i], 0);
    for (std::size_t j = 0; j < count; ++j) {
      EXPECT_EQ(distances[i * count + j], distances[j * count + i]);
    }
  }
  for (std::size_t i = 0; i + 1 < count; ++i) {
    EXPECT_NEAR(distances[i * count + i + 1], 3.8, 0.1);  // fixed, whatever the torsions
  }
  EXPECT_FALSE(std::ranges::equal(distances, floats(one, "distances")));
}

TEST(Ensemble, IsAFunctionOfTheSequence) {
  const cache::Prediction first = ensemble_features("KWKLFKKIGAVL");
  const cache::Prediction again = ensemble_features("KWKLFKKIGAVL");
  EXPECT_TRUE(std::ranges::equal(floats(first, "distances"), floats(again, "distances")));
  EXPECT_FALSE(ensemble_features("KWKLFKKIGAVLX").error.empty());
}

}  // namespace
}  // namespace unidle::workloads::protein
