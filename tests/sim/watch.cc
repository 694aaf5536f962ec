#include "tests/sim/watch.h"

#include <vector>

namespace lockstep::sim {
namespace {

using coordinator::GenerationEntry;
using coordinator::GenerationState;

class Watch final : public Check {
 public:
  explicit Watch(Seen& seen) : seen_(seen) {}

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      if (std::holds_alternative<coordinator::TermEntry>(entry)) ++seen_.terms;
      if (std::holds_alternative<coordinator::RollbackEntry>(entry)) ++seen_.rollbacks;
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
    if (message.has_planned()) on_planned(message.generation(), message.planned().next());
    if (!message.has_registered()) return;
    seen_.members.insert(to);
    const auto [known, is_new] = members_.try_emplace(to, message.registered().member());
    if (is_new || known->second == message.registered().member()) return;
    known->second = message.registered().member();
    ++seen_.evictions;
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

  Seen& seen_;
  std::set<Generation> started_;
  std::set<Generation> is_rebalance_;
  Shares now_;
  std::map<std::string, MemberId> members_;  // by process
};

}  // namespace

std::unique_ptr<Check> make_watch(Seen& seen) {
  return std::make_unique<Watch>(seen);
}

}  // namespace lockstep::sim
