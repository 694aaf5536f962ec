#include "tests/bench/rank_processes.h"

#include "comm/collectives/loopback/loopback.h"

namespace lockstep::bench {
namespace {

Result<TrainReport> run_alone(const TrainOptions& options) {
  std::vector<std::unique_ptr<Collective>> collectives;
  return train_rank(options, {.make_buffer =
                                  [](const BufferLayout& layout, uint32_t regions) {
                                    return Result<std::unique_ptr<GradientBuffer>>(
                                        make_plain_buffer(layout, regions));
                                  },
                              .connect =
                                  [&](GradientBuffer& buffer) {
                                    collectives = make_loopback(1, {&buffer});
                                    return Result<Collective*>(collectives[0].get());
                                  }});
}

}  // namespace

Result<TrainReport> run_ranks(const TrainOptions& options) {
  return run_alone(options);
}

}  // namespace lockstep::bench
