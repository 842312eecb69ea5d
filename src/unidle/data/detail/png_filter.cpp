#include "unidle/data/detail/png_filter.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace unidle::data::detail {

namespace {

// Paeth decodes a pixel from its left neighbour, a chain of dependent instructions that leaves most of the CPU idle.
// Here four rows advance together, each two pixels behind the row above, so that every input is available: lane group j
// of a vector holds pixel x = step - 2j of row j. The output of row j - 1 two steps ago is the pixel above (b); the
// pixel above one step ago is the pixel above left (c).
constexpr int kRows = 4;
constexpr int kLag = 2;

typedef std::uint8_t Bytes16 __attribute__((vector_size(16)));
typedef std::int16_t Lanes __attribute__((vector_size(32)));  // 4 rows x 4 channels
typedef std::uint32_t Words4 __attribute__((vector_size(16)));

enum Filter : std::uint8_t { kNone = 0, kSub = 1, kUp = 2, kAverage = 3, kPaeth = 4 };

inline std::uint32_t load4(const std::uint8_t* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

inline void store4(std::uint8_t* to, std::uint32_t word) { std::memcpy(to, &word, sizeof word); }

/// Decodes four rows; with `kAllPaeth` all of them have that filter. Always inlined, so that it is compiled for each
/// instruction set.
template <int kPixel, bool kAllPaeth>
[[gnu::always_inline]] inline void unfilter_four(const std::uint8_t* raw, std::size_t raw_stride, int width,
                                                 std::uint8_t* out, std::size_t out_stride) {
  Lanes sub{};
  Lanes up{};
  Lanes average{};
  Lanes paeth{};
  Lanes first_step{};
  for (int lane = 0; lane < 16; ++lane) {
    const std::uint8_t filter = raw[static_cast<std::size_t>(lane / 4) * raw_stride];
    sub[lane] = filter == kSub ? -1 : 0;
    up[lane] = filter == kUp ? -1 : 0;
    average[lane] = filter == kAverage ? -1 : 0;
    paeth[lane] = filter == kPaeth ? -1 : 0;
    first_step[lane] = static_cast<std::int16_t>(kLag * (lane / 4));
  }
  const std::uint8_t* above = out - out_stride;
  Lanes a{};         // left: the last step's output
  Lanes previous{};  // the output of the step before
  Lanes b{};
  const int steps = width + kLag * (kRows - 1);
  const auto step = [&](int t, bool edge) __attribute__((always_inline)) {
    // Unrolled by hand: as loops, these go through memory and take three times as long.
    const auto inside = [&](int row) { return !edge || (t >= kLag * row && t - kLag * row < width); };
    const auto load = [&](int row) __attribute__((always_inline)) {
      return inside(row) ? load4(raw + static_cast<std::size_t>(row) * raw_stride + 1 + (t - kLag * row) * kPixel) : 0;
    };
    const Words4 words = {load(0), load(1), load(2), load(3)};
    const Words4 top_word = {!edge || t < width ? load4(above + t * kPixel) : 0, 0, 0, 0};
    const Lanes fresh = __builtin_convertvector(reinterpret_cast<Bytes16>(words), Lanes);
    const Lanes top = __builtin_convertvector(reinterpret_cast<Bytes16>(top_word), Lanes);
    const Lanes c = b;
    b = __builtin_shufflevector(top, previous, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);
    // The predictor as in stb_image: fewer dependent steps than comparing three distances.
    const Lanes threshold = c + c + c - b - a;
    const Lanes low = a < b ? a : b;
    const Lanes high = a < b ? b : a;
    const Lanes nearest_low = threshold < high ? c : low;
    Lanes predicted = low < threshold ? nearest_low : high;
    if constexpr (!kAllPaeth) {
      predicted = (predicted & paeth) | (((a + b) >> 1) & average) | (b & up) | (a & sub);
    }
    Lanes result = (fresh + predicted) & 0xff;
    if (edge) {  // left of the picture everything is 0
      result &= Lanes{} + static_cast<std::int16_t>(std::min(t, kLag * kRows)) >= first_step;
    }
    const auto packed = reinterpret_cast<Words4>(__builtin_convertvector(result, Bytes16));
    const auto store = [&](int row, std::uint32_t word) __attribute__((always_inline)) {
      if (inside(row)) {
        store4(out + static_cast<std::size_t>(row) * out_stride + (t - kLag * row) * kPixel, word);
      }
    };
    store(0, packed[0]);
    store(1, packed[1]);
    store(2, packed[2]);
    store(3, packed[3]);
    previous = a;
    a = result;
  };
  int t = 0;
  for (; t < kLag * (kRows - 1) && t < steps; ++t) {
    step(t, true);
  }
  for (; t < width; ++t) {
    step(t, false);
  }
  for (; t < steps; ++t) {
    step(t, true);
  }
}

std::uint8_t paeth_of(int a, int b, int c) {
  const int pa = std::abs(b - c);
  const int pb = std::abs(a - c);
  const int pc = std::abs(a + b - 2 * c);
  return static_cast<std::uint8_t>(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/// Decodes one of the remaining rows.
template <int kPixel>
void unfilter_one(const std::uint8_t* raw, int width, std::uint8_t* out, const std::uint8_t* above) {
  const std::uint8_t filter = raw[0];
  ++raw;
  std::array<std::uint8_t, kPixel> left{};
  std::array<std::uint8_t, kPixel> corner{};
  for (int x = 0; x < width; ++x, raw += kPixel, out += kPixel, above += kPixel) {
    for (std::size_t channel = 0; channel < kPixel; ++channel) {
      const std::uint8_t a = left[channel];
      const std::uint8_t b = above[channel];
      const std::uint8_t c = corner[channel];
      int predicted = 0;
      switch (filter) {
        case kSub: predicted = a; break;
        case kUp: predicted = b; break;
        case kAverage: predicted = (a + b) / 2; break;
        case kPaeth: predicted = paeth_of(a, b, c); break;
        default: break;
      }
      out[channel] = left[channel] = static_cast<std::uint8_t>(raw[channel] + predicted);
      corner[channel] = b;
    }
  }
}

using FourRows = void (*)(const std::uint8_t*, std::size_t, int, std::uint8_t*, std::size_t);

template <int kPixel, bool kAllPaeth>
void four_portable(const std::uint8_t* raw, std::size_t raw_stride, int width, std::uint8_t* out,
                   std::size_t out_stride) {
  unfilter_four<kPixel, kAllPaeth>(raw, raw_stride, width, out, out_stride);
}

#ifdef __x86_64__
template <int kPixel, bool kAllPaeth>
[[gnu::target("avx2")]] void four_avx2(const std::uint8_t* raw, std::size_t raw_stride, int width, std::uint8_t* out,
                                       std::size_t out_stride) {
  unfilter_four<kPixel, kAllPaeth>(raw, raw_stride, width, out, out_stride);
}
#endif

template <int kPixel, bool kAllPaeth>
FourRows choose() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    return four_avx2<kPixel, kAllPaeth>;
  }
#endif
  return four_portable<kPixel, kAllPaeth>;
}

template <int kPixel>
bool unfilter_rows(const FilteredRows& rows, int first, int last, int width, const PlainRows& out) {
  const FourRows all_paeth = choose<kPixel, true>();
  const FourRows mixed = choose<kPixel, false>();
  const auto raw = [&](int row) { return rows.data + static_cast<std::size_t>(row) * rows.stride; };
  for (int row = first; row < last;) {
    std::uint8_t* to = out.data + static_cast<std::size_t>(row) * out.stride;
    const int group = last - row >= kRows ? kRows : 1;
    bool paeth = true;
    for (int i = 0; i < group; ++i) {
      const std::uint8_t filter = raw(row + i)[0];
      if (filter > kPaeth) {
        return false;
      }
      paeth = paeth && filter == kPaeth;
    }
    if (group == kRows) {
      (paeth ? all_paeth : mixed)(raw(row), rows.stride, width, to, out.stride);
    } else {
      unfilter_one<kPixel>(raw(row), width, to, to - out.stride);
    }
    row += group;
  }
  return true;
}

}  // namespace

bool unfilter(const FilteredRows& rows, int first, int last, int width, int bytes_per_pixel, const PlainRows& out) {
  return bytes_per_pixel == 3 ? unfilter_rows<3>(rows, first, last, width, out)
                              : unfilter_rows<4>(rows, first, last, width, out);
}

}  // namespace unidle::data::detail
