// Ranks that merge and reduce a step without a model, for tests: gradients are small numbers made
// up per slot.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "comm/base/prng.h"
#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/loopback/loopback.h"
#include "worker/engine/step_reducer.h"
#include "worker/model/spec.h"

namespace lockstep::testing {

inline ModelLayout small_model() {
  LayoutBuilder builder;
  builder.add_linear("fc1", 30, 20);
  builder.add_batch_norm("bn1", 20, 1);
  builder.add_linear("fc2", 20, 10);
  builder.add_linear("fc3", 10, 3);
  return builder.take();
}

// A value that rounds when added, different for every slot, place and step.
inline float value_of(Step step, uint32_t slot, uint64_t place) {
  return static_cast<float>(stream_value(stream_key({step, slot}), place) % 1'000'003) * 1e-5f;
}

inline uint64_t digest_of(Step step, uint32_t slot) {
  return stream_key({step, slot, 77});
}

// A device's regions, without a device.
class SeparateSums final : public DeviceSums {
 public:
  SeparateSums(const BufferLayout& layout, uint32_t regions)
      : statistics_(layout.statistics), regions_(regions, std::vector<float>(layout.elements)) {}
  float* partial(uint32_t region) override { return regions_[region].data(); }
  Status bring(uint32_t, const ElementRange&) override { return Status::ok(); }
  Status finish() override { return Status::ok(); }
  void begin_step(uint32_t slots) override {
    slots_of_step = slots;
    counted.clear();
  }
  Status count(uint32_t buckets) override {
    counted.push_back(buckets);
    return Status::ok();
  }
  void has_seen(uint32_t buckets) override { seen = buckets; }
  uint32_t slots_of_step = 0;
  Status merge(const RegionMerge& merge, const ElementRange& range) override {
    EXPECT_LE(range.end, statistics_);
    add_into(partial(merge.dst) + range.begin, partial(merge.src) + range.begin, range.size());
    return Status::ok();
  }

  std::vector<uint32_t> counted;
  uint32_t seen = 0;

 private:
  const uint64_t statistics_;
  std::vector<std::vector<float>> regions_;
};

struct World {
  World(std::vector<SlotRun> r, uint32_t total_slots, uint64_t bucket_bytes)
      : layout(make_flat_layout(model, total_slots)), runs(std::move(r)), slots(total_slots) {
    std::vector<GradientBuffer*> raw;
    for (size_t i = 0; i < runs.size(); ++i) {
      buffers.push_back(make_plain_buffer(layout.buffer, regions_needed(slots, slots)));
      raw.push_back(buffers.back().get());
    }
    collectives = make_loopback(1, raw);
    bounds = plan_buckets(layout.tensor_bounds(), layout.buffer.elements, bucket_bytes).value();
  }

  // One step of one rank; gradients get ready in an order of the rank's own.
  Status step(StepReducer& reducer, uint32_t rank, Step step, const StepMerge& merge, bool vote) {
    reducer.begin_step(step, merge);
    for (const SlotWork& work : merge.ranks[rank].work) {
      if (!work.empty) {
        LOCKSTEP_RETURN_IF_ERROR(reducer.open());
        fill(reducer, work, rank, step);
      }
      LOCKSTEP_RETURN_IF_ERROR(reducer.slot_done(work));
    }
    LOCKSTEP_RETURN_IF_ERROR(reducer.open());
    return reducer.finish([vote] { return Votes{vote, vote}; });
  }

  void fill(StepReducer& reducer, const SlotWork& work, uint32_t rank, Step step) {
    float* there = reducer.region_on_device(work);
    float* region = there != nullptr ? there : reducer.region(work);
    for (uint64_t i = layout.buffer.gradients; i < layout.buffer.statistics; ++i)
      region[i] = value_of(step, work.slot, i);
    float* control = reducer.region(work) + layout.buffer.statistics;
    std::fill_n(control, layout.control_elements(), 0.0f);
    control[kControlLoss] = value_of(step, work.slot, 0);
    control[kControlCorrect] = value_of(step, work.slot, 1);
    put_digest(control, work.slot, digest_of(step, work.slot));
    float* const sum = adds ? reducer.sum_to_add_to(work) : nullptr;
    sums_added_to += sum != nullptr;
    const auto n = static_cast<uint32_t>(layout.parameters.size());
    for (uint32_t k = 0; k < n; ++k) {
      const uint32_t p = (k + rank + static_cast<uint32_t>(step)) % n;
      for (uint64_t i = layout.parameters[p].begin; i < layout.parameters[p].end(); ++i)
        if (sum == nullptr) {
          region[i] = value_of(step, work.slot, i);
        } else {
          sum[i] += value_of(step, work.slot, i);
        }
      if (reducer.is_last(work)) reducer.tensor_ready(p);
    }
  }

  // All ranks, `steps` steps; rank 0's sums of every step, one after another. Every rank votes.
  std::vector<float> run(Step steps, const std::vector<bool>& non_empty) {
    const StepMerge merge = make_step_merge(runs, slots, non_empty);
    std::vector<float> sums;
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < runs.size(); ++r) {
      threads.emplace_back([&, r] {
        std::atomic<uint32_t> progress{0};
        SeparateSums separate(layout.buffer, regions_needed(slots, slots));
        StepReducer reducer(layout, *buffers[r], *collectives[r], 1, bounds, progress,
                            {.sums = on_device ? &separate : nullptr});
        for (Step t = 0; t < steps; ++t) {
          const Status status = step(reducer, r, t, merge, true);
          ASSERT_TRUE(status.is_ok()) << status.message();
          const float* result = reducer.sums();
          const float* control = result + layout.buffer.statistics;
          EXPECT_EQ(control[kControlStopVotes], static_cast<float>(runs.size()));
          EXPECT_EQ(control[kControlSwitchVotes], static_cast<float>(runs.size()));
          for (uint32_t slot = 0; slot < slots; ++slot)
            EXPECT_EQ(get_digest(control, slot), non_empty[slot] ? digest_of(t, slot) : 0);
          if (r != 0) continue;
          const float* gradients = on_device ? reducer.step_sums().on_device : result;
          sums.insert(sums.end(), gradients, gradients + layout.buffer.statistics);
          sums.insert(sums.end(), control, control + 2);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return sums;
  }

  const ModelLayout model = small_model();
  const FlatLayout layout;
  const std::vector<SlotRun> runs;
  const uint32_t slots;
  std::vector<std::unique_ptr<GradientBuffer>> buffers;
  std::vector<std::unique_ptr<Collective>> collectives;
  std::vector<uint64_t> bounds;
  bool adds = false;  // gradients to where they would be merged
  std::atomic<int> sums_added_to{0};
  bool on_device = false;  // of a world of one rank: its gradients stay in SeparateSums
};

}  // namespace lockstep::testing
