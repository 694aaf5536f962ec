// Decides from the measured ladder what holds a job back, and what to change in the job.
//
//   Loader (cold, where it could be measured so) >= 1.1 x trainer ── no ──▶ a data fault:
//     │ yes                                                  the narrow place, see below
//     ▼
//   trainer on the GPU's own batch >= 1.1 x trainer ── yes ──▶ copies to the GPU hold it back
//     │ no, or no GPU
//     ▼
//   t(2B) < 1.5 t(B) ── yes ──▶ tiny batch: a step costs much the same whatever is in it, on a GPU
//     │ no                      launches: graphs first, then a larger batch
//     ▼
//   no fault: the trainer computes all the time; on a GPU bf16 first, then larger micro-batches
//
// The narrow place is the lowest rung that meets two conditions: its rate is below the trainer's,
// and at most twice the lowest rate of all. Higher rungs take what lower rungs give, so they are as
// slow. A lower rung that is slow, but less slow, is not the first to mend.
//
// The fault follows from the narrow place. Raw reads: storage. Decoding and augmentation, on
// threads: threads, if there are fewer of them than idle cores, else decode.
//
// Pure: no I/O, no clock. Thread-safety: free functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/doctor/measurements.h"

namespace lockstep::doctor {

enum class Fault {
  kNone,
  kStorage,    // the bytes do not come fast enough
  kThreads,    // too few threads decode and augment images; there are cores for more
  kDecode,     // all cores together decode and augment images too slowly
  kBatching,   // single samples come fast enough; putting them together does not
  kCopy,       // a GPU waits for batches that lie in the host's memory
  kTinyBatch,  // the trainer does little in each step
};

// "tiny_batch", for JSON.
std::string_view fault_name(Fault fault);

// A change of one key of the job file.
struct Change {
  std::string key;
  std::string value;
  bool is_identity = false;  // only for a new run: a run that has begun keeps its value
};

struct FaultFinding {
  Fault fault = Fault::kNone;
  std::string reason;               // a sentence with the rates that decided
  std::vector<Change> changes;      // together they should mend the fault; empty: no key can
  std::vector<std::string> advice;  // what else the user can do, in sentences
};

// REQUIRES: the rungs kLoader and kTrainer, and a rung of raw reads.
FaultFinding decide(const Measurements& measured);

inline constexpr double kEnough = 1.1;      // loader over trainer: no data fault
inline constexpr double kSamePlace = 2;     // rates within this factor have one cause
inline constexpr double kStepGrowth = 1.5;  // the batch is tiny if t(2B) / t(B) is below this
inline constexpr double kFullGrowth = 1.8;  // from here on a larger micro-batch gains nothing

}  // namespace lockstep::doctor
