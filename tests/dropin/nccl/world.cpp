#include "world.hpp"

#include <cstring>

#include "baton/memory.hpp"
#include "support/ranks.hpp"

namespace nccl_stand_in {

using baton::Datatype;

void failed(ncclResult_t found, ncclResult_t expected, const std::vector<std::string>& parts,
            ncclComm_t comm) {
  CHECK(found == expected);
  const std::string text = ncclGetLastError(comm);
  CHECK_MESSAGE(support::holds(text, parts), text);
}

std::byte* Rank::put(const Bytes& bytes) const {
  std::byte* const at = on().allocate(bytes.size() + 1);
  std::memcpy(on().host_view(at), bytes.data(), bytes.size());
  return at;
}

Bytes Rank::got(const void* at, std::size_t bytes) const {
  const std::byte* const view = on().host_view(at);
  return {view, view + bytes};
}

World::World(const Layout& layout, const char* name) : size_(layout.size()) {
  const ncclUniqueId identifier = layout.identifier();
  own_.resize(static_cast<std::size_t>(layout.ranks_each));
  ok(ncclGroupStart());
  for (int i = 0; i < layout.ranks_each; ++i) {
    Rank& one = own_[static_cast<std::size_t>(i)];
    one.rank = layout.process * layout.ranks_each + i;
    one.device = one.rank % devices;
    one.stream = make_stream(one.device);
    set_device(one.device);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = name;
    ok(name == nullptr ? ncclCommInitRank(&one.comm, size_, identifier, one.rank)
                       : ncclCommInitRankConfig(&one.comm, size_, identifier, one.rank, &config));
  }
  set_device(0);
  ok(ncclGroupEnd());
  for (const Rank& one : own_) REQUIRE(one.comm != nullptr);
}

World::~World() {
  for (const Rank& one : own_) ok(ncclCommDestroy(one.comm));
}

void World::together(const std::function<ncclResult_t(Rank&)>& call) {
  ok(ncclGroupStart());
  for (Rank& one : own_) ok(call(one));
  ok(ncclGroupEnd());
}

void World::meet() {
  std::vector<std::byte*> tokens;
  for (const Rank& one : own_) tokens.push_back(one.put(Bytes(1)));
  std::size_t i = 0;
  together([&](const Rank& one) {
    std::byte* const token = tokens[i++];
    return ncclAllReduce(token, token, 1, ncclInt8, ncclSum, one.comm, one.stream);
  });
  synchronize();
  for (i = 0; i < tokens.size(); ++i) own_[i].free(tokens[i]);
}

Datatype datatype_of(ncclDataType_t type) {
  constexpr Datatype types[] = {Datatype::i8,  Datatype::u8,   Datatype::i32,    Datatype::u32,
                                Datatype::i64, Datatype::u64,  Datatype::f16,    Datatype::f32,
                                Datatype::f64, Datatype::bf16, Datatype::f8e4m3, Datatype::f8e5m2};
  return types[type];
}

Bytes numbers(Datatype type, std::size_t count, int rank) {
  const std::size_t size = size_of(type);
  Bytes bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const int value = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5 + i / 11) % 3);
    const auto store = [&](auto number) { std::memcpy(bytes.data() + i * size, &number, size); };
    const auto f = static_cast<float>(value);
    switch (type) {
      case Datatype::f8e4m3:
        store(baton::to_f8e4m3(f));
        break;
      case Datatype::f8e5m2:
        store(baton::to_f8e5m2(f));
        break;
      case Datatype::f16:
        store(baton::to_f16(f));
        break;
      case Datatype::bf16:
        store(baton::to_bf16(f));
        break;
      case Datatype::f32:
        store(f);
        break;
      case Datatype::f64:
        store(static_cast<double>(f));
        break;
      default: {
        const std::int64_t wide = value;  // little-endian
        std::memcpy(bytes.data() + i * size, &wide, size);
      }
    }
  }
  return bytes;
}

}  // namespace nccl_stand_in
