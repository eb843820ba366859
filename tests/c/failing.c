/* A rank that fails: under mpirun, all processes end with its sentence. */
#include "baton/baton.h"

#include <stdio.h>

static int body(baton_communicator* world, void* context) {
  (void)context;
  if (baton_rank(world) == 0) return baton_broadcast(world, NULL, 1, BATON_F32, 99, NULL);
  return baton_barrier(world, NULL); /* for ever */
}

int main(void) {
  const int status = baton_launch(2, NULL, body, NULL);
  printf("%s: %s\n", baton_status_name(status), baton_last_error());
  return status;
}
