#include "datatype.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace baton::pmpi {
namespace {

/// The library's equal datatype, if the library has the group's reductions.
Datatype native_of(TypeGroup group, bool is_signed, std::int64_t size) {
  if (group == floating_point)
    return size == 4 ? Datatype::f32 : size == 8 ? Datatype::f64 : Datatype::user;
  if (group == byte) return Datatype::u8;
  if (group != c_integer && group != fortran_integer && group != multi_language)
    return Datatype::user;
  switch (size) {
    case 1:
      return is_signed ? Datatype::i8 : Datatype::u8;
    case 4:
      return is_signed ? Datatype::i32 : Datatype::u32;
    case 8:
      return is_signed ? Datatype::i64 : Datatype::u64;
    default:
      return Datatype::user;
  }
}

/// Size and extent; none for an invalid datatype.
std::optional<TypeInfo> measured(MPI_Datatype type) {
  MPI_Count size = 0, lower = 0, extent = 0;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS ||
      PMPI_Type_get_extent_x(type, &lower, &extent) != MPI_SUCCESS)
    return std::nullopt;
  TypeInfo info;
  info.size = size;
  info.extent = extent;
  info.dense = lower == 0 && size == extent;
  return info;
}

/// Whether the combiner is that of a predefined datatype.
bool predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

/// How a datatype was made.
class Contents {
 public:
  explicit Contents(MPI_Datatype type) : read_(read(type)) {}
  ~Contents() {
    for (MPI_Datatype& type : types) {
      if (!Contents(type).is_predefined()) PMPI_Type_free(&type);
    }
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  bool is_read() const { return read_; }  ///< or the MPI library does not tell
  bool is_predefined() const { return read_ && predefined(combiner); }
  /// Elements of member i of a struct, and its displacement.
  std::int64_t length(std::size_t i) const {
    return large.empty() ? integers[i + 1] : static_cast<std::int64_t>(large[i + 1]);
  }
  std::int64_t displacement(std::size_t i) const {
    return large.empty() ? addresses[i] : static_cast<std::int64_t>(large[types.size() + 1 + i]);
  }

  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> large;  ///< instead, of a constructor of MPI 4 with large counts
  std::vector<MPI_Datatype> types;

 private:
  bool read(MPI_Datatype type) {
#if MPI_VERSION >= 4  // the other functions refuse constructors with large counts
    MPI_Count n = 0, a = 0, l = 0, t = 0;
    if (PMPI_Type_get_envelope_c(type, &n, &a, &l, &t, &combiner) != MPI_SUCCESS) return false;
#else
    int n = 0, a = 0, t = 0;
    constexpr int l = 0;
    if (PMPI_Type_get_envelope(type, &n, &a, &t, &combiner) != MPI_SUCCESS) return false;
#endif
    if (predefined(combiner)) return true;
    integers.resize(static_cast<std::size_t>(n));
    addresses.resize(static_cast<std::size_t>(a));
    large.resize(static_cast<std::size_t>(l));
    types.resize(static_cast<std::size_t>(t), MPI_DATATYPE_NULL);
#if MPI_VERSION >= 4
    const int code = PMPI_Type_get_contents_c(type, n, a, l, t, integers.data(), addresses.data(),
                                              large.data(), types.data());
#else
    const int code =
        PMPI_Type_get_contents(type, n, a, t, integers.data(), addresses.data(), types.data());
#endif
    if (code != MPI_SUCCESS) types.clear();
    return code == MPI_SUCCESS;
  }

  bool read_;  // behind the members that read() fills
};

/// Whether data lies in memory in the order in which it is sent. Size and extent alone do not tell:
/// blocks may be in another order.
bool dense(MPI_Datatype type) {
  const auto info = measured(type);
  if (!info || !info->dense) return false;
  const Contents made(type);
  if (!made.is_read()) return false;
  if (made.is_predefined()) return true;
  if (!std::ranges::all_of(made.types, dense)) return false;
  switch (made.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_RESIZED:
    case MPI_COMBINER_VECTOR:  // size equals extent, in ascending order
      return true;
    case MPI_COMBINER_STRUCT: {
      std::int64_t end = 0;
      for (std::size_t i = 0; i < made.types.size(); ++i) {
        const std::int64_t length = made.length(i);
        if (length == 0) continue;
        if (made.displacement(i) != end) return false;
        end += length * measured(made.types[i])->size;
      }
      return true;
    }
    default:
      return false;
  }
}

int forget(MPI_Datatype, int, void* info, void*) {
  delete static_cast<TypeInfo*>(info);
  return MPI_SUCCESS;
}

/// The type of a number of packed bytes.
#if MPI_VERSION >= 4
using Packed = MPI_Count;
constexpr auto pack_some = PMPI_Pack_c;
constexpr auto unpack_some = PMPI_Unpack_c;
#else
using Packed = int;
constexpr auto pack_some = PMPI_Pack;
constexpr auto unpack_some = PMPI_Unpack;
#endif

/// Calls body(index, count) for pieces of [first, first + count) whose packed size fits an int, if
/// one element does. MPI_ERR_COUNT if an element is larger than Packed can say.
template <class Body>
int in_pieces(std::int64_t first, std::int64_t count, std::int64_t size, const Body& body) {
  if (count > 0 && size > std::numeric_limits<Packed>::max()) return MPI_ERR_COUNT;
  const std::int64_t most =
      std::max<std::int64_t>(1, (std::int64_t{1} << 30) / std::max<std::int64_t>(size, 1));
  for (std::int64_t i = 0; i < count; i += most) {
    const int code = body(first + i, static_cast<int>(std::min(most, count - i)));
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace

Datatypes::Datatypes(MPI_Comm quiet) : quiet_(quiet) {
  for (MPI_Datatype type :
       {MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED,
        MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_INT8_T, MPI_UINT8_T,
        MPI_INT16_T, MPI_UINT16_T, MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T})
    add(type, c_integer);
  for (MPI_Datatype type : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})
    add(type, fortran_integer);
  for (MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
                            MPI_REAL4, MPI_REAL8})
    add(type, floating_point);
  for (MPI_Datatype type : {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL}) add(type, logical);
  for (MPI_Datatype type :
       {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX,
        MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX,
        MPI_COMPLEX8, MPI_COMPLEX16})
    add(type, complex);
  add(MPI_BYTE, byte);
  for (MPI_Datatype type : {MPI_AINT, MPI_OFFSET, MPI_COUNT}) add(type, multi_language);
  for (MPI_Datatype type : {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                            MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER})
    add(type, pair);
  for (MPI_Datatype type : {MPI_CHAR, MPI_WCHAR, MPI_CHARACTER, MPI_PACKED}) add(type, no_group);
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &keyval_, nullptr);
}

Datatypes::~Datatypes() { PMPI_Type_free_keyval(&keyval_); }

void Datatypes::add(MPI_Datatype type, TypeGroup group) {
  if (type == MPI_DATATYPE_NULL) return;  // some MPI libraries lack some types
  const auto info = measured(type);
  if (!info) return;
  TypeInfo& entry = predefined_[type] = *info;
  entry.group = group;
  const auto is_one_of = [&](std::initializer_list<MPI_Datatype> types) {
    return std::ranges::find(types, type) != types.end();
  };
  const bool is_signed =
      !is_one_of({MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
                  MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T});
  entry.native = native_of(group, is_signed, entry.size);
}

const TypeInfo* Datatypes::find(MPI_Datatype type) {
  if (const TypeInfo* const known = find_predefined(type)) return known;
  if (type == MPI_DATATYPE_NULL) return nullptr;
  TypeInfo* known = nullptr;
  int found = 0;
  const auto look = [&] {
    return PMPI_Type_get_attr(type, keyval_, &known, &found) == MPI_SUCCESS;
  };
  if (!look()) return nullptr;
  if (found != 0) return known;
  // Another thread may use the datatype for the first time, too: a second attribute would delete
  // the first, which is in use.
  const std::lock_guard lock(first_use_);
  if (!look()) return nullptr;
  if (found != 0) return known;
  // Packing 0 elements succeeds only for a committed datatype.
  int position = 0;
  std::byte nothing[1];
  if (PMPI_Pack(nothing, 0, type, nothing, 0, &position, quiet_) != MPI_SUCCESS) return nullptr;
  auto info = measured(type);
  if (!info) return nullptr;
  info->dense = dense(type);
  auto kept = std::make_unique<TypeInfo>(*info);
  if (PMPI_Type_set_attr(type, keyval_, kept.get()) != MPI_SUCCESS) return nullptr;
  return kept.release();
}

namespace {

/// A datatype of absolute addresses, rewritten for a base other than MPI_BOTTOM: MPICH's packing
/// takes MPI_BOTTOM for a missing buffer.
class Based {
 public:
  Based(void* base, MPI_Datatype type) : base(base), type(type) {
    if (base != MPI_BOTTOM) return;
    this->base = this;
    const MPI_Aint shift = -reinterpret_cast<MPI_Aint>(this);
    MPI_Datatype moved = MPI_DATATYPE_NULL;
    MPI_Aint lowest = 0, extent = 0;
    code = PMPI_Type_get_extent(type, &lowest, &extent);
    if (code == MPI_SUCCESS) code = PMPI_Type_create_hindexed_block(1, 1, &shift, type, &moved);
    if (code != MPI_SUCCESS) return;
    code = PMPI_Type_create_resized(moved, lowest + shift, extent, &this->type);
    PMPI_Type_free(&moved);
    own_ = code == MPI_SUCCESS;
    if (own_) code = PMPI_Type_commit(&this->type);
  }
  ~Based() {
    if (own_) PMPI_Type_free(&type);
  }
  Based(const Based&) = delete;
  Based& operator=(const Based&) = delete;

  void* base;
  MPI_Datatype type;
  int code = MPI_SUCCESS;

 private:
  bool own_ = false;
};

}  // namespace

int Datatypes::pack(const void* base, std::int64_t first, std::int64_t count, MPI_Datatype type,
                    const TypeInfo& info, std::byte* to) const {
  return in_pieces(first, count, info.size, [&](std::int64_t index, int n) {
    Packed position = 0;
    const auto room = static_cast<Packed>(n * info.size);
    const Based from(element(base, index, info), type);
    if (from.code != MPI_SUCCESS) return from.code;
    const int code = pack_some(from.base, n, from.type, to, room, &position, quiet_);
    to += room;
    return code != MPI_SUCCESS ? code : position == room ? MPI_SUCCESS : MPI_ERR_INTERN;
  });
}

int Datatypes::unpack(const std::byte* from, void* base, std::int64_t first, std::int64_t count,
                      MPI_Datatype type, const TypeInfo& info) const {
  return in_pieces(first, count, info.size, [&](std::int64_t index, int n) {
    Packed position = 0;
    const auto room = static_cast<Packed>(n * info.size);
    const Based to(element(base, index, info), type);
    if (to.code != MPI_SUCCESS) return to.code;
    const int code = unpack_some(from, room, &position, to.base, n, to.type, quiet_);
    from += room;
    return code;
  });
}

}  // namespace baton::pmpi
