// Random histories: whatever comes in whatever order, the invariants hold (decide() asserts them
// itself after every event) and the run always comes to an end.
#include <algorithm>

#include "comm/base/prng.h"
#include "tests/support/sanitized.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

// A worker as the coordinator sees it, with its own idea of the present.
struct Puppet {
  ConnectionId connection = 0;
  uint64_t next_batch = 1;
  Step step = 0;
};

class Chaos {
 public:
  explicit Chaos(uint64_t seed)
      : prng_(seed), world_(chaotic_options(prng_)), rarity_(seed % 2 == 0 ? 4 : 100) {
    puppets_.resize(world_.options.workers);
  }

  void step() {
    const size_t index = prng_.below(puppets_.size());
    Puppet& p = puppets_[index];
    switch (prng_.below(17)) {
      case 0:
      case 1:
        return connect(index);
      case 2:
      case 3:
        send(p, promise(p));
        return;
      case 4:
      case 5:
      case 6:
      case 7:
        return records(p);
      case 8:
        send(p, heartbeat(p));
        return;
      case 9:
        return checkpoint(p);
      case 10:
        return leave(p);
      case 11:
        return maybe_rare(p, index);
      case 12:
        return switch_over(p);
      default:
        world_.now_ms += static_cast<int64_t>(prng_.below(300));
        world_.happen(Tick{});
    }
  }

  bool has_ended() const {
    return world_.state.run == RunState::kEnded || world_.state.run == RunState::kTermEnded;
  }
  World& world() { return world_; }

 private:
  static Options chaotic_options(Prng& prng) {
    Options o = small_options(1 + static_cast<uint32_t>(prng.below(5)), 1 + prng.below(6));
    o.min_workers = 1 + static_cast<uint32_t>(prng.below(o.workers));
    return o;
  }

  void connect(size_t index) {
    Puppet& p = puppets_[index];
    p.connection = next_connection_++;
    wire::Register m = World::registration(static_cast<uint32_t>(index));
    if (prng_.below(4) == 0) m.set_member(prng_.below(8));
    if (prng_.below(8) == 0) m.set_generation(prng_.below(4));
    world_.join(p.connection, m);
  }

  const Member* member_of(const Puppet& p) const {
    const auto it = world_.state.by_connection.find(p.connection);
    return it == world_.state.by_connection.end() ? nullptr : &world_.state.members.at(it->second);
  }

  wire::Envelope promise(const Puppet& p) {
    wire::Envelope e;
    e.mutable_promise()->set_generation(world_.state.generation - prng_.below(8) / 7);
    const State& state = world_.state;
    const auto era = state.lineage.find(state.source_generation);
    if (era == state.lineage.end()) return e;
    const Step since = era->second.row.first.step;
    e.mutable_promise()->set_has_state(true);
    e.mutable_promise()->set_lived(state.source_generation);
    e.mutable_promise()->mutable_since()->set_step(since);
    e.mutable_promise()->mutable_applied()->set_step(std::max(p.step, since));
    return e;
  }

  static wire::Envelope heartbeat(const Puppet& p) {
    wire::Envelope e;
    e.mutable_heartbeat()->set_step(p.step);
    return e;
  }

  void records(Puppet& p) {
    const Member* member = member_of(p);
    if (member == nullptr || world_.state.run != RunState::kStarted) return;
    if (member->record_generation != world_.state.generation) p.step = world_.state.resume.step;
    p.next_batch = member->acked_batch + 1;
    if (p.step >= world_.options.total_steps || p.step > world_.state.completed) return;
    const Step to = p.step + 1;
    wire::Envelope e = world_.records(1, p.next_batch, p.step, to);
    if (send(p, e) == Reason::kRecordsAccepted) {
      p.step = to;
      if (prng_.below(4) != 0)
        ++p.next_batch;  // else: it will come twice
      else
        send(p, e), ++p.next_batch;
    }
  }

  void checkpoint(Puppet& p) {
    const auto it = world_.state.by_connection.find(p.connection);
    if (it == world_.state.by_connection.end()) return;
    world_.checkpoint(p.connection, p.step, prng_.below(2) == 0,
                      prng_.below(20) == 0 ? "disk full" : "");
  }

  void leave(Puppet& p) {
    if (p.step < world_.options.total_steps && !world_.state.stop_ms) return;
    wire::Envelope e;
    e.mutable_leave()->set_reason(world_.state.stop_ms ? wire::Leave::STOPPED
                                                       : wire::Leave::FINISHED);
    e.mutable_leave()->mutable_applied()->set_step(p.step);
    send(p, e);
  }

  // As if the planned change, if there is one, had been agreed where everything is reported.
  void switch_over(Puppet& p) {
    if (!world_.state.planned) return;
    wire::Envelope e;
    e.mutable_switched()->mutable_since()->set_step(world_.state.completed);
    e.set_term(world_.state.term);
    e.set_generation(world_.state.planned->generation);
    world_.happen(MessageReceived{p.connection, std::move(e)});
  }

  void maybe_rare(Puppet& p, size_t index) {
    if (prng_.below(rarity_) != 0) return;
    switch (prng_.below(6)) {
      case 4:
        world_.drain(p.connection);
        return;
      case 5: {
        wire::Command command;
        command.set_scale_to(1 + static_cast<uint32_t>(prng_.below(6)));
        world_.command(command);
        return;
      }
      case 0:
        if (prng_.below(4) == 0) world_.happen(StopSignal{"chaos"});
        return;
      case 1:
        world_.happen(ConnectionClosed{p.connection, "chaos"});
        return;
      case 2:
        world_.hello(900, {1000, 1001, 1002, 1003, 1004});
        world_.exit(900, 1000 + static_cast<uint32_t>(index), -1, 9, "", prng_.below(2) == 0);
        return;
      default:
        world_.now_ms += 3'000;
    }
  }

  Reason send(Puppet& p, wire::Envelope e) {
    e.set_term(world_.state.term + (prng_.below(10) == 0 ? 1 : 0) - (prng_.below(10) == 0 ? 1 : 0));
    e.set_generation(world_.state.generation - (prng_.below(10) == 0 ? 1 : 0));
    return world_.happen(MessageReceived{p.connection, std::move(e)});
  }

  Prng prng_;
  World world_;
  uint64_t rarity_;  // of what is no routine
  std::vector<Puppet> puppets_;
  ConnectionId next_connection_ = 1;
};

TEST(DecideProperty, EveryHistoryKeepsTheInvariantsAndComesToAnEnd) {
  int finished = 0;
  int started = 0;
  int switched = 0;
  int regrouped = 0;
  constexpr uint64_t kSeeds = kIsSanitized ? 40 : 300;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chaos chaos(seed);
    for (int i = 0; i < 1'500 && !chaos.has_ended(); ++i) chaos.step();
    // Now all fall silent: deadlines alone must end the run.
    World& w = chaos.world();
    for (int i = 0; i < 4000 && !chaos.has_ended(); ++i) w.wait(100);
    ASSERT_TRUE(chaos.has_ended());
    ASSERT_EQ(w.ends.size() + w.term_ends.size(), 1u);
    for (size_t i = 0; i < w.history.size(); ++i) ASSERT_EQ(w.history[i].step, i);
    finished += !w.ends.empty() && w.ends[0].exit_code == 0;
    started += w.state.source_generation != 0;
    switched += w.is_switched;
    regrouped += w.is_regrouped;
  }
  if (kIsSanitized) return;
  EXPECT_GT(finished, 1);  // the histories reach every stage
  EXPECT_GT(started, 60);
  EXPECT_GT(switched, 10);
  EXPECT_GT(regrouped, 20);
}

}  // namespace
}  // namespace lockstep::coordinator
