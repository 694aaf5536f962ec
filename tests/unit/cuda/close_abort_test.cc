// How a generation of GPUs is closed and aborted (comm/collectives/nccl/README.md), as a small
// model that is explored in all its interleavings.
//
// Three ranks in a ring pass the sums of each bucket on: one that died after some buckets, then
// survivor A, then survivor B. Each survivor's stream holds two steps: buckets, then the gate. Its
// host closes the gate and aborts its collectives. An aborted one returns as if it had finished,
// what is behind it runs, and it tells the next rank that its data is there: B, not aborted yet,
// takes what lies there for the sum.
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
#include "worker/cuda/apply_state.h"

namespace lockstep::cuda {
namespace {

using testing::HostAtomics;

constexpr uint32_t kBuckets = 2;  // of a step
constexpr uint32_t kSteps = 2;    // enqueued on each stream
constexpr uint32_t kOperations = kSteps * (kBuckets + 1);

struct Survivor {
  uint32_t done = 0;                        // operations of its stream
  uint32_t posted = 0;                      // buckets that it says it has passed on
  uint32_t stale_from = kSteps * kBuckets;  // the first of them that is none
  bool sums_are_right = true;               // of the step in flight
  uint64_t gate = 0;
  float scale = 1024;
  bool is_aborted = false;
  std::optional<uint64_t> answer;  // to prepare; closed since then
  bool is_damaged = false;         // wrong sums have changed its boundary state
  auto operator<=>(const Survivor&) const = default;
};
using World = std::array<Survivor, 2>;

enum class AbortAfter { kStart, kOwnClose };

struct Model {
  AbortAfter abort_after = AbortAfter::kStart;
  bool has_gate = true;
  uint32_t posted_by_the_dead = 0;
};

struct Move {
  std::string what;
  World next;
};

// The operation of `s` at the gate, by the functions that run on the device.
void pass_and_apply(Survivor& s, const Model& model) {
  ApplyState device;
  device.gate = s.gate;
  device.loss_scale.scale = s.scale;
  const Totals totals{.squares = 1, .is_finite = s.sums_are_right};
  const uint64_t step = s.done / (kBuckets + 1);
  if (!model.has_gate) device.gate = step;  // lets everything through
  decide<HostAtomics>(device, {.step = step, .loss_scale = {.is_on = true}}, totals, 0);
  if (model.has_gate) s.gate = device.gate;
  s.scale = device.loss_scale.scale;
  s.is_damaged = s.is_damaged || (device.verdict.passed != 0 && !s.sums_are_right);
}

void finish_bucket(Survivor& s, uint32_t bucket, bool is_right) {
  s.sums_are_right = is_right && (s.sums_are_right || bucket % kBuckets == 0);
  s.posted = bucket + 1;
  if (!is_right) s.stale_from = std::min(s.stale_from, bucket);
  ++s.done;
}

// What can happen next.
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
    const uint32_t step = s.done / (kBuckets + 1);
    const uint32_t in_step = s.done % (kBuckets + 1);
    if (s.done < kOperations && in_step == kBuckets) {
      move(r, "reaches the gate", [&](Survivor& next) {
        pass_and_apply(next, model);
        ++next.done;
      });
    } else if (s.done < kOperations) {
      const uint32_t bucket = step * kBuckets + in_step;
      const bool is_there = (r == 0 ? model.posted_by_the_dead : world[0].posted) > bucket;
      const bool is_right = r == 0 || bucket < world[0].stale_from;
      if (is_there) move(r, "sums", [&](Survivor& next) { finish_bucket(next, bucket, is_right); });
      if (s.is_aborted)
        move(r, "returns unsummed", [&](Survivor& next) { finish_bucket(next, bucket, false); });
    }
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

TEST(CloseAndAbort, AfterEverySurvivorHasClosedDamagesNothingInAnyInterleaving) {
  std::set<std::pair<uint64_t, uint64_t>> answers;
  for (uint32_t posted = 0; posted <= kSteps * kBuckets; ++posted) {
    const Explored all = explore({.posted_by_the_dead = posted});
    EXPECT_FALSE(all.damaged) << text_of(all.way_to(*all.damaged));
    ASSERT_FALSE(all.ends.empty());
    for (const World& end : all.ends) {
      for (const Survivor& s : end) {
        EXPECT_EQ(s.done, kOperations);  // nobody is left waiting
        EXPECT_TRUE(s.is_aborted);
        EXPECT_EQ(steps_let_through(s.gate), *s.answer);  // what was answered stays true
        EXPECT_LE(*s.answer, posted / kBuckets);          // nothing but whole steps
        EXPECT_EQ(s.scale, 1024);                         // garbage is not even an overflow
      }
      answers.emplace(*end[0].answer, *end[1].answer);
    }
  }
  // The model is about something: one survivor may be a step ahead of the other, or not.
  for (const auto& pair : {std::pair{0u, 0u}, {1u, 0u}, {1u, 1u}, {2u, 0u}, {2u, 2u}})
    EXPECT_TRUE(answers.contains(pair)) << pair.first << " " << pair.second;
}

// A has closed and aborts; B, which has not closed, takes A's stale data for the sum.
TEST(CloseAndAbort, BeforeStartDamagesASurvivorThatHasNotClosed) {
  for (uint32_t posted = 0; posted < kSteps * kBuckets; ++posted) {
    const Explored all =
        explore({.abort_after = AbortAfter::kOwnClose, .posted_by_the_dead = posted});
    ASSERT_TRUE(all.damaged) << posted;
    EXPECT_FALSE((*all.damaged)[0].is_damaged);
    const std::vector<std::string> way = all.way_to(*all.damaged);
    const auto has = [&](const char* what) {
      return std::find(way.begin(), way.end(), what) != way.end();
    };
    EXPECT_TRUE(has("A closes") && has("A aborts") && has("A returns unsummed")) << text_of(way);
    EXPECT_FALSE(has("B closes") || has("B aborts")) << text_of(way);
    EXPECT_EQ(way.back(), "B reaches the gate");
  }
}

TEST(CloseAndAbort, WithoutTheGateDamagesEvenInTheRightOrder) {
  const Explored all = explore({.has_gate = false});
  ASSERT_TRUE(all.damaged);
  EXPECT_EQ(all.way_to(*all.damaged).back().substr(2), "reaches the gate");
}

}  // namespace
}  // namespace lockstep::cuda
