// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace shoal::comm {

// While it exists the calling thread takes no signals, nor will a thread that it starts: the program's signals are for the
// program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace shoal::comm
