// How a generation of GPUs is closed and aborted (comm/collectives/nccl/README.md), as a small
// model that is explored in all its interleavings.
//
// Three ranks in a ring pass the sums of each bucket on: the one that goes, which died or was
// evicted after some buckets, then survivor A, then survivor B. A step of a survivor is: its
// buckets, its agreement (the control section, which the hosts sum), and the gate, once all three
// have agreed. Its host closes the gate and aborts its collectives. An aborted collective returns
// as if it had finished, and tells the next rank that its data is there: B, not aborted yet, takes
// what lies there for the sum. So does A, if the one that goes was evicted and aborts.
//
// The model holds R6 of worker/engine/step_reducer.h against its opposite: a rank agrees after
// its sums are there, or before.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/cuda/host_atomics.h"
#include "worker/cuda/kernels/apply_state.h"

namespace lockstep::cuda {
namespace {

using testing::HostAtomics;

constexpr uint32_t kBuckets = 2;  // of a step
constexpr uint32_t kSteps = 2;
constexpr uint32_t kAllBuckets = kSteps * kBuckets;

struct Survivor {
  uint32_t done = 0;                  // buckets that its stream has finished
  uint32_t posted = 0;                // buckets that it says it has passed on
  uint32_t stale_from = kAllBuckets;  // the first of them that is stale
  bool sums_are_right = true;         // of the step in flight
  uint32_t agreed = 0;                // steps
  uint64_t gate = 0;
  uint32_t applied = 0;      // steps
  bool was_refused = false;  // by the gate, after which its host leaves the generation
  float scale = 1024;
  bool is_aborted = false;
  std::optional<uint64_t> answer;  // to prepare; closed since then
  bool is_damaged = false;         // wrong sums have changed its boundary state
  auto operator<=>(const Survivor&) const = default;
};
using World = std::array<Survivor, 2>;

enum class AbortAfter { kStart, kOwnClose };
enum class Agrees { kAfterSums, kBeforeSums };

struct Model {
  AbortAfter abort_after = AbortAfter::kOwnClose;
  Agrees agrees = Agrees::kAfterSums;
  bool has_gate = true;
  // The one that goes.
  uint32_t posted = 0;      // buckets
  uint32_t agreed = 0;      // steps
  bool is_evicted = false;  // it aborts: what it has not posted, it says it has
};

struct Move {
  std::string what;
  World next;
};

// The operation of `s` at the gate, by the functions that run on the device.
void pass_and_apply(Survivor& s, const Model& model) {
  ApplyState device;
  device.gate = model.has_gate ? s.gate : s.applied;  // none lets everything through
  device.loss_scale.scale = s.scale;
  const Totals totals{.squares = 1, .is_finite = s.sums_are_right};
  const float control[kWeightAt + 1] = {};
  decide<HostAtomics>(device, {.step = s.applied, .loss_scale = {.is_on = true}}, totals, control);
  if (model.has_gate) s.gate = device.gate;
  s.scale = device.loss_scale.scale;
  s.was_refused = device.verdict.passed == 0;
  if (s.was_refused) return;
  ++s.applied;
  s.is_damaged = s.is_damaged || !s.sums_are_right;
}

void finish_bucket(Survivor& s, bool is_right) {
  const uint32_t bucket = s.done++;
  s.sums_are_right = is_right && (s.sums_are_right || bucket % kBuckets == 0);
  s.posted = bucket + 1;
  if (!is_right) s.stale_from = std::min(s.stale_from, bucket);
}

// Returns every move that can happen next.
std::vector<Move> moves(const World& world, const Model& model) {
  std::vector<Move> out;
  const auto move = [&](uint32_t r, const std::string& what, const auto& change) {
    World next = world;
    change(next[r]);
    out.push_back({std::string(r == 0 ? "A " : "B ") + what, next});
  };
  const bool is_started = world[0].answer && world[1].answer;
  for (uint32_t r = 0; r < 2; ++r) {
    const Survivor& s = world[r];
    const uint32_t in_flight = s.applied + 1;  // steps, with the one in flight
    const bool has_sums = s.done >= in_flight * kBuckets;
    if (in_flight <= kSteps && !has_sums) {
      const bool is_there =
          r == 0 ? model.posted > s.done || model.is_evicted : world[0].posted > s.done;
      const bool is_right = s.done < (r == 0 ? model.posted : world[0].stale_from);
      if (is_there) move(r, "sums", [&](Survivor& next) { finish_bucket(next, is_right); });
      if (s.is_aborted)
        move(r, "returns unsummed", [](Survivor& next) { finish_bucket(next, false); });
    }
    if (in_flight <= kSteps && s.agreed < in_flight && !s.answer &&
        (has_sums || model.agrees == Agrees::kBeforeSums))
      move(r, "agrees", [](Survivor& next) { ++next.agreed; });
    const uint32_t agreed = std::min({model.agreed, world[0].agreed, world[1].agreed});
    if (in_flight <= agreed && has_sums && !s.was_refused)
      move(r, "reaches the gate", [&](Survivor& next) { pass_and_apply(next, model); });
    if (!s.answer)
      move(r, "closes", [](Survivor& next) {
        next.answer = steps_let_through(close_gate<HostAtomics>(&next.gate));
      });
    if (!s.is_aborted && (model.abort_after == AbortAfter::kStart ? is_started : !!s.answer))
      move(r, "aborts", [](Survivor& next) { next.is_aborted = true; });
  }
  return out;
}

bool is_damaged(const World& world) {
  return world[0].is_damaged || world[1].is_damaged;
}

struct Explored {
  std::map<World, std::pair<World, std::string>> reached;  // from where, and by what
  std::vector<World> ends;
  std::optional<World> damaged;  // the first one found: no shorter way leads to damage

  std::vector<std::string> way_to(World world) const {
    std::vector<std::string> way;
    for (; !reached.at(world).second.empty(); world = reached.at(world).first)
      way.insert(way.begin(), reached.at(world).second);
    return way;
  }
};

Explored explore(const Model& model) {
  Explored explored;
  std::deque<World> next = {World{}};
  explored.reached[World{}];
  for (; !next.empty(); next.pop_front()) {
    const World world = next.front();
    if (is_damaged(world) && !explored.damaged) explored.damaged = world;
    const std::vector<Move> possible = moves(world, model);
    if (possible.empty()) explored.ends.push_back(world);
    for (const Move& m : possible) {
      if (explored.reached.try_emplace(m.next, world, m.what).second) next.push_back(m.next);
    }
  }
  return explored;
}

std::string text_of(const std::vector<std::string>& way) {
  std::string text;
  for (const std::string& what : way) text += what + "; ";
  return text;
}

bool has(const std::vector<std::string>& way, const char* what) {
  return std::find(way.begin(), way.end(), what) != way.end();
}

// How far the one that goes may have come: it agrees to a step when its own sums are there.
std::vector<Model> goers() {
  std::vector<Model> all;
  for (uint32_t posted = 0; posted <= kAllBuckets; ++posted) {
    for (uint32_t agreed = 0; agreed <= posted / kBuckets; ++agreed) {
      for (const bool is_evicted : {false, true})
        all.push_back({.posted = posted, .agreed = agreed, .is_evicted = is_evicted});
    }
  }
  return all;
}

TEST(CloseAndAbort, AtOnesOwnCloseDamagesNothingIfAgreementFollowsTheSums) {
  std::set<std::pair<uint64_t, uint64_t>> answers;
  for (const AbortAfter when : {AbortAfter::kOwnClose, AbortAfter::kStart}) {
    for (Model model : goers()) {
      model.abort_after = when;
      const Explored all = explore(model);
      EXPECT_FALSE(all.damaged) << text_of(all.way_to(*all.damaged));
      ASSERT_FALSE(all.ends.empty());
      for (const World& end : all.ends) {
        for (const Survivor& s : end) {
          EXPECT_EQ(s.done, std::min(s.applied + 1, kSteps) * kBuckets);  // neither is left waiting
          EXPECT_TRUE(s.is_aborted);
          EXPECT_EQ(s.applied, *s.answer);     // what was answered stays true
          EXPECT_LE(*s.answer, model.agreed);  // nothing but what all agreed to
          EXPECT_EQ(s.scale, 1024);            // garbage is not even an overflow
        }
        EXPECT_LE(std::max(end[0].applied, end[1].applied),
                  std::min(end[0].applied, end[1].applied) + 1);
        answers.emplace(*end[0].answer, *end[1].answer);
      }
    }
  }
  // The model is about something: either survivor may be a step ahead of the other, or neither.
  for (const auto& pair : {std::pair{0u, 0u}, {1u, 0u}, {0u, 1u}, {1u, 1u}, {2u, 1u}, {2u, 2u}})
    EXPECT_TRUE(answers.contains(pair)) << pair.first << " " << pair.second;
}

// A has agreed, closes and aborts; B, which has not closed, takes A's stale data for the sum.
TEST(CloseAndAbort, AtOnesOwnCloseDamagesANeighbourIfAgreementComesFirst) {
  for (uint32_t posted = 0; posted < kAllBuckets; ++posted) {
    const Explored all =
        explore({.agrees = Agrees::kBeforeSums, .posted = posted, .agreed = posted / kBuckets + 1});
    ASSERT_TRUE(all.damaged) << posted;
    EXPECT_FALSE((*all.damaged)[0].is_damaged);
    const std::vector<std::string> way = all.way_to(*all.damaged);
    EXPECT_TRUE(has(way, "A agrees") && has(way, "A closes") && has(way, "A aborts") &&
                has(way, "A returns unsummed"))
        << text_of(way);
    EXPECT_FALSE(has(way, "B closes") || has(way, "B aborts")) << text_of(way);
    EXPECT_EQ(way.back(), "B reaches the gate");
  }
}

// No survivor aborts before start, and still the evicted one's abort does it.
TEST(CloseAndAbort, OfAnEvictedRankDamagesSurvivorsIfAgreementComesFirst) {
  const Model model{.abort_after = AbortAfter::kStart,
                    .agrees = Agrees::kBeforeSums,
                    .posted = 1,
                    .agreed = 1,
                    .is_evicted = true};
  const Explored all = explore(model);
  ASSERT_TRUE(all.damaged);
  const std::vector<std::string> way = all.way_to(*all.damaged);
  EXPECT_FALSE(has(way, "A aborts") || has(way, "B aborts")) << text_of(way);
  EXPECT_EQ(way.back().substr(2), "reaches the gate");
}

// Agreement keeps garbage out. The gate keeps a step from being applied after the answer.
TEST(CloseAndAbort, WithoutTheGateAnAnswerDoesNotStayTrue) {
  const Explored all = explore({.has_gate = false, .posted = kAllBuckets, .agreed = kSteps});
  EXPECT_FALSE(all.damaged);
  EXPECT_TRUE(std::any_of(all.ends.begin(), all.ends.end(),
                          [](const World& end) { return end[0].applied > *end[0].answer; }));
}

}  // namespace
}  // namespace lockstep::cuda
