// Batches of training data, prepared ahead on a thread of the loader's own.
//
//   dataset ──▶ loader thread: order, gather, read ──▶ batch_ring.h ──▶ next()
//      │           └─ with a team of threads where images are decoded (sample_team.h)
//      └── data/prefetch/prefetcher.h: asks for samples ahead of the loader thread
//
// One batch is one slot's micro-batch of one step. The loader's whole state is the step it starts
// at: a new generation or a resume destroys it and starts another.
//
// INVARIANTS
//  L1 Batches come in order of (step, slot), none left out, over the slots of the run that have
//     samples and are not skipped.
//  L2 A batch depends on (dataset, transforms, shape, order, step, slot) only. Augmentation depends
//     on the position of each sample, and mixing on the positions in the batch. Nothing depends on
//     the number of threads, on what reads the files or on how far ahead.
//  L3 `digest` is computed from the very indices whose bytes were copied.
//  L4 At most prefetch_batches are ready ahead of the consumer, or as many as tuning allows, within
//     limits. Memory is allocated at the start, and when tuning first goes further ahead.
//  L5 The thread sleeps when the ring is full and never spins; the destructor ends it at once.
//
// Thread-safety: next() and take() from one thread; wait_ns() and ready_batches() from any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/skip_set.h"
#include "comm/run/plan/step_plan.h"
#include "data/dataset/channel_statistics.h"
#include "data/loader/batch.h"
#include "data/loader/image_form.h"

namespace lockstep {
class WorkInHand;
}

namespace lockstep::data {

class Dataset;
class LoaderTuning;
class PrefetchPolicy;

struct LoaderOptions {
  RunShape shape;   // shape.samples == epoch_units(dataset)
  OrderSpec order;  // of the same dataset; its seed also seeds augmentation
  Step first_step = 0;
  Step end_step = 0;  // first step that is not wanted
  SlotRun slots;      // of this rank, within [0, shape.slots); may be empty
  SkipSet skips;      // nothing of these is read
  uint32_t prefetch_batches = 4;
  WorkInHand* in_hand = nullptr;       // hears what is being read; outlives the loader
  PrefetchPolicy* prefetch = nullptr;  // outlives the loader; null: nothing is read ahead
  std::vector<std::string> transforms = {"normalize"};
  std::vector<ChannelStatistics> statistics;  // by channel; empty: the dataset's own
  ImageForm form = ImageForm::kFloats;
  bool keeps_padding = false;  // batches are as wide as any can be
  uint32_t threads = 1;        // that decode images; one thread copies other samples
  // Sets the numbers of threads and of batches ahead instead, and hears how that goes. Outlives the
  // loader. Null: they stay.
  LoaderTuning* tuning = nullptr;
};

class Loader {
 public:
  // `dataset` outlives the loader. kUsage for a transform that is unknown or does not fit. kConfig
  // when the buffers do not fit in memory, or a slot's share exceeds what a batch can hold.
  static Result<std::unique_ptr<Loader>> start(const Dataset& dataset,
                                               const LoaderOptions& options);
  ~Loader();  // stops the thread
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; blocks until it is ready. It stays valid until the following next(). Null once
  // everything before end_step has been delivered. kBadData when a sample changed since the dataset
  // was opened (sample_reader.h).
  Result<const Batch*> next();
  // As next(), but the batch stays valid for as long as it is held, also without the loader. If a
  // batch is still held when its place is needed, the loader takes fresh memory: a later call gives
  // kConfig if there is none. next() and take() may take turns. Any thread may let the batch go.
  Result<std::shared_ptr<const Batch>> take();

  uint64_t wait_ns() const;        // total time that next() has waited
  uint32_t ready_batches() const;  // prepared and not taken yet

 private:
  struct Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
