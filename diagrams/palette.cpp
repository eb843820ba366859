#include "palette.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace baton::diagrams {
namespace {

constexpr Colour okabe_ito[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115}, {204, 121, 167},
                                {60, 160, 220}, {214, 148, 0}, {122, 98, 60}, {92, 72, 168}};

int channel(double linear) {
  const double c = std::clamp(linear, 0.0, 1.0);
  const double coded = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
  return static_cast<int>(std::lround(255 * coded));
}

/// Björn Ottosson's Oklab in polar form: lightness 0 to 1, chroma, hue in turns.
Colour oklch(double lightness, double chroma, double hue) {
  const double a = chroma * std::cos(2 * std::numbers::pi * hue);
  const double b = chroma * std::sin(2 * std::numbers::pi * hue);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

}  // namespace

std::string Colour::hex() const { return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue); }

Colour Colour::towards(const Colour& other, double part) const {
  const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + part * (b - a))); };
  return {mix(red, other.red), mix(green, other.green), mix(blue, other.blue)};
}

Palette::Palette(int colours) {
  if (colours <= static_cast<int>(std::size(okabe_ito))) {
    colours_.assign(std::begin(okabe_ito), std::end(okabe_ito));
    return;
  }
  constexpr double lightness[] = {0.52, 0.68, 0.44, 0.60};
  const int hues = std::min(colours, 96);  // more cannot be told apart
  for (int i = 0; i < hues; ++i) {
    colours_.push_back(oklch(lightness[i % 4], 0.13, 0.68 + static_cast<double>(i) / hues));
  }
}

const Colour& Palette::operator[](int i) const {
  const auto n = static_cast<int>(colours_.size());
  return colours_[static_cast<std::size_t>(((i % n) + n) % n)];
}

Colour colour_of(ComputationKind kind) {
  switch (kind) {
    case ComputationKind::forward:
      return {0, 98, 160};
    case ComputationKind::backward:
      return {196, 82, 0};
    case ComputationKind::backward_input:
      return {164, 106, 0};
    case ComputationKind::backward_weight:
      return {0, 128, 92};
    case ComputationKind::optimizer:
      return {112, 72, 160};
    case ComputationKind::other:
      break;
  }
  return {91, 104, 120};
}

Colour heat(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  return oklch(0.975 - 0.62 * s, 0.015 + 0.23 * s * (1 - 0.52 * s), 0.66 + 0.06 * s);
}

}  // namespace baton::diagrams
