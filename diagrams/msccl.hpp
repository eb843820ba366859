#pragma once
/// MSCCL's form of an algorithm: what the file says of each GPU, counted in chunks.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/collective.hpp"

namespace baton::diagrams::msccl_form {

/// `count` chunks of a buffer: "i", "o" or "s".
struct Piece {
  char buffer = 'i';
  std::int64_t offset = 0, count = 0;
  bool operator==(const Piece&) const = default;
};

/// What an instruction does, in this order. A message that is reduced but not stored, or that is
/// stored and passed on, is sent as it then is.
struct Type {
  std::string_view name;
  bool receives = false, reduces = false, stores = false, sends = false;
};
inline constexpr std::array<Type, 9> types{{{"nop"},
                                            {"s", false, false, false, true},
                                            {"r", true, false, true, false},
                                            {"rcs", true, false, true, true},
                                            {"rrs", true, true, false, true},
                                            {"rrc", true, true, true, false},
                                            {"rrcs", true, true, true, true},
                                            {"re", false, true, true, false},
                                            {"cpy", false, false, true, false}}};

struct Instruction {
  std::string_view type = "nop";
  Piece from, to;
  int on_block = -1;  // thread block and step that it waits for
  std::int64_t on_step = -1;
  bool awaited = false;
  bool source_left = false;  // of a reduction; an attribute of ours, which interpreters ignore
  int line = 0;              // of the file
};

/// Instructions that follow one another. A channel is a lane.
struct ThreadBlock {
  int send = -1, recv = -1, channel = 0;
  std::vector<Instruction> steps;
  int line = 0;
};

struct Gpu {
  std::int64_t input = 0, output = 0, scratch = 0;  // chunks
  std::vector<ThreadBlock> blocks;                  // by their numbers
};

struct Algorithm {
  std::string name;
  Collective collective = Collective::all_reduce;
  int root = 0;  // ours: MSCCL has none
  bool in_place = false, out_of_place = false;
  std::vector<Gpu> gpus;  // by rank
};

/// Names of collectives. MSCCL's interpreters know the first seven and those of gather and scatter;
/// the last two are ours.
inline constexpr std::array<std::pair<Collective, std::string_view>, 11> collectives{
    {{Collective::broadcast, "broadcast"},
     {Collective::reduce, "reduce"},
     {Collective::all_reduce, "allreduce"},
     {Collective::all_gather, "allgather"},
     {Collective::reduce_scatter, "reduce_scatter"},
     {Collective::reduce_scatter, "reducescatter"},
     {Collective::all_to_all, "alltoall"},
     {Collective::gather, "gather"},
     {Collective::scatter, "scatter"},
     {Collective::scan, "scan"},
     {Collective::exscan, "exscan"}}};

/// Reads the XML. Thread blocks and steps that others wait for exist. Throws
/// Error(invalid_argument) naming `origin`, the line, what was expected and what was found.
Algorithm read(std::string_view text, const std::string& origin);

}  // namespace baton::diagrams::msccl_form
