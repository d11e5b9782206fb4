// SPDX-License-Identifier: Apache-2.0
// shoal-run: starts the ranks of one job on this machine.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "tools/run/job.h"
#include "tools/run/options.h"

int main(int argc, char** argv) {
  // Pipes must not take the numbers of standard streams that were closed.
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR);
  if (fd >= 0) ::close(fd);
  shoal::run::Options options;
  const auto outcome = shoal::run::parse_options({argv + 1, argv + argc}, options);
  if (!outcome.proceed) {
    if (outcome.is_help) {
      std::fputs(outcome.text.c_str(), stdout);
    } else {
      std::fprintf(stderr, "shoal-run: %s\n", outcome.text.c_str());
    }
    return outcome.exit_code;
  }
  return shoal::run::JobRunner(options).run();
}
