// The samples of a worker's first batches, which every rung is measured with; a walk through them;
// and threads that read, decode or make them.
//
// Thread-safety: one thread; a PoolTeam has other threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/step_plan.h"
#include "data/base/thread_team.h"
#include "data/dataset/dataset.h"
#include "data/loader/sample_team.h"

namespace lockstep::doctor {

// How a worker of the job wants its samples.
data::ImageForm form_of(const wire::JobSpec& job, const data::Dataset& dataset);

class SamplePool {
 public:
  SamplePool() = default;
  // Takes whole steps, at least one: about 64 MiB of stored samples, or a thousand encoded samples.
  static Result<SamplePool> choose(const data::Dataset& dataset, const wire::JobSpec& job,
                                   const RunShape& shape);

  std::span<const uint64_t> samples() const { return samples_; }
  uint64_t steps() const { return steps_; }
  double sample_bytes() const;  // as stored, on average; encoded: samples in hand only
  uint64_t input_bytes() const { return input_bytes_; }  // in a batch

  // The number of encoded samples read so far, from the first one on without a gap. For stored
  // samples: all.
  uint64_t in_hand() const;
  const std::vector<uint8_t>& encoded(uint64_t place) const { return encoded_[place]; }

 private:
  friend class PoolTeam;
  std::vector<uint64_t> samples_;
  uint64_t steps_ = 0;
  uint64_t stored_bytes_ = 0;
  uint64_t input_bytes_ = 0;
  bool is_encoded_ = false;
  std::vector<std::vector<uint8_t>> encoded_;  // by place; empty: not read yet
};

// Walks through the first `places` samples, over and over, in parts that take some milliseconds.
class Walk {
 public:
  explicit Walk(uint64_t places) : places_(places) {}

  bool is_at_end() const { return at_ == places_; }
  std::span<const uint64_t> next(const Clock& clock, std::span<const uint64_t> samples);
  uint64_t begun_at() const { return begun_at_; }  // place of the last part's first sample

 private:
  const uint64_t places_;
  uint64_t at_ = 0;
  uint64_t begun_at_ = 0;
  uint64_t part_ = 4;
  int64_t last_ns_ = 0;
};

class PoolTeam {
 public:
  static Result<std::unique_ptr<PoolTeam>> start(const data::Dataset& dataset,
                                                 const wire::JobSpec& job, uint32_t threads);

  // Reads stored bytes into memory. The pool keeps the encoded samples of its first places in hand.
  Status read(std::span<const uint64_t> samples, SamplePool& pool);
  // Decodes samples in the pool's hand. `first`: the place of the first of them.
  Status decode(std::span<const uint64_t> samples, uint64_t first, const SamplePool& pool);
  // Makes samples as a batch holds them.
  Status make(std::span<const uint64_t> samples, uint64_t first);

 private:
  struct Room {
    data::SampleHand hand;
    std::vector<uint8_t> stored;
    std::vector<std::byte> input;
    std::vector<int64_t> labels;
  };

  PoolTeam(const data::Dataset& dataset, const wire::JobSpec& job, data::SampleReader reader,
           std::unique_ptr<data::ThreadTeam> threads)
      : dataset_(dataset),
        stored_(dataset.as<data::StoredSamples>()),
        encoded_(dataset.as<data::EncodedImages>()),
        sequences_(dataset.as<data::Sequences>()),
        seed_(job.seed()),
        reader_(std::move(reader)),
        threads_(std::move(threads)),
        rooms_(threads_->threads()) {}

  uint64_t stream_of(uint64_t place) const;

  const data::Dataset& dataset_;
  const std::optional<data::As<data::StoredSamples>> stored_;  // one of these three
  const std::optional<data::As<data::EncodedImages>> encoded_;
  const std::optional<data::As<data::Sequences>> sequences_;
  const uint64_t seed_;
  const data::SampleReader reader_;
  std::unique_ptr<data::ThreadTeam> threads_;
  std::vector<Room> rooms_;  // by thread
};

}  // namespace lockstep::doctor
