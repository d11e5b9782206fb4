/* SPDX-License-Identifier: Apache-2.0
 * Several communicators of the same ranks: shoal-run -n 2 ./several_communicators
 * Each has links, an order of calls and a state of health of its own, so what runs on one does not wait for the other: here a
 * stream of large sums, and small ones beside it. All ranks make them in the same order. */
#include <shoal/shoal.h>

#include "example.h"

enum { kCount = 1 << 20 };

int main(void) {
  ncclComm_t large, small;
  must(shoalCommInitLaunch(&large), "shoalCommInitLaunch");
  must(shoalCommInitLaunch(&small), "shoalCommInitLaunch");
  int rank, world;
  must(ncclCommUserRank(large, &rank), "ncclCommUserRank");
  must(ncclCommCount(large, &world), "ncclCommCount");

  cudaStream_t stream;
  float* values;
  must(shoalStreamCreate(&stream), "shoalStreamCreate");
  must(ncclMemAlloc((void**)&values, kCount * sizeof(float)), "ncclMemAlloc");
  for (int i = 0; i < kCount; ++i) values[i] = 1;
  for (int round = 0; round < 4; ++round)
    must(ncclAllReduce(values, values, kCount, ncclFloat, ncclSum, large, stream), "ncclAllReduce");

  for (int round = 0; round < 100; ++round) {
    float one = 1;
    must(ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, small, NULL), "ncclAllReduce");
    expect(one, (float)world, "small sum");
  }

  must(shoalStreamSynchronize(stream), "shoalStreamSynchronize");
  const float expected = (float)world * (float)world * (float)world * (float)world;
  for (int i = 0; i < kCount; ++i) expect(values[i], expected, "large sum");
  must(ncclMemFree(values), "ncclMemFree");
  must(shoalStreamDestroy(stream), "shoalStreamDestroy");
  must(ncclCommDestroy(large), "ncclCommDestroy");
  must(ncclCommDestroy(small), "ncclCommDestroy");
  if (rank == 0) puts("several communicators: ok");
  return 0;
}
