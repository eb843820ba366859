/// The program's windows, files and buffers. All ranks enter blocking calls on them together, or as
/// late as possible, so that no rank waits there for operations of ours.

#include <chrono>
#include <memory>

#include "progress.hpp"

using namespace baton::pmpi;

namespace {

/// Makes a window or a file of all ranks of a communicator.
template <class Make, class Handle>
int opening(MPI_Comm comm, Handle* made, const Make& make) {
  DropIn* const drop_in = DropIn::now();
  if (drop_in) meet(*drop_in, comm);
  const int code = make();
  const auto* const group = drop_in ? drop_in->group(comm) : nullptr;
  if (code == MPI_SUCCESS && group) drop_in->remember(*made, *group);
  return code;
}

/// A collective call on a window or a file.
template <class Handle, class Call>
int together(Handle handle, const Call& call) {
  DropIn* const drop_in = DropIn::now();
  if (const auto group = drop_in ? drop_in->group_of(handle) : nullptr) meet(*drop_in, *group);
  return call();
}

template <class Handle, class Call>
int closing(Handle* handle, const Call& call) {
  const Handle closed = *handle;
  const int code = together(closed, call);
  if (DropIn* const drop_in = DropIn::now()) drop_in->forget(closed);
  return code;
}

}  // namespace

extern "C" {

int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* made) {
  return opening(comm, made, [&] { return PMPI_Win_create(base, size, unit, info, comm, made); });
}
int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                     MPI_Win* made) {
  return opening(comm, made, [&] { return PMPI_Win_allocate(size, unit, info, comm, base, made); });
}
int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                            MPI_Win* made) {
  return opening(comm, made,
                 [&] { return PMPI_Win_allocate_shared(size, unit, info, comm, base, made); });
}
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* made) {
  return opening(comm, made, [&] { return PMPI_Win_create_dynamic(info, comm, made); });
}
int MPI_Win_fence(int assert, MPI_Win win) {
  return together(win, [&] { return PMPI_Win_fence(assert, win); });
}
int MPI_Win_free(MPI_Win* win) {
  return closing(win, [&] { return PMPI_Win_free(win); });
}
int MPI_Win_wait(MPI_Win win) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->must_advance()) return PMPI_Win_wait(win);
  return advancing(*drop_in, [&](int* over) { return PMPI_Win_test(win, over); });
}

int MPI_File_open(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* made) {
  return opening(comm, made, [&] { return PMPI_File_open(comm, name, mode, info, made); });
}
int MPI_File_close(MPI_File* file) {
  return closing(file, [&] { return PMPI_File_close(file); });
}
int MPI_File_set_view(MPI_File file, MPI_Offset offset, MPI_Datatype element, MPI_Datatype type,
                      const char* representation, MPI_Info info) {
  return together(
      file, [&] { return PMPI_File_set_view(file, offset, element, type, representation, info); });
}
int MPI_File_set_size(MPI_File file, MPI_Offset size) {
  return together(file, [&] { return PMPI_File_set_size(file, size); });
}
int MPI_File_preallocate(MPI_File file, MPI_Offset size) {
  return together(file, [&] { return PMPI_File_preallocate(file, size); });
}
int MPI_File_set_info(MPI_File file, MPI_Info info) {
  return together(file, [&] { return PMPI_File_set_info(file, info); });
}
int MPI_File_set_atomicity(MPI_File file, int atomic) {
  return together(file, [&] { return PMPI_File_set_atomicity(file, atomic); });
}
int MPI_File_seek_shared(MPI_File file, MPI_Offset offset, int whence) {
  return together(file, [&] { return PMPI_File_seek_shared(file, offset, whence); });
}
int MPI_File_sync(MPI_File file) {
  return together(file, [&] { return PMPI_File_sync(file); });
}
int MPI_File_read_all(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_all(file, data, count, type, status); });
}
int MPI_File_write_all(MPI_File file, const void* data, int count, MPI_Datatype type,
                       MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_all(file, data, count, type, status); });
}
int MPI_File_read_at_all(MPI_File file, MPI_Offset offset, void* data, int count, MPI_Datatype type,
                         MPI_Status* status) {
  return together(file,
                  [&] { return PMPI_File_read_at_all(file, offset, data, count, type, status); });
}
int MPI_File_write_at_all(MPI_File file, MPI_Offset offset, const void* data, int count,
                          MPI_Datatype type, MPI_Status* status) {
  return together(file,
                  [&] { return PMPI_File_write_at_all(file, offset, data, count, type, status); });
}
int MPI_File_read_ordered(MPI_File file, void* data, int count, MPI_Datatype type,
                          MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_ordered(file, data, count, type, status); });
}
int MPI_File_write_ordered(MPI_File file, const void* data, int count, MPI_Datatype type,
                           MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_ordered(file, data, count, type, status); });
}
// Split collectives: either part may be the one that waits.
int MPI_File_read_all_begin(MPI_File file, void* data, int count, MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_read_all_begin(file, data, count, type); });
}
int MPI_File_read_all_end(MPI_File file, void* data, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_all_end(file, data, status); });
}
int MPI_File_write_all_begin(MPI_File file, const void* data, int count, MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_write_all_begin(file, data, count, type); });
}
int MPI_File_write_all_end(MPI_File file, const void* data, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_all_end(file, data, status); });
}
int MPI_File_read_at_all_begin(MPI_File file, MPI_Offset offset, void* data, int count,
                               MPI_Datatype type) {
  return together(file,
                  [&] { return PMPI_File_read_at_all_begin(file, offset, data, count, type); });
}
int MPI_File_read_at_all_end(MPI_File file, void* data, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_at_all_end(file, data, status); });
}
int MPI_File_write_at_all_begin(MPI_File file, MPI_Offset offset, const void* data, int count,
                                MPI_Datatype type) {
  return together(file,
                  [&] { return PMPI_File_write_at_all_begin(file, offset, data, count, type); });
}
int MPI_File_write_at_all_end(MPI_File file, const void* data, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_at_all_end(file, data, status); });
}
int MPI_File_read_ordered_begin(MPI_File file, void* data, int count, MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_read_ordered_begin(file, data, count, type); });
}
int MPI_File_read_ordered_end(MPI_File file, void* data, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_ordered_end(file, data, status); });
}
int MPI_File_write_ordered_begin(MPI_File file, const void* data, int count, MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_write_ordered_begin(file, data, count, type); });
}
int MPI_File_write_ordered_end(MPI_File file, const void* data, MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_ordered_end(file, data, status); });
}

#if MPI_VERSION >= 4  // the same with large counts

int MPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                     MPI_Win* made) {
  return opening(comm, made, [&] { return PMPI_Win_create_c(base, size, unit, info, comm, made); });
}
int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                       MPI_Win* made) {
  return opening(comm, made,
                 [&] { return PMPI_Win_allocate_c(size, unit, info, comm, base, made); });
}
int MPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                              void* base, MPI_Win* made) {
  return opening(comm, made,
                 [&] { return PMPI_Win_allocate_shared_c(size, unit, info, comm, base, made); });
}
int MPI_File_read_all_c(MPI_File file, void* data, MPI_Count count, MPI_Datatype type,
                        MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_all_c(file, data, count, type, status); });
}
int MPI_File_write_all_c(MPI_File file, const void* data, MPI_Count count, MPI_Datatype type,
                         MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_all_c(file, data, count, type, status); });
}
int MPI_File_read_at_all_c(MPI_File file, MPI_Offset offset, void* data, MPI_Count count,
                           MPI_Datatype type, MPI_Status* status) {
  return together(file,
                  [&] { return PMPI_File_read_at_all_c(file, offset, data, count, type, status); });
}
int MPI_File_write_at_all_c(MPI_File file, MPI_Offset offset, const void* data, MPI_Count count,
                            MPI_Datatype type, MPI_Status* status) {
  return together(
      file, [&] { return PMPI_File_write_at_all_c(file, offset, data, count, type, status); });
}
int MPI_File_read_ordered_c(MPI_File file, void* data, MPI_Count count, MPI_Datatype type,
                            MPI_Status* status) {
  return together(file, [&] { return PMPI_File_read_ordered_c(file, data, count, type, status); });
}
int MPI_File_write_ordered_c(MPI_File file, const void* data, MPI_Count count, MPI_Datatype type,
                             MPI_Status* status) {
  return together(file, [&] { return PMPI_File_write_ordered_c(file, data, count, type, status); });
}
int MPI_File_read_all_begin_c(MPI_File file, void* data, MPI_Count count, MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_read_all_begin_c(file, data, count, type); });
}
int MPI_File_write_all_begin_c(MPI_File file, const void* data, MPI_Count count,
                               MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_write_all_begin_c(file, data, count, type); });
}
int MPI_File_read_at_all_begin_c(MPI_File file, MPI_Offset offset, void* data, MPI_Count count,
                                 MPI_Datatype type) {
  return together(file,
                  [&] { return PMPI_File_read_at_all_begin_c(file, offset, data, count, type); });
}
int MPI_File_write_at_all_begin_c(MPI_File file, MPI_Offset offset, const void* data,
                                  MPI_Count count, MPI_Datatype type) {
  return together(file,
                  [&] { return PMPI_File_write_at_all_begin_c(file, offset, data, count, type); });
}
int MPI_File_read_ordered_begin_c(MPI_File file, void* data, MPI_Count count, MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_read_ordered_begin_c(file, data, count, type); });
}
int MPI_File_write_ordered_begin_c(MPI_File file, const void* data, MPI_Count count,
                                   MPI_Datatype type) {
  return together(file, [&] { return PMPI_File_write_ordered_begin_c(file, data, count, type); });
}

#endif

int MPI_Buffer_detach(void* address, int* size) {
  // There is no nonblocking form, so our operations first go as far as they can.
  if (DropIn* const drop_in = DropIn::now()) {
    constexpr std::chrono::seconds patience{1};
    auto last = std::chrono::steady_clock::now();
    drop_in->until([&] {
      const auto now = std::chrono::steady_clock::now();
      if (drop_in->advance()) last = now;
      return !drop_in->pending() || now - last > patience;
    });
  }
  return PMPI_Buffer_detach(address, size);
}

}  // extern "C"
