// Weights in a safetensors file: what is read is written again as the same.
#include "unidle/train/checkpoints/safetensors.h"
#include "fuzz.h"

namespace unidle::fuzz::targets {

namespace {

void run_safetensors(std::string_view bytes) {
  may_refuse(
      [&] {
        const std::vector<train::SafeTensor> tensors = train::read_safetensors(bytes, "a.safetensors");
        const std::string again = train::write_safetensors(tensors);
        const std::vector<train::SafeTensor> twice = train::read_safetensors(again, "b.safetensors");
        require(twice.size() == tensors.size());
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          require(twice[i].name == tensors[i].name && twice[i].dtype == tensors[i].dtype &&
                  twice[i].shape == tensors[i].shape && twice[i].bytes == tensors[i].bytes);
        }
      },
      {ErrorCode::kInput});
}

}  // namespace

const Target& safetensors() {
  static const Target kTarget = {"safetensors", run_safetensors};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
