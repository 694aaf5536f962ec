// Threads that decode and augment images, several samples at a time. The samples do not depend on
// the number of threads, which may change between two batches.
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
#include "data/loader/sample_reader.h"
#include "data/prefetch/prefetcher.h"

namespace lockstep::data {

// Decode threads of a worker: `wanted`, or, if that is 0, its share of the processors, at most 16.
// 1 for samples that are stored as they are used.
uint32_t decode_threads(const Dataset& dataset, uint32_t wanted, uint32_t workers);

// The most threads that data.tune may use: all processors, or 16. 0 if their number stays, because
// the job names it or more would not help.
uint32_t most_decode_threads(const Dataset& dataset, uint32_t wanted);

class SampleTeam {
 public:
  // Each thread gets a copy of `augmenter`.
  static Result<std::unique_ptr<SampleTeam>> start(uint32_t threads, const Augmenter& augmenter);

  uint32_t threads() const { return threads_->threads(); }
  // Between two batches: the number from here on. kInternal if the machine gives no more.
  Status resize(uint32_t threads);

  // Makes sample i of `samples` at place i of a batch, as SampleReader::read() with the stream of
  // i. `labels`: SampleShape::label_words() for each. `buffered`: where the bytes come from;
  // without a buffer the reader reads them. The error of the first sample that fails; kAborted once
  // `stop` is set.
  using StreamFn = std::function<uint64_t(uint64_t i)>;
  Status read(const SampleReader& reader, std::span<const uint64_t> samples,
              const StreamFn& stream_of, const std::atomic<bool>& stop, std::byte* inputs,
              int64_t* labels, const BufferedBatch& buffered = {});

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
