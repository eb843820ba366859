#pragma once
/// Evaluates the formulas of the registry's rows.
///
///     text      = value [", " …] [" by the root" | " by rank 0" | " by leaders"]
///     value     = ["at most "] expression {", +" expression " if " condition} {", " name " = " …}
///     text      = value " across, " value " within"        (or the other way round)
///     text      = value " if " condition ", else " value
///     condition = expression (" < " | " = " | " > ") expression | "P is odd" | "forwarded"
///
/// Expressions are written as on paper: products without a sign, ceil(x), floor(x), log2 x, log4 x,
/// x mod y, x^y. Variables are single letters, and the word `blocks`.

#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace formula {

using Variables = std::map<std::string, double, std::less<>>;

/// The sum of k - 1 over the factors k of x: 4 as often as it divides, then 2 and odd primes; and
/// how many factors there are.
inline double sum_over_factors(int x, bool count) {
  double sum = 0;
  for (const int k : {4, 2}) {
    for (; x % k == 0; x /= k) sum += count ? 1 : k - 1;
  }
  for (int k = 3; x > 1; k += 2) {
    for (; x % k == 0; x /= k) sum += count ? 1 : k - 1;
  }
  return sum;
}

/// One expression.
class Expression {
 public:
  Expression(std::string_view text, const Variables& variables)
      : rest_(text), variables_(variables) {}

  double value() {
    const double value = sum();
    REQUIRE_MESSAGE(rest_.empty(), "expected the end of a formula, found ", std::string(rest_));
    return value;
  }

 private:
  void blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool at_factor() {
    blanks();
    return !rest_.empty() &&
           (std::isalnum(static_cast<unsigned char>(rest_[0])) || rest_[0] == '(');
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take("+")) {
        value += product();
      } else if (take("-")) {
        value -= product();
      } else {
        blanks();
        return value;
      }
    }
  }
  double product() {
    double value = power();
    for (;;) {
      if (take("/")) {
        value /= power();
      } else if (take("mod")) {
        value = std::fmod(value, power());
      } else if (at_factor()) {
        value *= power();
      } else {
        return value;
      }
    }
  }
  double power() {
    const double base = factor();
    return take("^") ? std::pow(base, power()) : base;
  }
  double factor() {
    if (take("(")) {
      const double value = sum();
      REQUIRE(take(")"));
      return value;
    }
    if (take("ceil")) return std::ceil(factor() - 1e-9);
    if (take("floor")) return std::floor(factor() + 1e-9);
    if (take("log2")) return std::log2(power());
    if (take("log4")) return std::log2(power()) / 2;
    if (take("S(")) return of_factors(false);
    if (take("F(")) return of_factors(true);
    if (take("blocks")) return variable("blocks");
    blanks();
    REQUIRE_MESSAGE(!rest_.empty(), "expected a number or a variable, found the end of a formula");
    if (std::isdigit(static_cast<unsigned char>(rest_[0]))) {
      std::size_t length = 0;
      const double value = std::stod(std::string(rest_), &length);
      rest_.remove_prefix(length);
      return value;
    }
    const std::string name(rest_.substr(0, 1));
    rest_.remove_prefix(1);
    return variable(name);
  }
  double of_factors(bool count) {
    const double of = sum();
    REQUIRE(take(")"));
    return sum_over_factors(static_cast<int>(of), count);
  }
  double variable(std::string_view name) const {
    const auto found = variables_.find(name);
    REQUIRE_MESSAGE(found != variables_.end(), "expected a known variable, found ",
                    std::string(name));
    return found->second;
  }

  std::string_view rest_;
  const Variables& variables_;
};

/// What a text says for given variables.
struct Value {
  double value = 0;
  double within = 0;     ///< the part that is within hosts
  bool at_most = false;  ///< a bound
};

inline bool holds(std::string_view condition, const Variables& v) {
  for (const std::string_view comparison : {" < ", " = ", " > "}) {
    const std::size_t at = condition.find(comparison);
    if (at == std::string_view::npos) continue;
    const double left = Expression(condition.substr(0, at), v).value();
    const double right = Expression(condition.substr(at + comparison.size()), v).value();
    return comparison == " < " ? left < right : comparison == " > " ? left > right : left == right;
  }
  if (condition == "P is odd") return std::fmod(v.at("P"), 2) == 1;
  if (condition == "forwarded") return v.at("forwarded") != 0;
  FAIL("expected a known condition, found ", std::string(condition));
  return false;
}

/// Who a text says sends the most: "root", "rank 0", "leaders"; empty if it says nothing.
inline std::string take_who(std::string_view& text) {
  for (const std::string_view who : {"by the root", "by rank 0", "by leaders"}) {
    if (!text.ends_with(who)) continue;
    text.remove_suffix(who.size() + 1);
    return std::string(who);
  }
  return {};
}

inline Value value_of(std::string_view text, const Variables& variables) {
  const auto split = [&](std::string_view by) {
    const std::size_t at = text.find(by);
    return at == std::string_view::npos
               ? std::pair(text, std::string_view())
               : std::pair(text.substr(0, at), text.substr(at + by.size()));
  };
  if (const auto [first, rest] = split(" if ");
      !rest.empty() && rest.find(", else ") != std::string_view::npos) {
    const std::size_t at = rest.find(", else ");
    return value_of(holds(rest.substr(0, at), variables) ? first : rest.substr(at + 7), variables);
  }
  for (const auto& [here, there] : {std::pair(" across", " within"), {" within", " across"}}) {
    const auto [first, rest] = split(std::string(here) + ", ");
    if (rest.empty() || !rest.ends_with(there)) continue;
    const double a = value_of(first, variables).value;
    const double b =
        value_of(rest.substr(0, rest.size() - std::string_view(there).size()), variables).value;
    return {a + b, std::string_view(here) == " within" ? a : b, false};
  }
  Value result;
  if (text.starts_with("at most ")) {
    result.at_most = true;
    text.remove_prefix(8);
  }
  // Definitions come last and are needed first.
  Variables known = variables;
  std::string_view base = text;
  std::string_view conditional;
  for (std::size_t at; (at = text.rfind(", ")) != std::string_view::npos;
       text = base = text.substr(0, at)) {
    const std::string_view part = text.substr(at + 2);
    const std::size_t equals = part.find(" = ");
    if (part.starts_with("+")) {
      const std::size_t when = part.find(" if ");
      REQUIRE(when != part.npos);
      REQUIRE(conditional.empty());
      conditional = part;
    } else {
      REQUIRE(equals != part.npos);
      known[std::string(part.substr(0, equals))] =
          Expression(part.substr(equals + 3), known).value();
    }
  }
  result.value = Expression(base, known).value();
  if (!conditional.empty()) {
    const std::size_t when = conditional.find(" if ");
    if (holds(conditional.substr(when + 4), known))
      result.value += Expression(conditional.substr(1, when - 1), known).value();
  }
  return result;
}

}  // namespace formula
