/* SPDX-License-Identifier: Apache-2.0
 * What every example does with a result: goes on, or says what went wrong and ends. */
#ifndef EXAMPLE_H_
#define EXAMPLE_H_

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
  exit(1);
}

static inline void expect(float value, float expected, const char* what) {
  if (value == expected) return;
  fprintf(stderr, "%s: %g, expected %g\n", what, (double)value, (double)expected);
  exit(1);
}

#endif /* EXAMPLE_H_ */
