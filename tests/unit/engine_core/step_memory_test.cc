#include "worker/engine/step_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/sanitized.h"

namespace lockstep {
namespace {

constexpr size_t kPieceBytes = size_t{96} << 20;  // beyond what glibc ever keeps by itself

// The pages that a piece of memory faults in from its allocation until it is free again.
long faults_of_a_piece() {
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_SELF, &before);
  void* const piece = std::malloc(kPieceBytes);
  if (piece == nullptr) return -1;
  std::memset(piece, 1, kPieceBytes);
  const volatile auto* const last = static_cast<char*>(piece) + kPieceBytes - 1;
  (void)*last;
  std::free(piece);
  ::getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

bool is_taken_again() {
  keep_all_freed_memory();
  const long first = faults_of_a_piece();
  const long again = faults_of_a_piece();
  return first > 0 && again >= 0 && again * 4 < first;
}

// In a process of its own, whose allocator it changes.
TEST(StepMemory, ALargePieceThatWasFreedIsTakenAgainWithoutFaults) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's allocator is another one";
  EXPECT_EXIT(::_Exit(is_taken_again() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep
