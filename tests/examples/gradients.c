/* Ranks average their gradients, and sum the averages: threads, or processes under mpirun. */
#include <baton/baton.h>
#include <stdio.h>

enum { COUNT = 1000 };

static int rank_program(baton_communicator* world, void* context) {
  float gradients[COUNT], sums[COUNT];
  baton_request* request;
  int status;
  (void)context;
  for (int i = 0; i < COUNT; ++i) gradients[i] = (float)(baton_rank(world) + 1);
  status = baton_all_reduce(world, gradients, gradients, COUNT, BATON_F32, BATON_AVG, NULL);
  if (status != BATON_OK) return status;
  /* In the background: by the ring, in pieces of 128 KiB. */
  status = baton_start_all_reduce(world, gradients, sums, COUNT, BATON_F32, BATON_SUM, "ring:128K",
                                  &request);
  if (status != BATON_OK) return status;
  status = baton_wait(&request);
  if (status != BATON_OK) return status;
  if (baton_rank(world) == 0) printf("%g %g\n", gradients[0], sums[COUNT - 1]);
  return BATON_OK;
}

int main(void) {
  const int status = baton_launch(4, NULL, rank_program, NULL);
  if (status != BATON_OK) fprintf(stderr, "%s\n", baton_last_error());
  return status;
}
