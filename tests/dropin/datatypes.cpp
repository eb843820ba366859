#include "datatypes.hpp"

#include <algorithm>
#include <complex>
#include <cstring>

#include "suite.hpp"

namespace dropin {

namespace {

template <class T>
void put(T value, void* at, std::size_t offset = 0) {
  std::memcpy(static_cast<char*>(at) + offset, &value, sizeof value);
}

template <class T>
T get(const void* at, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const char*>(at) + offset, sizeof value);
  return value;
}

template <class T>
Datatype number(const char* name, MPI_Datatype handle, Kind kind) {
  return {name,
          handle,
          kind,
          sizeof(T),
          [](Value value, void* at) { put(static_cast<T>(value.a), at); },
          [](const void* at) { return Value{static_cast<std::int64_t>(get<T>(at))}; }};
}

template <class T>
Datatype complex_number(const char* name, MPI_Datatype handle) {
  return {name,
          handle,
          complex,
          2 * sizeof(T),
          [](Value value, void* at) {
            put(std::complex<T>(static_cast<T>(value.a), static_cast<T>(value.b)), at);
          },
          [](const void* at) {
            const auto value = get<std::complex<T>>(at);
            return Value{static_cast<std::int64_t>(value.real()),
                         static_cast<std::int64_t>(value.imag())};
          }};
}

template <class T, class Index>
Datatype pair(const char* name, MPI_Datatype handle) {
  struct Layout {
    T value;
    Index index;
  };
  static constexpr std::size_t at_index = offsetof(Layout, index);
  return {name,
          handle,
          indexed_pair,
          sizeof(Layout),
          [](Value value, void* at) {
            put(static_cast<T>(value.a), at);
            put(static_cast<Index>(value.b), at, at_index);
          },
          [](const void* at) {
            return Value{static_cast<std::int64_t>(get<T>(at)),
                         static_cast<std::int64_t>(get<Index>(at, at_index))};
          }};
}

Value complex_product(Value x, Value y) { return {x.a * y.a - x.b * y.b, x.a * y.b + x.b * y.a}; }

// Inputs. A result must be exact in every datatype and in any order of folding.

std::uint64_t chance(int rank, int i) { return mixed(rank, i, 11); }

Value small(Kind kind, int rank, int i, int) {
  return {static_cast<std::int64_t>(chance(rank, i) % 16),
          kind == complex ? static_cast<std::int64_t>(chance(i, rank) % 16) : 0};
}

/// Two factors that are not 1, of neighbouring ranks.
Value factor(Kind kind, int rank, int i, int size) {
  const bool first = rank == i % size, second = rank == (i + 1) % size;
  return {first ? 3 : second ? 2 : 1, kind == complex && (first || second) ? 1 : 0};
}

Value truth(Kind kind, int rank, int i, int size) {
  // All true, one false, or mixed.
  const bool value = i % 3 == 0 ? true : i % 3 == 1 ? rank != i % size : chance(rank, i) % 2;
  return {kind == logical || !value ? value : 1 + static_cast<std::int64_t>(chance(rank, i) % 100)};
}

Value bits(Kind, int rank, int i, int) {
  return {static_cast<std::int64_t>(chance(rank, i) % 128)};
}

/// Few different values, so that the index decides.
Value ranked(Kind, int rank, int i, int) {
  return {static_cast<std::int64_t>(chance(rank, i) % 3), (rank + i) % 7};
}

Value located(Value x, Value y, bool first_wins) {
  if (x.a == y.a) return {x.a, std::min(x.b, y.b)};
  return first_wins ? x : y;
}

}  // namespace

std::vector<Datatype> predefined_datatypes() {
  std::vector<Datatype> all = {
      number<signed char>("SIGNED_CHAR", MPI_SIGNED_CHAR, integer),
      number<unsigned char>("UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, integer),
      number<short>("SHORT", MPI_SHORT, integer),
      number<unsigned short>("UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, integer),
      number<int>("INT", MPI_INT, integer),
      number<unsigned>("UNSIGNED", MPI_UNSIGNED, integer),
      number<long>("LONG", MPI_LONG, integer),
      number<unsigned long>("UNSIGNED_LONG", MPI_UNSIGNED_LONG, integer),
      number<long long>("LONG_LONG", MPI_LONG_LONG, integer),
      number<long long>("LONG_LONG_INT", MPI_LONG_LONG_INT, integer),
      number<unsigned long long>("UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG, integer),
      number<std::int8_t>("INT8_T", MPI_INT8_T, integer),
      number<std::int16_t>("INT16_T", MPI_INT16_T, integer),
      number<std::int32_t>("INT32_T", MPI_INT32_T, integer),
      number<std::int64_t>("INT64_T", MPI_INT64_T, integer),
      number<std::uint8_t>("UINT8_T", MPI_UINT8_T, integer),
      number<std::uint16_t>("UINT16_T", MPI_UINT16_T, integer),
      number<std::uint32_t>("UINT32_T", MPI_UINT32_T, integer),
      number<std::uint64_t>("UINT64_T", MPI_UINT64_T, integer),
      number<MPI_Fint>("INTEGER", MPI_INTEGER, fortran_integer),
      number<std::int8_t>("INTEGER1", MPI_INTEGER1, fortran_integer),
      number<std::int16_t>("INTEGER2", MPI_INTEGER2, fortran_integer),
      number<std::int32_t>("INTEGER4", MPI_INTEGER4, fortran_integer),
      number<std::int64_t>("INTEGER8", MPI_INTEGER8, fortran_integer),
      number<float>("FLOAT", MPI_FLOAT, floating),
      number<double>("DOUBLE", MPI_DOUBLE, floating),
      number<long double>("LONG_DOUBLE", MPI_LONG_DOUBLE, floating),
      number<float>("REAL", MPI_REAL, floating),
      number<double>("DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, floating),
      number<float>("REAL4", MPI_REAL4, floating),
      number<double>("REAL8", MPI_REAL8, floating),
      number<MPI_Fint>("LOGICAL", MPI_LOGICAL, logical),
      number<bool>("C_BOOL", MPI_C_BOOL, logical),
      number<bool>("CXX_BOOL", MPI_CXX_BOOL, logical),
      complex_number<float>("COMPLEX", MPI_COMPLEX),
      complex_number<double>("DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX),
      complex_number<float>("COMPLEX8", MPI_COMPLEX8),
      complex_number<double>("COMPLEX16", MPI_COMPLEX16),
      complex_number<float>("C_COMPLEX", MPI_C_COMPLEX),
      complex_number<float>("C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX),
      complex_number<double>("C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX),
      complex_number<long double>("C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX),
      complex_number<float>("CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX),
      complex_number<double>("CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX),
      complex_number<long double>("CXX_LONG_DOUBLE_COMPLEX", MPI_CXX_LONG_DOUBLE_COMPLEX),
      number<unsigned char>("BYTE", MPI_BYTE, byte),
      number<MPI_Aint>("AINT", MPI_AINT, multi_language),
      number<MPI_Offset>("OFFSET", MPI_OFFSET, multi_language),
      number<MPI_Count>("COUNT", MPI_COUNT, multi_language),
      pair<float, int>("FLOAT_INT", MPI_FLOAT_INT),
      pair<double, int>("DOUBLE_INT", MPI_DOUBLE_INT),
      pair<long, int>("LONG_INT", MPI_LONG_INT),
      pair<int, int>("2INT", MPI_2INT),
      pair<short, int>("SHORT_INT", MPI_SHORT_INT),
      pair<long double, int>("LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT),
      pair<float, float>("2REAL", MPI_2REAL),
      pair<double, double>("2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION),
      pair<MPI_Fint, MPI_Fint>("2INTEGER", MPI_2INTEGER),
      number<char>("CHAR", MPI_CHAR, only_moved),
      number<wchar_t>("WCHAR", MPI_WCHAR, only_moved),
      number<char>("CHARACTER", MPI_CHARACTER, only_moved),
      number<char>("PACKED", MPI_PACKED, only_moved),
  };
  std::erase_if(all, [](const Datatype& type) { return type.handle == MPI_DATATYPE_NULL; });
  return all;
}

std::vector<Operation> predefined_operations() {
  constexpr unsigned ordered = integer | fortran_integer | floating | multi_language;
  constexpr unsigned bitwise = integer | fortran_integer | byte | multi_language;
  using V = Value;
  return {
      {"MAX", MPI_MAX, ordered, [](Kind, V x, V y) { return V{std::max(x.a, y.a)}; }, small},
      {"MIN", MPI_MIN, ordered, [](Kind, V x, V y) { return V{std::min(x.a, y.a)}; }, small},
      {"SUM", MPI_SUM, ordered | complex,
       [](Kind, V x, V y) {
         return V{x.a + y.a, x.b + y.b};
       },
       small},
      {"PROD", MPI_PROD, ordered | complex, [](Kind, V x, V y) { return complex_product(x, y); },
       factor},
      {"LAND", MPI_LAND, integer | logical, [](Kind, V x, V y) { return V{x.a && y.a}; }, truth},
      {"LOR", MPI_LOR, integer | logical, [](Kind, V x, V y) { return V{x.a || y.a}; }, truth},
      {"LXOR", MPI_LXOR, integer | logical, [](Kind, V x, V y) { return V{!x.a != !y.a}; }, truth},
      {"BAND", MPI_BAND, bitwise, [](Kind, V x, V y) { return V{x.a & y.a}; }, bits},
      {"BOR", MPI_BOR, bitwise, [](Kind, V x, V y) { return V{x.a | y.a}; }, bits},
      {"BXOR", MPI_BXOR, bitwise, [](Kind, V x, V y) { return V{x.a ^ y.a}; }, bits},
      {"MAXLOC", MPI_MAXLOC, indexed_pair, [](Kind, V x, V y) { return located(x, y, x.a > y.a); },
       ranked},
      {"MINLOC", MPI_MINLOC, indexed_pair, [](Kind, V x, V y) { return located(x, y, x.a < y.a); },
       ranked},
  };
}

}  // namespace dropin
