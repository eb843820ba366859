#pragma once
/// The C interface of the library, for C and for every language that can call C.
///
/// - **Results.** A function returns BATON_OK, or another status (baton/c/types.h) and leaves a
/// sentence in baton_last_error(). No exception leaves a function. Functions that answer with a
/// number or a text say so.
/// - **Handles** are pointers to opaque objects, written to the last argument, NULL after an error.
/// Each has one function that destroys it, which takes NULL, too. A NULL where a handle or an
/// address is needed is BATON_INVALID_ARGUMENT.
/// - **Numbers.** Counts and offsets are elements, sizes are bytes, times are as their names say.
/// Datatypes, ops and statuses are int or intptr_t with fixed values.
/// - **Texts** are UTF-8 and end with a zero. A text that a function gives is copied to `text`,
/// which has room for `room` bytes, and is cut where it is longer. `*length`, unless NULL, is the
/// length of the whole in bytes without the zero. `text` may be NULL if `room` is 0.
/// - **Structs** begin with `size`, which the caller sets to sizeof(struct) as it was compiled.
/// Other members that are 0 mean a default. A newer library adds members at the end only.
/// - **Threads.** Different handles may be used by different threads at once, one handle by one
/// thread at a time, and different communicators as far as their transport can. The last error is
/// the calling thread's own.
/// - **Memory** is the host's. Buffers are the caller's; they must outlive the call, and, of a
/// nonblocking call, its request. Lists (counts, offsets, pointers to tensors) are copied.
///
/// A program is linked with `pkg-config --cflags --libs baton-c`, that is, -lbaton-c.

/// Number of this interface. A library serves programs that were compiled with this number. New
/// functions, values and members at the end of structs do not change it.
#define BATON_ABI_VERSION 1

#include "baton/c/collectives.h"
#include "baton/c/communicator.h"
#include "baton/c/options.h"
#include "baton/c/schedule.h"
#include "baton/c/timeline.h"
#include "baton/c/transport.h"
#include "baton/c/types.h"
