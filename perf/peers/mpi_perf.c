// SPDX-License-Identifier: Apache-2.0
// Times collectives of an MPI library as client.h says, or, with the only argument "init", what it takes to have one ready.
//
//   mpicc -O3 -march=native -o mpi_perf mpi_perf.c && mpirun -n 4 ./mpi_perf all_reduce 8 67108864 8 1000 100 1
#include <mpi.h>

#include "client.h"

static void call(struct client* self, float* in, float* out, size_t elements) {
  const int count = (int)elements, share = count / self->ranks;
  const char* name = self->collective;
  if (!strcmp(name, "all_reduce"))
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(name, "all_gather"))
    MPI_Allgather(in, share, MPI_FLOAT, out, share, MPI_FLOAT, MPI_COMM_WORLD);
  else if (!strcmp(name, "reduce_scatter"))
    MPI_Reduce_scatter_block(in, out, share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(name, "alltoall"))
    MPI_Alltoall(in, share, MPI_FLOAT, out, share, MPI_FLOAT, MPI_COMM_WORLD);
  else if (!strcmp(name, "broadcast"))
    MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  else
    MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static double sum(struct client* self, double mine) {
  double all = 0;
  (void)self;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  const double started = seconds_now();
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  struct client self = {.call = call, .sum = sum};
  MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
  int code = 0;
  if (argc == 2 && !strcmp(argv[1], "init")) {
    sum(&self, 1);
    print_footprint(self.rank, seconds_now() - started);
    sum(&self, 1);
  } else {
    code = measure(&self, argc - 1, argv + 1);
  }
  if (code) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
