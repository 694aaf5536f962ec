// Where the samples of a loader's batches come from:
//
//   by nobody       they do not lie in files here, or nothing is to be read ahead
//   where mapped    those that are stored as they are used; asked for ahead (warm_ahead.h)
//   read ahead      the others (read_ahead.h): by `auto` on a local disk only while they come from
//                   the disk (disk_watch.h), before and after that by who makes the batches
//
// Whichever it is, the bytes are the same.
//
// Thread-safety: stop() from any thread; the rest from the one that makes the batches.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/read/batch_sequence.h"
#include "data/read/disk_watch.h"
#include "data/read/read_ahead.h"
#include "data/read/reading.h"
#include "data/read/warm_ahead.h"

namespace lockstep::data {

class SampleSupply {
 public:
  // `dataset` and `reading` outlive it; null: nothing is read ahead. Of the batches of `sequence`,
  // from its first one on. As ReadAhead::start().
  static Result<std::unique_ptr<SampleSupply>> start(const Dataset& dataset,
                                                     BatchSequenceOptions sequence,
                                                     Reading* reading);

  // Around every batch, whose samples are all taken in between.
  void before(const PlannedBatch& batch);
  void after(const PlannedBatch& batch);

  // Who gives the samples of this batch, its i-th as number first() + i. Null: they are where
  // Dataset::sample() says, or read by Dataset::read_encoded().
  ReadAhead* ahead() const { return ahead_.get(); }
  uint64_t first() const { return first_; }

  // Nobody waits from here on.
  void stop();

 private:
  SampleSupply(const Dataset& dataset, BatchSequenceOptions sequence, Reading* reading)
      : dataset_(dataset), options_(std::move(sequence)), reading_(reading) {}

  Status read_ahead_from(Step step, uint32_t slot);
  void read_on_use();

  const Dataset& dataset_;
  const BatchSequenceOptions options_;
  Reading* const reading_;

  std::optional<WarmAhead> warm_;   // of samples that are mapped
  std::optional<DiskWatch> watch_;  // of those that are read ahead only from the disk
  uint64_t first_ = 0;

  std::mutex mutex_;  // over what stop() meets
  bool is_stopped_ = false;
  std::unique_ptr<ReadAhead> ahead_;
};

}  // namespace lockstep::data
