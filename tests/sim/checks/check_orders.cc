// An order that was answered with yes holds, whichever coordinator comes next: a worker that was
// told to leave stays one that is to leave, a drained node gives no worker before the next `scale`,
// and a stop stays a stop until the run ends or its user resumes it.
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::Member;
using coordinator::RunState;
using coordinator::State;

class OrderCheck final : public Check {
 public:
  OrderCheck(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  void on_message(const std::string& from, const std::string&,
                  const wire::Envelope& message) override {
    // The order ends with the proof of the exit, which a later term need not know.
    if (message.has_worker_exit()) {
      leaving_.erase(message.worker_exit().pid());
      ended_.insert(message.worker_exit().pid());
    }
    // The journal may hold the scale although its coordinator died before it could answer.
    if (message.command().body_case() == wire::Command::kScaleTo) drained_.clear();
    if (cluster_.server() == nullptr) return;
    if (std::exchange(starts_, cluster_.starts()) != cluster_.starts()) {
      leaving_.clear();
      drained_.clear();
      stops_ = false;
    }
    const State& state = cluster_.server()->state();
    if (from == cluster_.coordinator()->name() && message.command_answer().ok()) note(state);
    if (state.run != RunState::kEnded && state.run != RunState::kTermEnded) judge(state);
  }

 private:
  static bool is_alive(const Member& member) {
    return member.state != coordinator::MemberState::kDead &&
           member.state != coordinator::MemberState::kGone;
  }

  // Skips a worker that was told to go from elsewhere: it says so to every coordinator by itself.
  void note(const State& state) {
    for (const auto& [id, member] : state.members)
      if (member.is_draining && member.farewell == 0 && !ended_.contains(member.pid))
        leaving_.insert(member.pid);
    drained_.clear();
    for (const auto& [node, workers] : state.workers_of_node)
      if (workers == 0 && state.emptied.count(node) == 0) drained_.insert(node);
    stops_ = stops_ || (state.stop_ms && !state.is_shrinking);
  }

  void judge(const State& state) {
    for (const auto& [id, member] : state.members) {
      if (!is_alive(member) || member.is_draining) continue;
      const std::string who =
          "member " + std::to_string(id) + " (pid " + std::to_string(member.pid) + ")";
      if (drained_.contains(member.node) && !ended_.contains(member.pid))
        world_.fail("orders", who + " takes part, although node " + member.node + " was drained");
      if (leaving_.contains(member.pid))
        world_.fail("orders", who + " was told to leave, and this term does not know it");
    }
    if (stops_ && (!state.stop_ms || state.is_shrinking))
      world_.fail("orders", "the run was to stop, and this term does not know it");
  }

  World& world_;
  Cluster& cluster_;
  uint32_t starts_ = 0;
  std::set<uint32_t> leaving_;  // pids, which are never used twice
  std::set<uint32_t> ended_;    // pids
  std::set<std::string> drained_;
  bool stops_ = false;
};

}  // namespace

std::unique_ptr<Check> make_order_check(World& world, Cluster& cluster) {
  return std::make_unique<OrderCheck>(world, cluster);
}

}  // namespace lockstep::sim
