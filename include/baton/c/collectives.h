#pragma once
/// Collectives of the C interface; see baton/baton.h.
///
/// Each has three forms. `baton_name` returns when this rank's part is complete. `baton_start_name`
/// returns at once; any number may be under way, started in the same order on all ranks.
/// `baton_plan_name` makes a plan, to be started any number of times, one at a time. Every rank of
/// the group makes the same calls in the same order.
///
/// P is the number of ranks; counts and offsets are elements of datatype `type`. `choice` is
/// "algorithm[:segment]", such as "ring:128K" (bytes), or NULL: the communicator's option, else
/// chosen by table or cost.
///
/// In place is where input and output are the same memory: of all_reduce, reduce (at root), scan,
/// exscan and all_to_all, where they begin; of gather (at root) and all_gather, where the input is
/// this rank's block of the output; of scatter (at root) and reduce_scatter, where the output is
/// this rank's block of the input. Any other overlap is refused.
///
/// Errors of all: BATON_INVALID_ARGUMENT before anything is sent; BATON_MISMATCH with the option
/// BATON_CHECK where ranks differ; BATON_UNSUPPORTED; BATON_TRUNCATED, BATON_TRANSPORT and
/// BATON_TIMEOUT while it runs, from baton_wait() or baton_test() of a nonblocking form.

#include "baton/c/types.h"

/// Every rank's `data` (count) equals root's.
BATON_C_API int baton_broadcast(baton_communicator* communicator, void* data, int64_t count,
                                int type, int root, const char* choice);
/// As baton_broadcast(), nonblocking.
BATON_C_API int baton_start_broadcast(baton_communicator* communicator, void* data, int64_t count,
                                      int type, int root, const char* choice,
                                      baton_request** request);
/// As baton_broadcast(), to be started any number of times.
BATON_C_API int baton_plan_broadcast(baton_communicator* communicator, void* data, int64_t count,
                                     int type, int root, const char* choice, baton_plan** plan);

/// As baton_broadcast(), of `number` tensors, as one vector: tensors[i] has counts[i] elements.
BATON_C_API int baton_broadcast_list(baton_communicator* communicator, void* const* tensors,
                                     const int64_t* counts, int number, int type, int root,
                                     const char* choice);
/// As baton_broadcast_list(), nonblocking.
BATON_C_API int baton_start_broadcast_list(baton_communicator* communicator, void* const* tensors,
                                           const int64_t* counts, int number, int type, int root,
                                           const char* choice, baton_request** request);
/// As baton_broadcast_list(), to be started any number of times.
BATON_C_API int baton_plan_broadcast_list(baton_communicator* communicator, void* const* tensors,
                                          const int64_t* counts, int number, int type, int root,
                                          const char* choice, baton_plan** plan);

/// output (count) of root = op over all ranks' inputs (count); elsewhere `output` is ignored.
BATON_C_API int baton_reduce(baton_communicator* communicator, const void* input, void* output,
                             int64_t count, int type, baton_op op, int root, const char* choice);
/// As baton_reduce(), nonblocking.
BATON_C_API int baton_start_reduce(baton_communicator* communicator, const void* input,
                                   void* output, int64_t count, int type, baton_op op, int root,
                                   const char* choice, baton_request** request);
/// As baton_reduce(), to be started any number of times.
BATON_C_API int baton_plan_reduce(baton_communicator* communicator, const void* input, void* output,
                                  int64_t count, int type, baton_op op, int root,
                                  const char* choice, baton_plan** plan);

/// output (count) = op over all ranks' inputs (count).
BATON_C_API int baton_all_reduce(baton_communicator* communicator, const void* input, void* output,
                                 int64_t count, int type, baton_op op, const char* choice);
/// As baton_all_reduce(), nonblocking.
BATON_C_API int baton_start_all_reduce(baton_communicator* communicator, const void* input,
                                       void* output, int64_t count, int type, baton_op op,
                                       const char* choice, baton_request** request);
/// As baton_all_reduce(), to be started any number of times.
BATON_C_API int baton_plan_all_reduce(baton_communicator* communicator, const void* input,
                                      void* output, int64_t count, int type, baton_op op,
                                      const char* choice, baton_plan** plan);

/// As baton_all_reduce() in place, of `number` tensors, as one vector: tensors[i] has counts[i]
/// elements.
BATON_C_API int baton_all_reduce_list(baton_communicator* communicator, void* const* tensors,
                                      const int64_t* counts, int number, int type, baton_op op,
                                      const char* choice);
/// As baton_all_reduce_list(), nonblocking.
BATON_C_API int baton_start_all_reduce_list(baton_communicator* communicator, void* const* tensors,
                                            const int64_t* counts, int number, int type,
                                            baton_op op, const char* choice,
                                            baton_request** request);
/// As baton_all_reduce_list(), to be started any number of times.
BATON_C_API int baton_plan_all_reduce_list(baton_communicator* communicator, void* const* tensors,
                                           const int64_t* counts, int number, int type, baton_op op,
                                           const char* choice, baton_plan** plan);

/// output (P·count) of root = all inputs (count) in rank order; elsewhere `output` is ignored.
BATON_C_API int baton_gather(baton_communicator* communicator, const void* input, void* output,
                             int64_t count, int type, int root, const char* choice);
/// As baton_gather(), nonblocking.
BATON_C_API int baton_start_gather(baton_communicator* communicator, const void* input,
                                   void* output, int64_t count, int type, int root,
                                   const char* choice, baton_request** request);
/// As baton_gather(), to be started any number of times.
BATON_C_API int baton_plan_gather(baton_communicator* communicator, const void* input, void* output,
                                  int64_t count, int type, int root, const char* choice,
                                  baton_plan** plan);

/// output of root = all inputs, that of rank r being counts[r] elements (of P), in rank order.
BATON_C_API int baton_gather_v(baton_communicator* communicator, const void* input, void* output,
                               const int64_t* counts, int type, int root, const char* choice);
/// As baton_gather_v(), nonblocking.
BATON_C_API int baton_start_gather_v(baton_communicator* communicator, const void* input,
                                     void* output, const int64_t* counts, int type, int root,
                                     const char* choice, baton_request** request);
/// As baton_gather_v(), to be started any number of times.
BATON_C_API int baton_plan_gather_v(baton_communicator* communicator, const void* input,
                                    void* output, const int64_t* counts, int type, int root,
                                    const char* choice, baton_plan** plan);

/// output (count) = block `rank` of root's input (P·count); elsewhere `input` is ignored.
BATON_C_API int baton_scatter(baton_communicator* communicator, const void* input, void* output,
                              int64_t count, int type, int root, const char* choice);
/// As baton_scatter(), nonblocking.
BATON_C_API int baton_start_scatter(baton_communicator* communicator, const void* input,
                                    void* output, int64_t count, int type, int root,
                                    const char* choice, baton_request** request);
/// As baton_scatter(), to be started any number of times.
BATON_C_API int baton_plan_scatter(baton_communicator* communicator, const void* input,
                                   void* output, int64_t count, int type, int root,
                                   const char* choice, baton_plan** plan);

/// output (counts[rank]) = block `rank` of root's input, whose P blocks lie end to end.
BATON_C_API int baton_scatter_v(baton_communicator* communicator, const void* input, void* output,
                                const int64_t* counts, int type, int root, const char* choice);
/// As baton_scatter_v(), nonblocking.
BATON_C_API int baton_start_scatter_v(baton_communicator* communicator, const void* input,
                                      void* output, const int64_t* counts, int type, int root,
                                      const char* choice, baton_request** request);
/// As baton_scatter_v(), to be started any number of times.
BATON_C_API int baton_plan_scatter_v(baton_communicator* communicator, const void* input,
                                     void* output, const int64_t* counts, int type, int root,
                                     const char* choice, baton_plan** plan);

/// output (P·count) = all inputs (count) in rank order.
BATON_C_API int baton_all_gather(baton_communicator* communicator, const void* input, void* output,
                                 int64_t count, int type, const char* choice);
/// As baton_all_gather(), nonblocking.
BATON_C_API int baton_start_all_gather(baton_communicator* communicator, const void* input,
                                       void* output, int64_t count, int type, const char* choice,
                                       baton_request** request);
/// As baton_all_gather(), to be started any number of times.
BATON_C_API int baton_plan_all_gather(baton_communicator* communicator, const void* input,
                                      void* output, int64_t count, int type, const char* choice,
                                      baton_plan** plan);

/// output = all inputs joined along dimension `dim` (negative: from the end): [.., n, ..] -> [..,
/// P·n, ..]. `extents` are those of the input, row-major, of `dimensions`, at most 8.
BATON_C_API int baton_all_gather_tensor(baton_communicator* communicator, const void* input,
                                        const int64_t* extents, int dimensions, void* output,
                                        int type, int dim, const char* choice);
/// As baton_all_gather_tensor(), nonblocking.
BATON_C_API int baton_start_all_gather_tensor(baton_communicator* communicator, const void* input,
                                              const int64_t* extents, int dimensions, void* output,
                                              int type, int dim, const char* choice,
                                              baton_request** request);
/// As baton_all_gather_tensor(), to be started any number of times.
BATON_C_API int baton_plan_all_gather_tensor(baton_communicator* communicator, const void* input,
                                             const int64_t* extents, int dimensions, void* output,
                                             int type, int dim, const char* choice,
                                             baton_plan** plan);

/// output = all inputs (counts[rank], of P), end to end, or, unless `offsets` is NULL, that of rank
/// r at offsets[r].
BATON_C_API int baton_all_gather_v(baton_communicator* communicator, const void* input,
                                   void* output, const int64_t* counts, const int64_t* offsets,
                                   int type, const char* choice);
/// As baton_all_gather_v(), nonblocking.
BATON_C_API int baton_start_all_gather_v(baton_communicator* communicator, const void* input,
                                         void* output, const int64_t* counts,
                                         const int64_t* offsets, int type, const char* choice,
                                         baton_request** request);
/// As baton_all_gather_v(), to be started any number of times.
BATON_C_API int baton_plan_all_gather_v(baton_communicator* communicator, const void* input,
                                        void* output, const int64_t* counts, const int64_t* offsets,
                                        int type, const char* choice, baton_plan** plan);

/// output (count) = op over all ranks of block `rank` of the inputs (P·count).
BATON_C_API int baton_reduce_scatter(baton_communicator* communicator, const void* input,
                                     void* output, int64_t count, int type, baton_op op,
                                     const char* choice);
/// As baton_reduce_scatter(), nonblocking.
BATON_C_API int baton_start_reduce_scatter(baton_communicator* communicator, const void* input,
                                           void* output, int64_t count, int type, baton_op op,
                                           const char* choice, baton_request** request);
/// As baton_reduce_scatter(), to be started any number of times.
BATON_C_API int baton_plan_reduce_scatter(baton_communicator* communicator, const void* input,
                                          void* output, int64_t count, int type, baton_op op,
                                          const char* choice, baton_plan** plan);

/// output (counts[rank], of P) = op over all ranks of block `rank` of the inputs.
BATON_C_API int baton_reduce_scatter_v(baton_communicator* communicator, const void* input,
                                       void* output, const int64_t* counts, int type, baton_op op,
                                       const char* choice);
/// As baton_reduce_scatter_v(), nonblocking.
BATON_C_API int baton_start_reduce_scatter_v(baton_communicator* communicator, const void* input,
                                             void* output, const int64_t* counts, int type,
                                             baton_op op, const char* choice,
                                             baton_request** request);
/// As baton_reduce_scatter_v(), to be started any number of times.
BATON_C_API int baton_plan_reduce_scatter_v(baton_communicator* communicator, const void* input,
                                            void* output, const int64_t* counts, int type,
                                            baton_op op, const char* choice, baton_plan** plan);

/// Block j of output (P·count) = block `rank` of rank j's input (P·count).
BATON_C_API int baton_all_to_all(baton_communicator* communicator, const void* input, void* output,
                                 int64_t count, int type, const char* choice);
/// As baton_all_to_all(), nonblocking.
BATON_C_API int baton_start_all_to_all(baton_communicator* communicator, const void* input,
                                       void* output, int64_t count, int type, const char* choice,
                                       baton_request** request);
/// As baton_all_to_all(), to be started any number of times.
BATON_C_API int baton_plan_all_to_all(baton_communicator* communicator, const void* input,
                                      void* output, int64_t count, int type, const char* choice,
                                      baton_plan** plan);

/// The input is cut into P parts along dimension `scatter_dim`, part i goes to rank i, and the
/// parts received are joined along `gather_dim` in rank order: [b, s/P, h, d], 2, 1 -> [b, s, h/P,
/// d]. `extents` are those of the input, as in baton_all_gather_tensor().
BATON_C_API int baton_all_to_all_tensor(baton_communicator* communicator, const void* input,
                                        const int64_t* extents, int dimensions, void* output,
                                        int type, int scatter_dim, int gather_dim,
                                        const char* choice);
/// As baton_all_to_all_tensor(), nonblocking.
BATON_C_API int baton_start_all_to_all_tensor(baton_communicator* communicator, const void* input,
                                              const int64_t* extents, int dimensions, void* output,
                                              int type, int scatter_dim, int gather_dim,
                                              const char* choice, baton_request** request);
/// As baton_all_to_all_tensor(), to be started any number of times.
BATON_C_API int baton_plan_all_to_all_tensor(baton_communicator* communicator, const void* input,
                                             const int64_t* extents, int dimensions, void* output,
                                             int type, int scatter_dim, int gather_dim,
                                             const char* choice, baton_plan** plan);

/// send_counts[i] elements at send_offsets[i] go to rank i; recv_counts[i] elements from rank i
/// arrive at recv_offsets[i]. NULL offsets: blocks lie end to end.
BATON_C_API int baton_all_to_all_v(baton_communicator* communicator, const void* input,
                                   const int64_t* send_counts, const int64_t* send_offsets,
                                   void* output, const int64_t* recv_counts,
                                   const int64_t* recv_offsets, int type, const char* choice);
/// As baton_all_to_all_v(), nonblocking.
BATON_C_API int baton_start_all_to_all_v(baton_communicator* communicator, const void* input,
                                         const int64_t* send_counts, const int64_t* send_offsets,
                                         void* output, const int64_t* recv_counts,
                                         const int64_t* recv_offsets, int type, const char* choice,
                                         baton_request** request);
/// As baton_all_to_all_v(), to be started any number of times.
BATON_C_API int baton_plan_all_to_all_v(baton_communicator* communicator, const void* input,
                                        const int64_t* send_counts, const int64_t* send_offsets,
                                        void* output, const int64_t* recv_counts,
                                        const int64_t* recv_offsets, int type, const char* choice,
                                        baton_plan** plan);

/// output (count) = op over the inputs (count) of ranks 0 … rank.
BATON_C_API int baton_scan(baton_communicator* communicator, const void* input, void* output,
                           int64_t count, int type, baton_op op, const char* choice);
/// As baton_scan(), nonblocking.
BATON_C_API int baton_start_scan(baton_communicator* communicator, const void* input, void* output,
                                 int64_t count, int type, baton_op op, const char* choice,
                                 baton_request** request);
/// As baton_scan(), to be started any number of times.
BATON_C_API int baton_plan_scan(baton_communicator* communicator, const void* input, void* output,
                                int64_t count, int type, baton_op op, const char* choice,
                                baton_plan** plan);

/// output (count) = op over the inputs (count) of ranks 0 … rank - 1; untouched on rank 0.
BATON_C_API int baton_exscan(baton_communicator* communicator, const void* input, void* output,
                             int64_t count, int type, baton_op op, const char* choice);
/// As baton_exscan(), nonblocking.
BATON_C_API int baton_start_exscan(baton_communicator* communicator, const void* input,
                                   void* output, int64_t count, int type, baton_op op,
                                   const char* choice, baton_request** request);
/// As baton_exscan(), to be started any number of times.
BATON_C_API int baton_plan_exscan(baton_communicator* communicator, const void* input, void* output,
                                  int64_t count, int type, baton_op op, const char* choice,
                                  baton_plan** plan);

/// Every rank has called it.
BATON_C_API int baton_barrier(baton_communicator* communicator, const char* choice);
/// As baton_barrier(), nonblocking.
BATON_C_API int baton_start_barrier(baton_communicator* communicator, const char* choice,
                                    baton_request** request);
/// As baton_barrier(), to be started any number of times.
BATON_C_API int baton_plan_barrier(baton_communicator* communicator, const char* choice,
                                   baton_plan** plan);
