/* SPDX-License-Identifier: Apache-2.0
 * Patterns made of sends and receives: shoal-run -n 4 ./point_to_point
 * All transfers of a group move side by side, so within one no order can deadlock. (For scatter, gather and all-to-all of equal
 * blocks there are calls of their own: ncclScatter, ncclGather, ncclAlltoAll.) */
#include <shoal/shoal.h>

#include "example.h"

enum { kCount = 1000, kMostRanks = 64 };

static ncclComm_t comm;
static int rank, world;
static float out[kMostRanks * kCount], in[kMostRanks * kCount];

/* What rank `from` has for rank `to`. */
static float value(int from, int to) { return (float)(100 * from + to); }

static void fill(void) {
  for (int to = 0; to < world; ++to)
    for (int i = 0; i < kCount; ++i) {
      out[to * kCount + i] = value(rank, to);
      in[to * kCount + i] = -1;
    }
}

static void expect_block(int block, float expected, const char* what) {
  for (int i = 0; i < kCount; ++i) expect(in[block * kCount + i], expected, what);
}

/* Two ranks swap blocks. */
static void send_and_receive(void) {
  const int peer = rank ^ 1;
  fill();
  if (peer < world) {
    must(ncclGroupStart(), "ncclGroupStart");
    must(ncclSend(out + peer * kCount, kCount, ncclFloat, peer, comm, NULL), "ncclSend");
    must(ncclRecv(in, kCount, ncclFloat, peer, comm, NULL), "ncclRecv");
    must(ncclGroupEnd(), "ncclGroupEnd");
    expect_block(0, value(peer, rank), "send and receive");
  }
}

/* From the root to all, itself too. */
static void scatter(int root) {
  fill();
  must(ncclGroupStart(), "ncclGroupStart");
  if (rank == root)
    for (int to = 0; to < world; ++to) must(ncclSend(out + to * kCount, kCount, ncclFloat, to, comm, NULL), "ncclSend");
  must(ncclRecv(in, kCount, ncclFloat, root, comm, NULL), "ncclRecv");
  must(ncclGroupEnd(), "ncclGroupEnd");
  expect_block(0, value(root, rank), "scatter");
}

/* From all to the root. */
static void gather(int root) {
  fill();
  must(ncclGroupStart(), "ncclGroupStart");
  must(ncclSend(out + root * kCount, kCount, ncclFloat, root, comm, NULL), "ncclSend");
  if (rank == root)
    for (int from = 0; from < world; ++from) must(ncclRecv(in + from * kCount, kCount, ncclFloat, from, comm, NULL), "ncclRecv");
  must(ncclGroupEnd(), "ncclGroupEnd");
  for (int from = 0; rank == root && from < world; ++from) expect_block(from, value(from, root), "gather");
}

static void all_to_all(void) {
  fill();
  must(ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < world; ++peer) {
    must(ncclSend(out + peer * kCount, kCount, ncclFloat, peer, comm, NULL), "ncclSend");
    must(ncclRecv(in + peer * kCount, kCount, ncclFloat, peer, comm, NULL), "ncclRecv");
  }
  must(ncclGroupEnd(), "ncclGroupEnd");
  for (int from = 0; from < world; ++from) expect_block(from, value(from, rank), "all to all");
}

/* Ranks on a circle: each sends to both neighbours. With two ranks both are the same one: its first send meets the other's first
 * receive, so what goes to the right must arrive from the left first. */
static void neighbour_exchange(void) {
  const int left = (rank + world - 1) % world, right = (rank + 1) % world;
  fill();
  must(ncclGroupStart(), "ncclGroupStart");
  must(ncclSend(out + right * kCount, kCount, ncclFloat, right, comm, NULL), "ncclSend");
  must(ncclRecv(in, kCount, ncclFloat, left, comm, NULL), "ncclRecv");
  must(ncclSend(out + left * kCount, kCount, ncclFloat, left, comm, NULL), "ncclSend");
  must(ncclRecv(in + kCount, kCount, ncclFloat, right, comm, NULL), "ncclRecv");
  must(ncclGroupEnd(), "ncclGroupEnd");
  expect_block(0, value(left, rank), "from the left");
  expect_block(1, value(right, rank), "from the right");
}

int main(void) {
  must(shoalCommInitLaunch(&comm), "shoalCommInitLaunch");
  must(ncclCommUserRank(comm, &rank), "ncclCommUserRank");
  must(ncclCommCount(comm, &world), "ncclCommCount");
  if (world > kMostRanks) {
    fprintf(stderr, "%d ranks: at most %d\n", world, kMostRanks);
    return 1;
  }
  send_and_receive();
  for (int root = 0; root < world; ++root) {
    scatter(root);
    gather(root);
  }
  all_to_all();
  neighbour_exchange();
  must(ncclCommDestroy(comm), "ncclCommDestroy");
  if (rank == 0) puts("point to point: ok");
  return 0;
}
