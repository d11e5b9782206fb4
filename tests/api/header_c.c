/* SPDX-License-Identifier: Apache-2.0
 * The headers are C: this file is compiled as C11, with the CUDA headers where they are found and without. */
#include <nccl.h>
#include <shoal/shoal.h>

int use_the_api(void);

int use_the_api(void) {
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = NCCL_COMM_NULL;
  float x = 1;
  cudaStream_t stream = NULL;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 1;
  if (ncclCommInitRankConfig(&comm, 1, id, 0, &config) != ncclSuccess) return 1;
  if (shoalStreamCreate(&stream) != ncclSuccess) return 1;
  if (pncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, stream) != ncclSuccess) return 1;
  if (shoalStreamSynchronize(stream) != ncclSuccess || shoalStreamDestroy(stream) != ncclSuccess) return 1;
  return ncclCommDestroy(comm) != ncclSuccess || x != 1.0f;
}
