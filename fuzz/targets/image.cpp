// PNG and JPEG. The first byte chooses the region and whether checksums are made right first, so that damage reaches
// the decoder. Where our own PNG decoder and libspng both decode, they give the same pixels; only ours may do without
// what lies behind the region.
#include "unidle/data/image.h"
#include <algorithm>
#include <cstring>
#include <span>
#include "fuzz.h"
#include "unidle/data/detail/orientation.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::fuzz::targets {

namespace {

constexpr std::int64_t kMostPixels = 1 << 20;  // more only takes time

data::Region region_of(const data::ImageInfo& info, unsigned choice) {
  if (choice % 4 == 0) {
    return {};
  }
  const int x = info.width * static_cast<int>(choice % 3) / 4;
  const int y = info.height * static_cast<int>(choice % 5) / 6;
  return {x, y, std::max(1, (info.width - x) / 2), std::max(1, (info.height - y) / 2)};
}

/// The rows of `region`; empty when the bytes were refused.
std::string pixels(std::span<const std::byte> file, data::Region region, bool only_reference) {
  std::string rows;
  may_refuse([&] {
    data::ImageDecoder decoder;
    decoder.use_reference_png(only_reference);
    const auto view = decoder.decode_region(file, "input", region);
    if (region.width == 0) {
      region = {0, 0, view.info.width, view.info.height};
    }
    const std::uint8_t* corner = view.pixels + static_cast<std::size_t>(region.y - view.region.y) * view.stride +
                                 static_cast<std::size_t>(region.x - view.region.x) * 3;
    for (int row = 0; row < region.height; ++row) {
      rows.append(reinterpret_cast<const char*>(corner + static_cast<std::size_t>(row) * view.stride),
                  static_cast<std::size_t>(region.width) * 3);
    }
  });
  return rows;
}

void run_image(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  const auto choice = static_cast<unsigned char>(bytes[0]);
  std::string file(bytes.substr(1));
  if (choice >= 128) {
    data::testing::repair_crcs(file);
  }
  const auto view = std::as_bytes(std::span(file));
  data::detail::orientation_of(view);
  may_refuse([&] {
    const data::ImageInfo info = data::probe_image(view, "input");
    if (std::int64_t{info.width} * info.height > kMostPixels) {
      return;
    }
    const data::Region region = region_of(info, choice);
    const std::string ours = pixels(view, region, false);
    const std::string reference = pixels(view, region, true);
    require(reference.empty() || ours == reference);
    data::ImageDecoder().decode_region(view, "input", region, 2 << choice % 3);
  });
}

}  // namespace

const Target& image() {
  static const Target kTarget = {"image", run_image};
  return kTarget;
}

}  // namespace unidle::fuzz::targets
