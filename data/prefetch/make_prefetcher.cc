#include "data/prefetch/make_prefetcher.h"

#include <utility>

#include "data/dataset/dataset.h"
#include "data/prefetch/far_prefetcher.h"
#include "data/prefetch/memory_prefetcher.h"
#include "data/prefetch/page_cache_prefetcher.h"
#include "data/prefetch/prefetch_policy.h"

namespace lockstep::data {
namespace {

class NoPrefetcher final : public Prefetcher {
 public:
  void before(const PlannedBatch&) override {}
  void after(const PlannedBatch&) override {}
};

// For samples that lie in files of this machine.
Result<std::unique_ptr<Prefetcher>> make_near(const Dataset& dataset,
                                              const BatchSequenceOptions& sequence,
                                              PrefetchPolicy* policy) {
  using Made = std::unique_ptr<Prefetcher>;
  const auto extent = dataset.extent(0);
  if (policy == nullptr || policy->ahead_limit_bytes() == 0 || !extent)
    return Made(std::make_unique<NoPrefetcher>());
  auto stored = dataset.as<StoredSamples>();
  if (stored && policy->is_in_place(*extent))
    return Made(std::make_unique<PageCachePrefetcher>(std::move(*stored), sequence,
                                                      policy->ahead_limit_bytes()));
  const auto when = !stored && policy->is_ahead_only_of_disk(*extent)
                        ? MemoryPrefetcher::When::kFromDisk
                        : MemoryPrefetcher::When::kAlways;
  LOCKSTEP_ASSIGN_OR_RETURN(auto made, MemoryPrefetcher::start(dataset, sequence, *policy, when));
  return Made(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Prefetcher>> make_prefetcher(const Dataset& dataset,
                                                    const BatchSequenceOptions& sequence,
                                                    PrefetchPolicy* policy) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto near, make_near(dataset, sequence, policy));
  if (dataset.far().empty()) return near;
  return std::unique_ptr<Prefetcher>(std::make_unique<FarPrefetcher>(
      dataset.as<EncodedImages>().value(), sequence, std::move(near)));
}

}  // namespace lockstep::data
