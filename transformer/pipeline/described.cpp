#include "described.hpp"

#include <fmt/core.h>

#include <type_traits>

#include "baton/error.hpp"

namespace baton::transformer {
namespace {

using Words = std::span<const std::int64_t>;

void no_operation(void*, const void*, const void*, std::size_t, void*) {}

/// Takes words from the front.
class Reader {
 public:
  explicit Reader(Words words) : words_(words) {}
  std::int64_t next() {
    const std::int64_t word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }
  Words list() {
    const auto n = static_cast<std::size_t>(next());
    const Words list = words_.first(n);
    words_ = words_.subspan(n);
    return list;
  }

 private:
  Words words_;
};

/// Writes or reads the numbers of a call that are equal on all ranks, but for counts.
template <class Exchange>
void numbers_of(Call& call, const Exchange& exchange) {
  exchange(call.collective);
  exchange(call.op.kind);
  exchange(call.op.commutative);
  exchange(call.op.element_bytes);
  exchange(call.root);
  exchange(call.tensor);
  exchange(call.scatter_dim);
  exchange(call.gather_dim);
  exchange(call.counts_at_root);
  exchange(call.input.type);
  exchange(call.input.count);
  exchange(call.output.type);
  exchange(call.output.count);
}

}  // namespace

void describe(const Call& call, std::vector<std::int64_t>& words) {
  Call copy = call;
  numbers_of(copy, [&](auto value) { words.push_back(static_cast<std::int64_t>(value)); });
  const auto put = [&](const auto& list, const auto& number) {
    words.push_back(static_cast<std::int64_t>(std::size(list)));
    for (const auto& one : list) words.push_back(static_cast<std::int64_t>(number(one)));
  };
  const auto itself = [](auto one) { return one; };
  const auto count = [](const auto& data) { return data.count; };
  const auto type = [](const auto& data) { return data.type; };
  put(call.inputs, count);
  put(call.inputs, type);
  put(call.outputs, count);
  put(call.outputs, type);
  for (const Shape& shape : {call.input_shape, call.output_shape}) {
    words.push_back(shape.rank());
    for (int d = 0; d < shape.rank(); ++d) words.push_back(shape[d]);
  }
  for (const auto& list :
       {call.send_counts, call.send_offsets, call.recv_counts, call.recv_offsets})
    put(list, itself);
  put(call.choice.algorithm, itself);
  words.push_back(call.choice.segment.value_or(-1));
}

Joined::Joined(Communicator& ranks, Words words) : words_(words.begin(), words.end()) {
  Reader reader(words_);
  Call call;
  numbers_of(call, [&](auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(reader.next());
  });
  if (call.op.kind == OpKind::user) {
    call.op = Op::user(no_operation, nullptr, call.op.commutative, "user", call.op.element_bytes);
  }
  const auto datas = [&](auto& list) {
    const Words counts = reader.list(), types = reader.list();
    for (std::size_t i = 0; i < counts.size(); ++i)
      list.push_back({nullptr, counts[i], static_cast<Datatype>(types[i])});
  };
  datas(inputs_);
  datas(outputs_);
  call.input_shape = Shape(reader.list());
  call.output_shape = Shape(reader.list());
  call.send_counts = reader.list();
  call.send_offsets = reader.list();
  call.recv_counts = reader.list();
  call.recv_offsets = reader.list();
  for (const std::int64_t c : reader.list()) call.choice.algorithm += static_cast<char>(c);
  if (const std::int64_t segment = reader.next(); segment >= 0) call.choice.segment = segment;

  // The counts of this rank.
  const auto own = static_cast<std::size_t>(ranks.rank());
  const Collective collective = call.collective;
  const bool uneven = !call.send_counts.empty() || !call.recv_counts.empty();
  if (collective == Collective::gather || collective == Collective::scatter ||
      (collective == Collective::all_to_all && uneven)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: expected a collective whose counts every rank knows, to take part "
                            "in it after a failure",
                            name(collective)));
  }
  if (collective == Collective::all_gather && uneven) call.input.count = call.recv_counts[own];
  if (collective == Collective::reduce_scatter && uneven) call.output.count = call.send_counts[own];
  if (collective == Collective::reduce) {
    call.output.type = call.input.type;
    call.output.count = call.root == ranks.rank() ? call.input.count : 0;
  }

  const auto bytes = [&](Datatype type, std::int64_t count) {
    return static_cast<std::size_t>(count) *
           (type == Datatype::user ? call.op.element_bytes : size_of(type));
  };
  const auto place = [&](std::vector<std::byte>& memory, auto& one, auto& list) {
    std::size_t all = bytes(one.type, one.count);
    for (const auto& data : list) all += bytes(data.type, data.count);
    memory.resize(all);
    one.data = memory.data();
    std::size_t at = 0;
    for (auto& data : list) {
      data.data = memory.data() + at;
      at += bytes(data.type, data.count);
    }
  };
  place(input_, call.input, inputs_);
  place(output_, call.output, outputs_);
  call.inputs = inputs_;
  call.outputs = outputs_;
  request_ = ranks.start(call);
}

}  // namespace baton::transformer
