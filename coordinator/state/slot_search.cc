#include "coordinator/state/slot_search.h"

#include <algorithm>
#include <compare>
#include <limits>

#include "comm/base/check.h"
#include "coordinator/state/slots.h"

namespace lockstep::coordinator {
namespace {

// The fewest partials, and with equally few the fewest subtrees of nodes. Impossible: none.
struct Price {
  uint32_t partials = std::numeric_limits<uint32_t>::max();
  uint32_t trees = 0;
  bool is_possible() const { return partials != std::numeric_limits<uint32_t>::max(); }
  auto operator<=>(const Price&) const = default;
};

// Searches over where each owner's run ends. How many slots the first r owners lack to the most
// that they can have tells where the last of them ends. All together lack `slack`, so the first r
// never lack more.
class PartialSearch {
 public:
  // `node_sizes`: by node, the number of its owners, who are neighbours.
  PartialSearch(const Sizes& most, const Sizes& node_sizes, uint32_t slots)
      : most_(most),
        nodes_(node_sizes),
        slots_(slots),
        longest_(*std::max_element(most.begin(), most.end())),
        most_end_(1, 0),
        partials_(size_t{slots + 1} * (longest_ + 1), 0) {
    for (const uint32_t m : most) most_end_.push_back(most_end_.back() + m);
    LOCKSTEP_CHECK(most_end_.back() >= slots, "the owners can hold all slots");
    slack_ = most_end_.back() - slots;
    // Every place where a node may begin is searched from by itself.
    const uint64_t work = most.size() * (slack_ + uint64_t{1}) * (slack_ + uint64_t{1}) *
                          std::min(longest_, slack_ + 1);
    if (work > kNodeSearchWork) nodes_ = {static_cast<uint32_t>(most.size())};
  }

  Sizes sizes() {
    std::vector<Price> best(slack_ + 1);  // by what the owners so far lack
    best[0] = {0, 0};
    std::vector<Sizes> lacked_before;  // by node and what is lacked at its end
    size_t owner = 0;
    for (const uint32_t owners : nodes_) {
      lacked_before.emplace_back(slack_ + 1, 0);
      best = with_node(best, owner, owners, &lacked_before.back());
      owner += owners;
    }
    LOCKSTEP_CHECK(best[slack_].is_possible(), "every owner can have at least one slot");
    Sizes sizes(most_.size());
    uint32_t lacks = slack_;
    for (size_t node = nodes_.size(); node > 0; --node) {
      owner -= nodes_[node - 1];
      const uint32_t before = lacked_before[node - 1][lacks];
      note_sizes(owner, nodes_[node - 1], before, lacks, &sizes);
      lacks = before;
    }
    return sizes;
  }

 private:
  static constexpr uint64_t kNodeSearchWork = 20'000'000;

  std::vector<Price> with_node(const std::vector<Price>& best, size_t first, uint32_t owners,
                               Sizes* lacked_before) {
    std::vector<Price> found(slack_ + 1);
    // Backwards: of equally good assignments the later ranks carry more.
    for (uint32_t before = slack_ + 1; before-- > 0;) {
      if (!best[before].is_possible()) continue;
      std::vector<Price> here(slack_ + 1);
      here[before] = best[before];
      for (uint32_t i = 0; i < owners; ++i) here = with_owner(here, first + i, nullptr);
      for (uint32_t lacks = before; lacks <= slack_; ++lacks) {
        if (!here[lacks].is_possible()) continue;
        const SlotRun run{most_end_[first] - before, most_end_[first + owners] - lacks};
        const Price price{here[lacks].partials, here[lacks].trees + partials_of_run(run, slots_)};
        if (price >= found[lacks]) continue;
        found[lacks] = price;
        (*lacked_before)[lacks] = before;
      }
    }
    return found;
  }

  // `lacks`: how many slots the owner lacks, by how many are lacked up to its end; may be null.
  std::vector<Price> with_owner(const std::vector<Price>& best, size_t owner, Sizes* lacks) {
    std::vector<Price> next(slack_ + 1);
    for (uint32_t behind = 0; behind <= slack_; ++behind) {
      // An owner that ends after the last slot leaves none to the owners after it.
      if (most_end_[owner + 1] - behind > slots_) continue;
      // Longer runs first: of equally good assignments the later ranks carry more.
      for (uint32_t less = 0; less <= behind && less < most_[owner]; ++less) {
        const Price& before = best[behind - less];
        if (!before.is_possible()) continue;
        const uint32_t sum =
            before.partials + partials(most_end_[owner] - (behind - less), most_[owner] - less);
        if (sum >= next[behind].partials) continue;
        next[behind] = {sum, before.trees};
        if (lacks != nullptr) (*lacks)[behind] = less;
      }
    }
    return next;
  }

  // The same way again, for one node between two known places.
  void note_sizes(size_t first, uint32_t owners, uint32_t before, uint32_t behind, Sizes* sizes) {
    std::vector<Price> best(slack_ + 1);
    best[before] = {0, 0};
    std::vector<Sizes> lacks(owners, Sizes(slack_ + 1, 0));
    for (uint32_t i = 0; i < owners; ++i) best = with_owner(best, first + i, &lacks[i]);
    for (uint32_t i = owners; i-- > 0;) {
      const uint32_t less = lacks[i][behind];
      (*sizes)[first + i] = most_[first + i] - less;
      behind -= less;
    }
  }

  uint32_t partials(uint32_t begin, uint32_t size) {
    uint32_t& known = partials_[size_t{begin} * (longest_ + 1) + size];
    if (known == 0) known = partials_of_run({begin, begin + size}, slots_);
    return known;
  }

  const Sizes& most_;
  Sizes nodes_;
  const uint32_t slots_;
  const uint32_t longest_;
  Sizes most_end_;  // where the first n owners end if none lacks a slot
  uint32_t slack_ = 0;
  std::vector<uint32_t> partials_;  // by begin and size; 0: not counted yet
};

}  // namespace

Sizes fewest_partials(const Sizes& most, const Sizes& node_sizes, uint32_t slots) {
  return PartialSearch(most, node_sizes, slots).sizes();
}

}  // namespace lockstep::coordinator
