// The coordinator goes by what an agent has found of its GPUs, soon after the agent said so: a
// place does not stay unfit when its agent has found it fit again, nor the other way round.
#include <map>
#include <utility>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::RunState;
using coordinator::State;

// Several times the longest time that an undisturbed message takes.
constexpr int64_t kSoonMs = 100;

class NoticeCheck final : public Check {
 public:
  NoticeCheck(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  void on_message(const std::string& from, const std::string&,
                  const wire::Envelope& message) override {
    // The agent's new finding is on its way. No message before it may have shown that both agreed.
    if (message.has_agent_hello() || message.has_node_notice()) forget(from);
    const auto* server = cluster_.server();
    if (server == nullptr || is_disturbed(*cluster_.coordinator())) return since_ms_.clear();
    const State& state = server->state();
    if (state.run == RunState::kEnded || state.run == RunState::kTermEnded)
      return since_ms_.clear();
    for (const SimAgent* agent : cluster_.agents()) judge(state, *agent);
  }

 private:
  bool is_disturbed(const Process& process) const {
    return process.loop().is_stopped() || world_.disturbed.contains(process.name());
  }

  void forget(const std::string& agent) {
    std::erase_if(since_ms_,
                  [&](const auto& entry) { return agent.starts_with(entry.first.node + "/"); });
  }

  void judge(const State& state, const SimAgent& agent) {
    const bool is_heard = agent.is_connected() && !is_disturbed(agent);
    for (uint32_t rank = 0; rank < world_.options.workers_per_node; ++rank) {
      const coordinator::Place place{agent.node(), rank};
      const auto known = state.unfit.find(place);
      const bool is_unfit = known != state.unfit.end() && known->second.is_current;
      if (!is_heard || is_unfit == agent.finds_unfit(rank)) {
        since_ms_.erase(place);
        continue;
      }
      const int64_t since_ms = since_ms_.try_emplace(place, world_.loop.now_ms()).first->second;
      if (world_.loop.now_ms() - since_ms > kSoonMs)
        world_.fail("notices", "the GPU of " + place.node + "/w" + std::to_string(rank) +
                                   (is_unfit ? " counts as unfit, and its agent found it fit"
                                             : " counts as fit, and its agent found it unfit"));
    }
  }

  World& world_;
  Cluster& cluster_;
  std::map<coordinator::Place, int64_t> since_ms_;  // both differ
};

}  // namespace

std::unique_ptr<Check> make_notice_check(World& world, Cluster& cluster) {
  return std::make_unique<NoticeCheck>(world, cluster);
}

}  // namespace lockstep::sim
