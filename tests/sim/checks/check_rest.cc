// Liveness: a run at rest is what was asked for. At rest means that it trains, all its members are
// connected, and nothing is under way: no change, stop, end, suspicion, restart or newcomer.
#include <algorithm>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::Member;
using coordinator::MemberState;
using coordinator::RunState;
using coordinator::State;

// A coordinator looks in every tick at what is due. An agent tries a place again after a while.
constexpr int64_t kTicksMs = 1'000;
constexpr int64_t kRestartsMs = 10'000;

class RestCheck final : public Check {
 public:
  RestCheck(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  void on_message(const std::string&, const std::string&, const wire::Envelope& message) override {
    // The place of a worker that was drained alone stays empty until a scale.
    if (message.command().body_case() == wire::Command::kDrainMember) is_place_given_up_ = true;
    const bool is_there =
        cluster_.server() != nullptr && !cluster_.coordinator()->loop().is_stopped();
    const std::string unrest = is_there ? unrest_of(cluster_.server()->state()) : "";
    if (unrest != unrest_ || unrest.empty()) since_ms_ = world_.loop.now_ms();
    unrest_ = unrest;
    const int64_t patience_ms = unrest == kMissing ? kRestartsMs : kTicksMs;
    if (!unrest.empty() && world_.loop.now_ms() - since_ms_ > patience_ms)
      world_.fail("rest", "nothing is under way, and " + unrest);
  }

 private:
  static constexpr char kMissing[] = "workers are missing that nobody starts";

  static bool takes_part(const State& state, const Member& member) {
    return member.connection != 0 && member.state == MemberState::kTraining &&
           (!state.is_switched || member.lived >= state.generation);
  }

  static bool is_at_rest(const State& state) {
    return state.run == RunState::kStarted && !state.planned && !state.stop_ms && !state.end_ms &&
           !state.lost_ms && !state.is_interrupted && !state.suspicion && state.leavers.empty() &&
           std::all_of(state.ranks.begin(), state.ranks.end(),
                       [&](auto id) { return takes_part(state, state.members.at(id)); });
  }

  // How the run differs from what was asked for; empty if it does not, or if something is under
  // way.
  std::string unrest_of(const State& state) const {
    if (!is_at_rest(state)) return "";
    const size_t wanted = state.wanted_workers != 0
                              ? state.wanted_workers
                              : world_.options.nodes * world_.options.workers_per_node;
    const bool leaves_one = std::any_of(state.ranks.begin(), state.ranks.end(),
                                        [&](auto id) { return state.members.at(id).is_draining; });
    const bool comes_somebody = is_anybody_awaited(state);
    if (is_unfit_in_vain(state)) return "a worker at an unfit GPU takes part without need";
    if (leaves_one && !comes_somebody) return "a worker that was told to leave takes part";
    if (state.ranks.size() > wanted) return "more workers take part than are wanted";
    if (state.ranks.size() >= wanted) return "";
    const bool waits_somebody =
        std::any_of(state.waiting.begin(), state.waiting.end(),
                    [&](auto id) { return may_join(state, state.members.at(id)); });
    if (waits_somebody) return "a worker waits although fewer take part than are wanted";
    const bool is_spoiled = is_place_given_up_ || !state.given_up.empty() ||
                            !state.checks.expelled.empty() || !state.experience.barred.empty() ||
                            !state.waiting.empty() || !state.unfit.empty();
    size_t kept = 0;
    for (const auto& [connection, agent] : state.agents) kept += agent.workers;
    if (!comes_somebody && !is_spoiled && state.ranks.size() < std::min(kept, wanted))
      return kMissing;
    return "";
  }

  static bool is_unfit(const State& state, const Member& member) {
    const auto unfit = state.unfit.find(coordinator::place_of(member));
    return unfit != state.unfit.end() && unfit->second.is_current;
  }

  // cluster.min_workers is 1 in these runs.
  static bool is_unfit_in_vain(const State& state) {
    const auto is_here = [&](auto id) { return is_unfit(state, state.members.at(id)); };
    const auto stays = [&](auto id) {
      const Member& member = state.members.at(id);
      return !member.is_draining && !is_unfit(state, member);
    };
    return std::any_of(state.ranks.begin(), state.ranks.end(), is_here) &&
           std::any_of(state.ranks.begin(), state.ranks.end(), stays);
  }

  static bool is_anybody_awaited(const State& state) {
    return !state.replacements.empty() ||
           std::any_of(state.agents.begin(), state.agents.end(),
                       [](const auto& entry) { return !entry.second.awaited.empty(); });
  }

  static bool may_join(const State& state, const Member& member) {
    const coordinator::Place place = coordinator::place_of(member);
    return member.connection != 0 && !member.is_draining &&
           (member.state == MemberState::kRegistered || member.state == MemberState::kPromised) &&
           !state.checks.expelled.contains(place) && !state.experience.barred.contains(place) &&
           !is_unfit(state, member);
  }

  World& world_;
  Cluster& cluster_;
  bool is_place_given_up_ = false;
  std::string unrest_;
  int64_t since_ms_ = 0;  // when `unrest_` began
};

}  // namespace

std::unique_ptr<Check> make_rest_check(World& world, Cluster& cluster) {
  return std::make_unique<RestCheck>(world, cluster);
}

}  // namespace lockstep::sim
