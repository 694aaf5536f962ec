#include "metrics/node/gpu_xids.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::array<uint64_t, 6> kOfPrograms = {
    13,   // exception in a kernel, such as an index beyond its memory
    31,   // access to memory that is not mapped
    43,   // the GPU stopped the work of a program
    45,   // the work of a program that ended was removed
    68,   // exception in the video decoder
    109,  // a context switch timed out
};

// 63 (a row is to be remapped), 92 (many corrected errors) and 94 (an error that hit one program
// only) are not here: what they need shows in the counts of rows and of errors.
constexpr std::array<uint64_t, 10> kResets = {
    48,   // memory error that ECC cannot correct
    62,   // internal microcontroller halted
    64,   // a row could not be remapped
    74,   // NVLink error
    79,   // the GPU fell off the bus
    95,   // memory error that hit more than one program
    119,  // the GPU's system processor does not answer
    120,  // error in the GPU's system processor
    140,  // memory error that the GPU has not recovered from
    143,  // the GPU's initialization failed
};

template <size_t kSize>
bool contains(const std::array<uint64_t, kSize>& numbers, uint64_t xid) {
  return std::find(numbers.begin(), numbers.end(), xid) != numbers.end();
}

}  // namespace

XidMeans meaning_of_xid(uint64_t xid) {
  if (contains(kOfPrograms, xid)) return XidMeans::kProgram;
  return contains(kResets, xid) ? XidMeans::kReset : XidMeans::kWatch;
}

}  // namespace lockstep
