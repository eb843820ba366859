#pragma once

#include <string>
#include <vector>

#include "baton/schedule/computation.hpp"

namespace baton::diagrams {

/// A colour in sRGB, 0 to 255.
struct Colour {
  int red = 0, green = 0, blue = 0;

  std::string hex() const;  ///< "#0072b2"
  /// A part of the way to another colour, 0 to 1.
  Colour towards(const Colour& other, double part) const;
};

inline constexpr Colour white{255, 255, 255}, black{0, 0, 0};

/// Colours for numbers from 0 on, to be told apart also by those who see fewer: up to eight those
/// of Okabe and Ito (two of them darkened for thin lines on white), of more, hues all round the
/// circle whose neighbours differ in lightness.
class Palette {
 public:
  explicit Palette(int colours);
  const Colour& operator[](int i) const;

 private:
  std::vector<Colour> colours_;
};

/// Of a class of computations: dark enough for white text.
Colour colour_of(ComputationKind kind);

/// Shares from 0 to 1, from almost white to dark blue.
Colour heat(double share);

}  // namespace baton::diagrams
