// Threads that make samples, each with what it needs for it: images are decoded and augmented on
// several at a time. What is made does not depend on how many they are, and that may change.
//
// Thread-safety: one call at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "data/base/thread_team.h"
#include "data/read/read_ahead.h"
#include "data/read/sample_reader.h"

namespace lockstep::data {

// Of a worker: `wanted`, or where that is 0 its share of the processors, at most 16. Samples that
// are stored as they are used need no more than one.
uint32_t decode_threads(const Dataset& dataset, uint32_t wanted, uint32_t workers);

// How many data.tune may make of them, at most: all processors, or 16. 0: they stay, since they are
// `wanted`, or would not help.
uint32_t most_decode_threads(const Dataset& dataset, uint32_t wanted);

class SampleTeam {
 public:
  // With a copy of `augmenter` for each.
  static Result<std::unique_ptr<SampleTeam>> start(uint32_t threads, const Augmenter& augmenter);

  uint32_t threads() const { return threads_->threads(); }
  // Between two batches: so many from here on. kInternal where the machine gives no more.
  Status resize(uint32_t threads);

  // sample i of `samples` to place i of a batch, as SampleReader::read(), with the stream of i
  // where there are streams. The error of the first that fails; kAborted once `stop` is set.
  // `ahead`: where their bytes come from, sample i as its number `first` + i; null: they are read.
  using StreamFn = std::function<uint64_t(uint64_t i)>;
  Status read(const SampleReader& reader, std::span<const uint64_t> samples,
              const StreamFn& stream_of, const std::atomic<bool>& stop, std::byte* inputs,
              int64_t* labels, ReadAhead* ahead = nullptr, uint64_t first = 0);

  // Samples [begin, end) in their natural order, as evaluation sees them.
  Status read_range(const SampleReader& reader, uint64_t begin, uint64_t end, std::byte* inputs,
                    int64_t* labels);

 private:
  SampleTeam(std::unique_ptr<ThreadTeam> threads, const Augmenter& augmenter)
      : threads_(std::move(threads)), augmenter_(augmenter) {
    give_hands();
  }
  void give_hands();

  std::unique_ptr<ThreadTeam> threads_;
  const Augmenter augmenter_;
  std::vector<SampleHand> hands_;  // by thread
};

}  // namespace lockstep::data
