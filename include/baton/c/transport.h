#pragma once
/// Transports and ranks of the C interface: threads, MPI, UCX; see baton/baton.h.

// NOLINTBEGIN(modernize-use-using, modernize-deprecated-headers): it is C
#include "baton/c/types.h"

/// The program of one rank. `world` is the communicator of all ranks, destroyed when the function
/// returns. 0: it succeeded. It may return the status of the call that failed.
typedef int (*baton_body)(baton_communicator* world, void* context);

/// Calls `body` on `ranks` ranks with `context`; returns when all have returned. Under an MPI
/// launcher (mpirun, srun) the ranks are its processes, whatever `ranks` says: each calls `body`
/// once, MPI is initialised if it is not, and finalised then, so a second launch of a process needs
/// MPI that the program has initialised. Otherwise they are threads of this process. NULL options:
/// baton_options_from_environment().
///
/// Where `body` returns another value than 0: threads, as baton_run_threads(). Processes: the
/// sentence is printed on standard error and all processes end at once with exit code 1, as the
/// others may wait for this one.
///
/// Errors: BATON_UNSUPPORTED under the launcher of another MPI library, or without MPI in this
/// library; those of baton_run_threads() and baton_communicator_create().
BATON_C_API int baton_launch(int ranks, const baton_options* options, baton_body body,
                             void* context);

/// Calls `body` on `size` threads with `context`; returns when all have returned. NULL options:
/// baton_options_from_environment(). Where `body` returns another value than 0 on some ranks, the
/// status and the sentence are those of the lowest: the latest error of its thread, if it returned
/// that error's status, else BATON_FAILED. Ranks that wait for one that failed do so until the
/// option BATON_TIMEOUT. Errors: BATON_INVALID_ARGUMENT if `size` is less than 1; BATON_TRANSPORT,
/// before any rank runs, if the system does not allow so many threads.
BATON_C_API int baton_run_threads(int size, const baton_options* options, baton_body body,
                                  void* context);

/// transports[r], of `size`, is rank r's, to be used by one thread, which the caller makes. `hosts`
/// NULL, or the host of each rank, as if threads were on several. Errors: BATON_INVALID_ARGUMENT;
/// then all transports are NULL.
BATON_C_API int baton_thread_transports(int size, const int* hosts, baton_transport** transports);

/// A transport of the ranks of an MPI communicator, given as Fortran's integer: MPI_Comm_c2f(comm)
/// in C, comm.py2f() in mpi4py, comm (mpi) or comm%mpi_val (mpi_f08) in Fortran. Messages go
/// through shared memory where all ranks run on one host and may read each other's memory,
/// otherwise over a duplicate of the communicator; BATON_TRANSPORT=shm or BATON_TRANSPORT=mpi, the
/// same on all ranks, chooses. MPI must be initialised, be finalised after the transport is gone,
/// and be the MPI library that this library was built with. Collective over it. Errors:
/// BATON_INVALID_ARGUMENT, BATON_MISMATCH, BATON_TRANSPORT, BATON_UNSUPPORTED if this library was
/// built without MPI.
BATON_C_API int baton_mpi_transport(int communicator, baton_transport** transport);

/// How long ranks wait for each other, and which threads use them.
typedef struct baton_ucx_options {
  size_t size;          ///< sizeof(baton_ucx_options)
  int64_t meeting_ms;   ///< how long ranks wait for each other at an address; 0: 30 s
  int64_t farewell_ms;  ///< how long the last transport waits, when it is destroyed, for others to
                        ///< receive what it sent; 0: 10 s
  int concurrent;       ///< whether a transport's splits may be used by different threads at once
} baton_ucx_options;

/// A transport of `size` processes that meet at "host:port", where rank 0 listens until all others
/// have come. NULL options: defaults. Collective. Errors: BATON_INVALID_ARGUMENT, BATON_MISMATCH,
/// BATON_TRANSPORT, BATON_TIMEOUT; BATON_UNSUPPORTED if this library was built without UCX.
BATON_C_API int baton_ucx_transport(int rank, int size, const char* address,
                                    const baton_ucx_options* options, baton_transport** transport);

/// Takes the blocks of all ranks from an exchange.
typedef struct baton_blocks baton_blocks;
/// Brings the blocks of all ranks: shows the others `own`, of `bytes` bytes, and calls
/// baton_blocks_set() once for each rank, this one included. Blocks differ in length; they have a
/// few hundred bytes. Returns 0, or another value if it failed, such as the status of a call.
typedef int (*baton_exchange)(const void* own, size_t bytes, baton_blocks* blocks, void* context);
/// Gives the block of a rank, `bytes` bytes, which are copied. Within an exchange only. Errors:
/// BATON_INVALID_ARGUMENT.
BATON_C_API int baton_blocks_set(baton_blocks* blocks, int rank, const void* data, size_t bytes);

/// A transport of `size` processes whose addresses `exchange` brings, by any means that the program
/// has: a store, files, another library's all-gather. It is called once, with `context`, before
/// this returns. NULL options: defaults. Collective. Errors: BATON_INVALID_ARGUMENT,
/// BATON_TRANSPORT; where `exchange` returns another value than 0, as baton_run_threads();
/// BATON_UNSUPPORTED if this library was built without UCX.
BATON_C_API int baton_ucx_transport_by_exchange(int rank, int size, baton_exchange exchange,
                                                void* context, const baton_ucx_options* options,
                                                baton_transport** transport);

/// This rank, from 0; -1 for NULL.
BATON_C_API int baton_transport_rank(const baton_transport* transport);
/// The number of ranks; -1 for NULL.
BATON_C_API int baton_transport_size(const baton_transport* transport);
/// Destroys a transport that no communicator was made of.
BATON_C_API void baton_transport_destroy(baton_transport* transport);

// NOLINTEND(modernize-use-using, modernize-deprecated-headers)
