// SPDX-License-Identifier: Apache-2.0
// What a process that uses a library has cost so far, for the programs whose figures stand side by side. C and C++.
#pragma once

#include <stdio.h>
#include <string.h>
#include <time.h>

// Seconds on a clock that no one sets.
static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Kilobytes that a file of /proc says of `key` ("VmRSS:"); -1: it says nothing of it.
static inline long kilobytes_of(const char* path, const char* key) {
  char line[256];
  long found = -1;
  FILE* file = fopen(path, "r");
  if (!file) return -1;
  while (found < 0 && fgets(line, sizeof line, file))
    if (!strncmp(line, key, strlen(key))) sscanf(line + strlen(key), "%ld", &found);
  fclose(file);
  return found;
}

// One line: "init RANK SECONDS RSS_KB PSS_KB". Pss shares what several ranks have mapped out among them.
static inline void print_footprint(int rank, double seconds) {
  const long resident = kilobytes_of("/proc/self/status", "VmRSS:");
  const long proportional = kilobytes_of("/proc/self/smaps_rollup", "Pss:");
  printf("init %d %.6f %ld %ld\n", rank, seconds, resident, proportional);
  fflush(stdout);
}
