// Linked into the test programs that CMake calls SINGLE_THREADED. ThreadSanitizer's build leaves
// them out; one that starts a thread after all ends here, in the build that runs all tests, and
// says so.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

// The program's own function comes before libc's, also for libstdc++ and other libraries.
extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) {
  std::fputs(
      "This test program starts a thread. Take SINGLE_THREADED from its lockstep_test() in CMake, "
      "or give the test that starts it a program of its own.\n",
      stderr);
  std::abort();
}
