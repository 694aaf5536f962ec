// From the measured ladder to what holds a job back, and what to change in it.
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
// The narrow place is the lowest rung that is below the trainer's rate and no more than twice the
// lowest rate of all: higher rungs take what lower ones give, so they are as slow as these; and
// a lower one that is slow too, but not as slow, is not what has to be mended first. Raw reads:
// storage. Decoding and augmentation, which threads do: threads, where there are fewer of them than
// idle cores, else decode.
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
  kThreads,    // too few threads decode and vary images; there are cores for more
  kDecode,     // all cores together decode and vary them too slowly
  kBatching,   // samples come fast enough one by one; putting them together does not
  kCopy,       // a GPU waits for batches that lie in the host's memory
  kTinyBatch,  // the trainer does little in each step
};

// "tiny_batch": of JSON.
std::string_view fault_name(Fault fault);

// Of a key of the job file.
struct Change {
  std::string key;
  std::string value;
  bool is_identity = false;  // a run that has begun keeps what it has; it is for a new one
};

struct Finding {
  Fault fault = Fault::kNone;
  std::string reason;               // a sentence with the rates that decided it
  std::vector<Change> changes;      // together they are to mend it; none: no key can
  std::vector<std::string> advice;  // what else can be done, sentences
};

// REQUIRES: the rungs kLoader and kTrainer, and one of raw reads.
Finding decide(const Measurements& measured);

inline constexpr double kEnough = 1.1;      // loader over trainer: no data fault
inline constexpr double kSamePlace = 2;     // rates no further apart have one cause
inline constexpr double kStepGrowth = 1.5;  // t(2B) / t(B) below which the batch is tiny
inline constexpr double kFullGrowth = 1.8;  // and from which on a larger micro-batch gains nothing

}  // namespace lockstep::doctor
