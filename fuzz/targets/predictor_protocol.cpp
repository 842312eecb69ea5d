// What a predictor's program answers: frames in pieces, and each as a greeting and as results of some batches.
#include "unidle/cache/protocol.h"

#include "fuzz.h"

namespace unidle::fuzz::targets {

namespace {

void read_predictor_frames(std::string_view bytes, std::size_t piece) {
  cache::protocol::FrameReader reader(cache::protocol::Limits{1 << 20, 1 << 20});
  may_refuse([&] {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      reader.feed(bytes.substr(0, piece));
      while (const auto frame = reader.next()) {
        may_refuse([&] { cache::protocol::read_ready(*frame); });
        may_refuse([&] { cache::protocol::read_hello(*frame); });
        may_refuse([&] {
          std::size_t input_bytes = 0;
          if (const auto question = cache::protocol::read_question(*frame)) {
            for (const std::string& input : question->inputs) {
              input_bytes += input.size();
            }
            require(input_bytes == frame->data.size());
          }
        });
        for (const std::size_t count : {1U, 2U}) {
          may_refuse([&] {
            const auto predictions = cache::protocol::read_result(*frame, 1, count);
            require(predictions.size() == count);
            for (const cache::Prediction& prediction : predictions) {
              for (const cache::Tensor& tensor : prediction.tensors) {
                require(cache::array_bytes(tensor.dtype, tensor.shape) == tensor.data.size());
              }
            }
          });
        }
      }
    }
  });
}

void run_predictor_protocol(std::string_view bytes) {
  read_predictor_frames(bytes, bytes.size());
  read_predictor_frames(bytes, 7);
}

}  // namespace

const Target& predictor_protocol() {
  static const Target kTarget = {"predictor_protocol", run_predictor_protocol};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
