#include "worker/engine/bucket_order.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace lockstep {
namespace {

constexpr uint32_t kMeasurer = 0;  // rank

bool is_order(std::vector<uint32_t> order) {
  if (order.back() + 1 != order.size()) return false;
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

}  // namespace

BucketOrder::BucketOrder(uint32_t buckets) : order_(buckets), agreed_(buckets < 3) {
  std::iota(order_.begin(), order_.end(), 0);
}

void BucketOrder::completed(uint32_t bucket) {
  if (!agreed_ && bucket + 1 < order_.size()) noted_.push_back(bucket);
}

Status BucketOrder::agree(Collective& collective, Generation generation, Step step) {
  std::vector<uint32_t> noted = std::exchange(noted_, {});
  if (agreed_ || collective.world_size() == 1) return Status::ok();
  std::vector<uint32_t> told = order_;
  noted.push_back(static_cast<uint32_t>(order_.size()) - 1);
  const bool is_whole = noted.size() == order_.size();
  if (collective.rank() == kMeasurer && is_whole) told = std::move(noted);
  told.push_back(is_whole ? 1 : 0);
  const auto bytes = std::as_writable_bytes(std::span(told));
  const Tag tag{generation, step, Phase::kTrain, 0, bytes.size()};
  LOCKSTEP_RETURN_IF_ERROR(collective.broadcast(tag, bytes, kMeasurer));
  agreed_ = told.back() != 0;
  told.pop_back();
  if (!is_order(told)) {
    return Status(Code::kInternal, "rank " + std::to_string(kMeasurer) +
                                       " sent an invalid order of " +
                                       std::to_string(order_.size()) + " buckets");
  }
  order_ = std::move(told);
  return Status::ok();
}

}  // namespace lockstep
