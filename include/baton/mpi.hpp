#pragma once
/// Ranks as processes of an MPI program. Any MPI library; only its point-to-point calls are used,
/// apart from the making of communicators. Between processes of one host, shared memory can carry
/// the messages instead.

// Only MPI's C interface: no C++ bindings, which would ask for their library.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <memory>

#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A transport over a duplicate of `communicator`, which must not be an intercommunicator. MPI must
/// be initialised, and be finalised after the transport is gone. Collective over `communicator`.
/// Throws Error(invalid_argument, transport).
///
/// Within a host, a schedule's messages of 6 KiB and more are read by their receivers in their
/// senders' memory (Transport::reads), on Linux, where the kernel lets all its ranks do so and
/// BATON_SINGLE_COPY=0 does not forbid it.
///
/// Messages longer than the room of their receiver are where MPI libraries fall short. Open MPI 4
/// between ranks of one host writes beyond the room before it reports them. MPICH reports them to
/// the error handler of MPI_COMM_WORLD, which ends the program unless it is MPI_ERRORS_RETURN.
/// Calls that may differ between ranks are therefore made with Options::check.
std::unique_ptr<Transport> mpi_transport(MPI_Comm communicator);

/// As mpi_transport(), but over `own` itself, which nobody else may use, and which is freed with
/// the transport.
std::unique_ptr<Transport> mpi_transport_over(MPI_Comm own);

/// As mpi_transport_over(), where all ranks of `own` are also ranks of `whole`, a transport of this
/// header. Sends nothing.
std::unique_ptr<Transport> mpi_transport_within(const Transport& whole, MPI_Comm own);

/// As mpi_transport(). But where all ranks run on one host and may read each other's memory,
/// messages go through shared memory (baton/shm.hpp); the program's own messages over MPI advance
/// while a rank waits. BATON_TRANSPORT=shm or BATON_TRANSPORT=mpi, the same on all ranks, chooses.
/// With BATON_SINGLE_COPY=0 nobody reads. A CUDA-aware MPI library carries the messages unless shm
/// is chosen. Collective over `communicator`. Throws as mpi_transport(), Error(mismatch) where
/// choices differ, and, with shm chosen, as shm_transport().
std::unique_ptr<Transport> mpi_process_transport(MPI_Comm communicator);

/// As mpi_process_transport(), but over `own` itself, which nobody else may use, and which is freed
/// with the transport.
std::unique_ptr<Transport> mpi_process_transport_over(MPI_Comm own);

/// As mpi_process_transport_over(), where all ranks of `own` are also ranks of `whole`, a transport
/// of this header: through its shared memory, if it has some. Collective over `own`; calls that are
/// under way at once on one `whole` have different numbers, from 0 to 32767.
std::unique_ptr<Transport> mpi_process_transport_within(const Transport& whole, MPI_Comm own,
                                                        int number);

}  // namespace baton
#pragma GCC visibility pop
