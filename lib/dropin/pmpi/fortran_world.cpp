/// Start and end of MPI and the program's communicators, from Fortran.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "fortran.hpp"

using namespace baton::pmpi::fortran;
using Int = MPI_Fint;

namespace {

/// A communicator that a function makes.
class Made : public Out<MPI_Comm, PMPI_Comm_c2f> {
 public:
  explicit Made(Int* target) : Out(target, MPI_COMM_NULL) {}
};
MPI_Info info(const Int* handle) { return PMPI_Info_f2c(*handle); }
MPI_Group group(const Int* handle) { return PMPI_Group_f2c(*handle); }

}  // namespace

FORTRAN(init, Int* error) { *error = MPI_Init(nullptr, nullptr); }
FORTRAN(init_thread, Int* required, Int* provided, Int* error) {
  *error = MPI_Init_thread(nullptr, nullptr, *required, provided);
}
FORTRAN(finalize, Int* error) { *error = MPI_Finalize(); }

FORTRAN(comm_set_name, Int* c, const char* name, Int* error, int length) {
  std::string_view text(name, static_cast<std::size_t>(std::max(length, 0)));
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  *error = MPI_Comm_set_name(comm(c), std::string(text).c_str());
}
FORTRAN(comm_dup, Int* c, Int* made, Int* error) { *error = MPI_Comm_dup(comm(c), Made(made)); }
FORTRAN(comm_dup_with_info, Int* c, Int* i, Int* made, Int* error) {
  *error = MPI_Comm_dup_with_info(comm(c), info(i), Made(made));
}
FORTRAN(comm_idup, Int* c, Int* made, Int* request, Int* error) {
  Out<MPI_Request, PMPI_Request_c2f> out(request, MPI_REQUEST_NULL);
  *error = MPI_Comm_idup(comm(c), Made(made), out);
}
FORTRAN(comm_split, Int* c, Int* color, Int* key, Int* made, Int* error) {
  *error = MPI_Comm_split(comm(c), *color, *key, Made(made));
}
FORTRAN(comm_split_type, Int* c, Int* kind, Int* key, Int* i, Int* made, Int* error) {
  *error = MPI_Comm_split_type(comm(c), *kind, *key, info(i), Made(made));
}
FORTRAN(comm_create, Int* c, Int* members, Int* made, Int* error) {
  *error = MPI_Comm_create(comm(c), group(members), Made(made));
}
FORTRAN(comm_create_group, Int* c, Int* members, Int* tag, Int* made, Int* error) {
  *error = MPI_Comm_create_group(comm(c), group(members), *tag, Made(made));
}
FORTRAN(cart_create, Int* c, Int* dimensions, Int* extents, Int* periodic, Int* reorder, Int* made,
        Int* error) {
  *error = MPI_Cart_create(comm(c), *dimensions, extents, periodic, *reorder, Made(made));
}
FORTRAN(cart_sub, Int* c, Int* remaining, Int* made, Int* error) {
  *error = MPI_Cart_sub(comm(c), remaining, Made(made));
}
FORTRAN(graph_create, Int* c, Int* nodes, Int* index, Int* edges, Int* reorder, Int* made,
        Int* error) {
  *error = MPI_Graph_create(comm(c), *nodes, index, edges, *reorder, Made(made));
}
FORTRAN(dist_graph_create, Int* c, Int* n, Int* sources, Int* degrees, Int* destinations,
        Int* weights, Int* i, Int* reorder, Int* made, Int* error) {
  *error = MPI_Dist_graph_create(comm(c), *n, sources, degrees, destinations,
                                 Constants::now().weights(weights), info(i), *reorder, Made(made));
}
FORTRAN(dist_graph_create_adjacent, Int* c, Int* in, Int* sources, Int* source_weights, Int* out,
        Int* destinations, Int* destination_weights, Int* i, Int* reorder, Int* made, Int* error) {
  *error = MPI_Dist_graph_create_adjacent(
      comm(c), *in, sources, Constants::now().weights(source_weights), *out, destinations,
      Constants::now().weights(destination_weights), info(i), *reorder, Made(made));
}
FORTRAN(intercomm_create, Int* c, Int* leader, Int* peer_comm, Int* remote_leader, Int* tag,
        Int* made, Int* error) {
  *error =
      MPI_Intercomm_create(comm(c), *leader, comm(peer_comm), *remote_leader, *tag, Made(made));
}
FORTRAN(intercomm_merge, Int* c, Int* high, Int* made, Int* error) {
  *error = MPI_Intercomm_merge(comm(c), *high, Made(made));
}
FORTRAN(comm_disconnect, Int* c, Int* error) {
  Out<MPI_Comm, PMPI_Comm_c2f> out(c, comm(c));
  *error = MPI_Comm_disconnect(out);
}
FORTRAN(op_free, Int* o, Int* error) {
  Out<MPI_Op, PMPI_Op_c2f> out(o, op(o));
  *error = MPI_Op_free(out);
}
FORTRAN(type_free, Int* t, Int* error) {
  Out<MPI_Datatype, PMPI_Type_c2f> out(t, type(t));
  *error = MPI_Type_free(out);
}
