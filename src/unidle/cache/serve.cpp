#include "unidle/cache/serve.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/cache/protocol.h"

namespace unidle::cache {

namespace {

void write_all(int out, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(out, bytes.data(), bytes.size());
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      throw system_error(ErrorCode::kIo, "predictor", "cannot answer", errno);
    }
  }
}

/// Returns nothing when the input ends between two frames.
std::optional<protocol::Frame> read_frame(int in, protocol::FrameReader& reader) {
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    if (auto frame = reader.next()) {
      return frame;
    }
    const ssize_t got = ::read(in, buffer.data(), buffer.size());
    if (got == 0 && reader.left_over() == 0) {
      return std::nullopt;
    }
    if (got == 0) {
      throw Error(ErrorCode::kIo, "predictor", "its input ended within a message");
    }
    if (got > 0) {
      reader.feed({buffer.data(), static_cast<std::size_t>(got)});
    } else if (errno != EINTR) {
      throw system_error(ErrorCode::kIo, "predictor", "cannot read its input", errno);
    }
  }
}

}  // namespace

void serve(int in, int out, const std::function<std::unique_ptr<Predictor>(const nlohmann::json& parameters)>& make) {
  protocol::FrameReader reader;
  auto frame = read_frame(in, reader);
  if (!frame) {
    return;
  }
  const std::unique_ptr<Predictor> predictor = make(protocol::read_hello(*frame));
  write_all(out, protocol::ready(predictor->facts()));
  while ((frame = read_frame(in, reader))) {
    const auto question = protocol::read_question(*frame);
    if (!question) {
      return;
    }
    write_all(out, protocol::result(question->id, predictor->predict(question->inputs, {})));
  }
}

}  // namespace unidle::cache
