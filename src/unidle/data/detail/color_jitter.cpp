#include "unidle/data/detail/color_jitter.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace unidle::data::detail {

namespace {

// Vectors of four, which every processor supports.
typedef float Floats __attribute__((vector_size(16)));
typedef std::int32_t Ints __attribute__((vector_size(16)));
constexpr std::size_t kWide = 4;

Floats load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
void store(Floats values, float* to) { std::memcpy(to, &values, sizeof values); }

Floats all(float value) { return Floats{} + value; }
Floats least(Floats a, Floats b) { return a < b ? a : b; }
Floats most(Floats a, Floats b) { return a > b ? a : b; }
/// Truncates. REQUIRES: no value is negative.
Floats whole(Floats values) { return __builtin_convertvector(__builtin_convertvector(values, Ints), Floats); }
Floats as_byte(Floats values) { return whole(least(most(values, all(0)), all(255))); }

struct Colors {
  Floats red;
  Floats green;
  Floats blue;
};

Floats gray_of(const Colors& c) { return whole(c.red * 0.2989F + c.green * 0.587F + c.blue * 0.114F); }

void blend(Colors& c, Floats with, float factor) {
  const Floats other = with * (1 - factor);
  c.red = as_byte(c.red * factor + other);
  c.green = as_byte(c.green * factor + other);
  c.blue = as_byte(c.blue * factor + other);
}

/// Rotates the hue of colours from 0 to 255. Equivalent to HSV, but uses the distance to each of red, green and blue
/// instead of the sextant, which avoids branches.
void turn_hue(Colors& c, float turns) {
  const Floats r = c.red / 255.0F;
  const Floats g = c.green / 255.0F;
  const Floats b = c.blue / 255.0F;
  const Floats value = most(most(r, g), b);
  const Floats range = value - least(least(r, g), b);
  const Floats one = all(1);
  const Floats by = range == 0 ? one : range;
  const Floats saturation = range / (range == 0 ? one : value);
  const Floats rc = (value - r) / by;
  const Floats gc = (value - g) / by;
  const Floats bc = (value - b) / by;
  Floats hue = value == r ? bc - gc : (value == g ? rc - bc + 2.0F : gc - rc + 4.0F);
  hue = hue * (1.0F / 6.0F) + 1.0F;
  hue -= whole(hue);
  hue += turns + 1.0F;  // keep it positive
  hue -= whole(hue);
  const Floats sixths = hue * 6.0F;
  const auto channel = [&](float shift) {
    const Floats moved = sixths + shift;
    const Floats around = moved >= 6.0F ? moved - 6.0F : moved;
    const Floats near = most(all(0), least(least(around, 4.0F - around), one));
    const Floats bright = value - value * saturation * near;
    return whole(least(most(bright, all(0)), one) * (255.0F + 1.0F - 1e-3F));
  };
  c.red = channel(5);
  c.green = channel(3);
  c.blue = channel(1);
}

}  // namespace

ColorChange draw_colors(CounterRandom& random, const ColorJitter& jitter) {
  ColorChange change;
  const Bounds bounds[] = {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue};
  for (std::size_t step = 0; step < change.factors.size(); ++step) {
    const Bounds& from = bounds[step];
    change.factors[step] = static_cast<float>(from.least + random.unit() * (from.most - from.least));
  }
  for (std::size_t left = change.order.size(); left > 1; --left) {
    std::swap(change.order[left - 1], change.order[random.below(static_cast<std::uint32_t>(left))]);
  }
  return change;
}

void ColorChanger::spread(const std::uint8_t* rgb, std::size_t pixels) {
  const std::size_t room = (pixels + kWide - 1) / kWide * kWide;
  for (std::size_t channel = 0; channel < planes_.size(); ++channel) {
    std::vector<float>& plane = planes_[channel];
    plane.assign(room, 0.0F);
    for (std::size_t i = 0; i < pixels; ++i) {
      plane[i] = rgb[i * 3 + channel];
    }
  }
}

void ColorChanger::apply(ColorStep step, float factor, std::size_t pixels) {
  const auto each = [&](const auto& change) {
    for (std::size_t at = 0; at < planes_[0].size(); at += kWide) {
      Colors c{load(&planes_[0][at]), load(&planes_[1][at]), load(&planes_[2][at])};
      change(c);
      store(c.red, &planes_[0][at]);
      store(c.green, &planes_[1][at]);
      store(c.blue, &planes_[2][at]);
    }
  };
  switch (step) {
    case ColorStep::kBrightness: each([&](Colors& c) { blend(c, all(0), factor); }); break;
    case ColorStep::kSaturation: each([&](Colors& c) { blend(c, gray_of(c), factor); }); break;
    case ColorStep::kHue: each([&](Colors& c) { turn_hue(c, factor); }); break;
    case ColorStep::kContrast: {
      double sum = 0;  // a sum of whole numbers, so it is exact; the padding of the last vector is black
      each([&](const Colors& c) {
        const Floats gray = gray_of(c);
        sum += static_cast<double>(gray[0] + gray[1] + gray[2] + gray[3]);
      });
      const auto mean = static_cast<float>(sum / static_cast<double>(pixels));
      each([&](Colors& c) { blend(c, all(mean), factor); });
      break;
    }
  }
}

const std::uint8_t* ColorChanger::run(const std::uint8_t* rgb, std::size_t pixels, const ColorChange& change) {
  spread(rgb, pixels);
  for (const ColorStep step : change.order) {
    const float factor = change.factors[static_cast<std::size_t>(step)];
    if (factor != (step == ColorStep::kHue ? 0.0F : 1.0F)) {
      apply(step, factor, pixels);
    }
  }
  result_.resize(std::max(result_.size(), pixels * 3));
  for (std::size_t channel = 0; channel < planes_.size(); ++channel) {
    for (std::size_t i = 0; i < pixels; ++i) {
      result_[i * 3 + channel] = static_cast<std::uint8_t>(planes_[channel][i]);
    }
  }
  return result_.data();
}

}  // namespace unidle::data::detail
