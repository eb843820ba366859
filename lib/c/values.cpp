// Datatypes, ops, choices, options and texts.

#include "../base/utf8.hpp"
#include "baton/options.hpp"
#include "baton/types.hpp"
#include "baton/version.hpp"
#include "handles.hpp"

namespace baton::c {
namespace {

struct UserOp {
  Op op;
  std::string label;
};

constexpr bool equal(int number, Datatype type) { return number == static_cast<int>(type); }
static_assert(equal(BATON_I8, Datatype::i8) && equal(BATON_U8, Datatype::u8) &&
              equal(BATON_I32, Datatype::i32) && equal(BATON_U32, Datatype::u32) &&
              equal(BATON_I64, Datatype::i64) && equal(BATON_U64, Datatype::u64) &&
              equal(BATON_F8E4M3, Datatype::f8e4m3) && equal(BATON_F8E5M2, Datatype::f8e5m2) &&
              equal(BATON_F16, Datatype::f16) && equal(BATON_BF16, Datatype::bf16) &&
              equal(BATON_F32, Datatype::f32) && equal(BATON_F64, Datatype::f64) &&
              equal(BATON_USER, Datatype::user));

constexpr bool equal(int number, OpKind kind) { return number == 1 + static_cast<int>(kind); }
static_assert(equal(BATON_SUM, OpKind::sum) && equal(BATON_AVG, OpKind::avg) &&
              equal(BATON_PROD, OpKind::prod) && equal(BATON_MIN, OpKind::min) &&
              equal(BATON_MAX, OpKind::max) && equal(BATON_LOGICAL_AND, OpKind::logical_and) &&
              equal(BATON_LOGICAL_OR, OpKind::logical_or) &&
              equal(BATON_LOGICAL_XOR, OpKind::logical_xor) &&
              equal(BATON_BIT_AND, OpKind::bit_and) && equal(BATON_BIT_OR, OpKind::bit_or) &&
              equal(BATON_BIT_XOR, OpKind::bit_xor));

/// Smaller numbers are built-in ops or none: no object lies there.
constexpr baton_op first_user_op = 4096;

const std::vector<OptionInfo>& table() {
  static const std::vector<OptionInfo> table = option_table();
  return table;
}

}  // namespace

Datatype datatype(int type) {
  if (type < 0 || type > BATON_USER)
    base::refuse("expected a datatype from 0 to {}, found {}", int{BATON_USER}, type);
  return static_cast<Datatype>(type);
}

Op op_of(baton_op op) {
  if (op >= first_user_op) return reinterpret_cast<const UserOp*>(op)->op;
  if (op < BATON_SUM || op > BATON_BIT_XOR)
    base::refuse("expected an op from {} to {} or one of baton_op_create, found {}", int{BATON_SUM},
                 int{BATON_BIT_XOR}, op);
  return static_cast<OpKind>(op - BATON_SUM);
}

Choice choice_of(const char* text) { return text == nullptr ? Choice{} : parse_choice(text); }

Options options_of(const baton_options* options) {
  return options == nullptr ? Options::from_environment() : options->options;
}

void give_text(std::string_view from, char* text, std::size_t room, std::size_t* length) {
  if (length != nullptr) *length = from.size();
  if (room == 0) return;
  const std::string_view part = base::beginning_of(from, room - 1);
  std::ranges::copy(part, &given(text, "an address for the text"));
  text[part.size()] = '\0';
}

}  // namespace baton::c

using namespace baton::c;

int baton_abi_version() { return BATON_ABI_VERSION; }
const char* baton_version() { return baton::version(); }

size_t baton_datatype_bytes(int type) {
  return type < 0 || type > BATON_USER ? 0 : size_of(static_cast<baton::Datatype>(type));
}

int baton_op_create(baton_op_function function, void* context, int commutative, const char* label,
                    size_t element_bytes, baton_op* op) {
  return guarded([&] {
    given(op, "an address for the op") = 0;
    if (function == nullptr) baton::base::refuse("expected a function of the op, found NULL");
    auto made = std::make_unique<UserOp>();
    made->label = label == nullptr ? "user" : label;
    made->op = baton::Op::user(function, context, commutative != 0, made->label, element_bytes);
    *op = reinterpret_cast<baton_op>(made.release());
  });
}
void baton_op_destroy(baton_op op) {
  if (op >= first_user_op) delete reinterpret_cast<const UserOp*>(op);
}

int baton_options_create(baton_options** options) {
  return made(options, [] { return baton::Options(); });
}
int baton_options_from_environment(baton_options** options) {
  return made(options, [] { return baton::Options::from_environment(); });
}
int baton_options_set(baton_options* options, const char* name, const char* value) {
  return guarded([&] {
    given(options, "options")
        .options.set(&given(name, "a name of an option"), &given(value, "a value of an option"));
  });
}
void baton_options_destroy(baton_options* options) { delete options; }

int baton_option_count() { return static_cast<int>(table().size()); }
int baton_option_info(int index, const char** name, const char** form, const char** meaning) {
  return guarded([&] {
    if (index < 0 || index >= baton_option_count())
      baton::base::refuse("expected an option from 0 to {}, found {}", baton_option_count() - 1,
                          index);
    const baton::OptionInfo& row = table()[static_cast<std::size_t>(index)];
    if (name != nullptr) *name = row.variable.c_str();
    if (form != nullptr) *form = row.form.c_str();
    if (meaning != nullptr) *meaning = row.meaning.c_str();
  });
}
