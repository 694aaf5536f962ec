#include "tests/sim/watch.h"

#include <vector>

#include "coordinator/state/evaluations.h"

namespace lockstep::sim {
namespace {

using coordinator::GenerationEntry;
using coordinator::GenerationState;

class Watch final : public Check {
 public:
  Watch(const World& world, Seen& seen) : world_(world), seen_(seen) {}

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      if (std::holds_alternative<coordinator::TermEntry>(entry)) ++seen_.terms;
      if (const auto* e = std::get_if<coordinator::RollbackEntry>(&entry)) on_rollback(e->to.step);
      if (const auto* e = std::get_if<coordinator::EvalEntry>(&entry))
        evals_[e->step] = coordinator::mark_of(*e);
      if (std::holds_alternative<coordinator::SkipEntry>(entry)) ++seen_.skips;
      if (const auto* e = std::get_if<coordinator::CheckEntry>(&entry); e && !e->node.empty())
        seen_.named.insert(e->node + "/w" + std::to_string(e->local_rank));
      const auto* e = std::get_if<GenerationEntry>(&entry);
      if (e != nullptr && e->state == GenerationState::kStarted &&
          started_.insert(e->generation).second) {
        ++seen_.generations;
        seen_.rebalances += is_rebalance_.count(e->generation) != 0 ? 1 : 0;
      }
    }
  }

  void on_message(const std::string&, const std::string& to,
                  const wire::Envelope& message) override {
    if (message.has_kill_worker()) ++seen_.kills;
    if (message.has_start()) now_ = of(message.start());
    if (message.has_planned()) {
      on_planned(message.generation(), message.planned().next());
      evaluated_when_planned_[message.generation()] =
          message.planned().next().evals().last().step();
    }
    if (!message.has_registered()) return;
    seen_.members.insert(to);
    const auto [known, is_new] = members_.try_emplace(to, message.registered().member());
    if (is_new || known->second == message.registered().member()) return;
    known->second = message.registered().member();
    ++seen_.evictions;
  }

  void on_killed(const std::string&, bool in_evaluation) override {
    seen_.deaths_in_evaluations += in_evaluation ? 1 : 0;
  }

  void on_installed(const Installed& installed) override {
    const auto planned = evaluated_when_planned_.find(installed.generation);
    const bool is_across =
        planned != evaluated_when_planned_.end() && installed.track.last.step > planned->second;
    if (is_across && world_.options.patience > 0) ++seen_.joins_across_evaluations;
  }

 private:
  using Shares = std::map<MemberId, std::pair<uint32_t, uint32_t>>;

  static Shares of(const wire::Start& start) {
    Shares shares;
    for (const wire::MemberInfo& m : start.members())
      shares[m.member()] = {m.slots().begin(), m.slots().end()};
    return shares;
  }

  void on_planned(Generation generation, const wire::Start& next) {
    const Shares then = of(next);
    bool is_same = then.size() == now_.size();
    for (const auto& [member, slots] : then) is_same = is_same && now_.count(member) != 0;
    if (is_same && then != now_) is_rebalance_.insert(generation);
  }

  void on_rollback(Step to) {
    ++seen_.rollbacks;
    const BestBy by = best_by(world_.options.best);
    EvalTrack track;
    for (const auto& [step, mark] : evals_) track.add(mark, by);
    evals_.erase(evals_.upper_bound(to), evals_.end());
    if (keeps_best(world_.options.best) && track.best.step > to) ++seen_.rollbacks_across_the_best;
  }

  const World& world_;
  Seen& seen_;
  std::map<Step, EvalMark> evals_;                     // of the lineage
  std::map<Generation, Step> evaluated_when_planned_;  // the last one before the change
  std::set<Generation> started_;
  std::set<Generation> is_rebalance_;
  Shares now_;
  std::map<std::string, MemberId> members_;  // by process
};

}  // namespace

std::unique_ptr<Check> make_watch(const World& world, Seen& seen) {
  return std::make_unique<Watch>(world, seen);
}

}  // namespace lockstep::sim
