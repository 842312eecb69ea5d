#include "unidle/data/detail/jpeg.h"

// libjpeg's header needs the types of stdio.
#include <jpeglib.h>
#include <cstdio>
// After jpeglib.h.
#include <fmt/format.h>
#include <jerror.h>

#include <algorithm>
#include <csetjmp>
#include <string>

#include "unidle/base/error.h"

namespace unidle::data::detail {

namespace {

// A progressive file of a few hundred bytes can demand that many passes over a large picture.
constexpr int kMostScans = 500;

/// True for damaged data, even though libjpeg produces a picture.
bool is_damaged_jpeg(j_common_ptr codec, int warning) {
  switch (warning) {
    // The file lacks its end marker, as some programs write it. For a single Huffman-coded scan another warning reports
    // missing pixels; for other files none does.
    case JWRN_JPEG_EOF: {
      auto* decoding = reinterpret_cast<j_decompress_ptr>(codec);
      return decoding->arith_code != 0 || jpeg_has_multiple_scans(decoding) != 0;
    }
    case JWRN_EXTRANEOUS_DATA:  // bytes between markers, written by some cameras
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_PROGRESSION: return false;
    default: return true;
  }
}

/// Converts a row of CMYK, inverted as Adobe and every other program writes it, to RGB with Pillow's arithmetic.
void rgb_of_inks(const unsigned char* inks, std::size_t pixels, unsigned char* rgb) {
  for (std::size_t i = 0; i < pixels; ++i, inks += 4, rgb += 3) {
    for (int channel = 0; channel < 3; ++channel) {
      const int product = (255 - inks[channel]) * inks[3] + 128;
      rgb[channel] = static_cast<unsigned char>(inks[3] - ((product >> 8) + product) / 256);
    }
  }
}

}  // namespace

/// libjpeg reports errors through a call that must not return. The functions that set up the jump own nothing, because
/// the jump skips destructors.
struct JpegDecoder::State {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
  std::vector<unsigned char> inks;  // a row of a CMYK picture

  static State& of(j_common_ptr codec) { return *static_cast<State*>(codec->client_data); }

  [[noreturn]] static void fail(j_common_ptr codec) { std::longjmp(of(codec).failed, 1); }
  static void warn(j_common_ptr codec, int level) {
    if (level < 0 && is_damaged_jpeg(codec, codec->err->msg_code)) {
      fail(codec);
    }
  }
  static void watch(j_common_ptr codec) {
    if (codec->is_decompressor != 0 && reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number > kMostScans) {
      codec->err->msg_code = JERR_BAD_PROGRESSION;
      fail(codec);
    }
  }

  State() {
    codec = {};
    progress = {};
    codec.err = jpeg_std_error(&errors);
    errors.error_exit = fail;
    errors.emit_message = warn;
    errors.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&codec);
    codec.client_data = this;
    progress.progress_monitor = watch;
    codec.progress = &progress;
  }
  ~State() { jpeg_destroy_decompress(&codec); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool is_cmyk() const { return codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK; }

  bool read_header(const unsigned char* bytes, unsigned long size) {
    if (setjmp(failed) != 0) {
      return false;
    }
    jpeg_abort_decompress(&codec);
    jpeg_mem_src(&codec, bytes, size);
    jpeg_read_header(&codec, TRUE);
    return true;
  }

  /// Sets the codec's output size. `left` and `width` are changed to what the codec supports.
  bool start(int shrink, JDIMENSION& left, JDIMENSION& width, bool part) {
    if (setjmp(failed) != 0) {
      return false;
    }
    codec.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
    codec.dct_method = JDCT_ISLOW;
    codec.do_fancy_upsampling = TRUE;
    codec.scale_num = 1;
    codec.scale_denom = static_cast<unsigned>(shrink);
    jpeg_start_decompress(&codec);
    if (part) {
      jpeg_crop_scanline(&codec, &left, &width);
    }
    return true;
  }

  bool read_rows(JDIMENSION top, JDIMENSION rows, unsigned char* pixels, std::size_t stride) {
    if (setjmp(failed) != 0) {
      return false;
    }
    if (top > 0) {
      jpeg_skip_scanlines(&codec, top);
    }
    while (codec.output_scanline < top + rows) {
      unsigned char* const to = pixels + static_cast<std::size_t>(codec.output_scanline - top) * stride;
      JSAMPROW row = inks.empty() ? to : inks.data();
      jpeg_read_scanlines(&codec, &row, 1);
      if (!inks.empty()) {
        rgb_of_inks(inks.data(), codec.output_width, to);
      }
    }
    jpeg_abort_decompress(&codec);
    return true;
  }

  Error error(std::string_view subject, std::string_view what) {
    const int code = errors.msg_code;
    std::string text(JMSG_LENGTH_MAX, '\0');
    errors.format_message(reinterpret_cast<j_common_ptr>(&codec), text.data());
    text.resize(text.find('\0'));
    jpeg_abort_decompress(&codec);
    if (code == JERR_OUT_OF_MEMORY) {
      return Error(ErrorCode::kOutOfMemory, std::string(subject), "libjpeg got no memory");
    }
    if (code == JERR_BAD_STATE) {  // libjpeg's error for a file that ends before its picture begins
      text = "it is cut off";
    }
    return Error(ErrorCode::kInput, std::string(subject), fmt::format("JPEG {}: {}", what, text));
  }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;

ImageInfo JpegDecoder::probe(std::span<const std::byte> bytes, std::string_view subject) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!state_->read_header(data, bytes.size())) {
    throw state_->error(subject, "header cannot be read");
  }
  const jpeg_decompress_struct& codec = state_->codec;
  check_picture_size(subject, codec.image_width, codec.image_height);
  return {ImageFormat::kJpeg, static_cast<int>(codec.image_width), static_cast<int>(codec.image_height)};
}

ImageDecoder::View JpegDecoder::decode(std::span<const std::byte> bytes, std::string_view subject, Region region,
                                       int shrink) {
  const ImageInfo info = probe(bytes, subject);
  const bool all = region.x == 0 && region.width == info.width;
  // Colours are interpolated between neighbours: two extra columns make the region's edge equal to the whole picture's.
  constexpr int kBeside = 2;
  const auto down = [&](int value) { return value / shrink; };
  const auto up = [&](int value) { return (value + shrink - 1) / shrink; };
  auto left = static_cast<JDIMENSION>(std::max(0, down(region.x) - kBeside));
  const int right = std::min(up(info.width), up(region.x + region.width) + kBeside);
  JDIMENSION width = static_cast<JDIMENSION>(right) - left;
  if (!state_->start(shrink, left, width, !all)) {
    throw state_->error(subject, "cannot be decoded");
  }
  width = state_->codec.output_width;
  const int top = down(region.y);
  const int rows = std::min(up(region.y + region.height), static_cast<int>(state_->codec.output_height)) - top;
  const std::size_t stride = static_cast<std::size_t>(width) * 3;
  state_->inks.resize(state_->is_cmyk() ? static_cast<std::size_t>(width) * 4 : 0);
  pixels_.resize(std::max(pixels_.size(), stride * static_cast<std::size_t>(rows)));
  if (!state_->read_rows(static_cast<JDIMENSION>(top), static_cast<JDIMENSION>(rows), pixels_.data(), stride)) {
    throw state_->error(subject, "cannot be decoded");
  }
  const int x = down(region.x);
  const Region decoded{x, top, up(region.x + region.width) - x, rows};
  return {info, decoded, pixels_.data() + static_cast<std::size_t>(x - static_cast<int>(left)) * 3, stride, shrink};
}

}  // namespace unidle::data::detail
