// SPDX-License-Identifier: Apache-2.0
// While it exists, threads that this one starts take no signals: the program's signals are for the program's threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace shoal {

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

}  // namespace shoal
