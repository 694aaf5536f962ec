// Nobody is taken for dead without a reason: a worker that trains in the present generation and was
// never stopped or cut off keeps its identity, whatever happens to others, to the coordinator and
// to its connection. Only a term that begins from a checkpoint knows nobody.
#include <algorithm>
#include <map>
#include <string>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

class EvictionCheck final : public Check {
 public:
  EvictionCheck(World& world, SharedLedger ledger) : world_(world), ledger_(std::move(ledger)) {}

  void on_message(const std::string& from, const std::string& to,
                  const wire::Envelope& message) override {
    if (!message.has_register_()) trains_[from] = lives_[from] == started_ && !message.has_leave();
    if (!message.has_registered()) return;
    const MemberId member = message.registered().member();
    const auto [known, is_new] = members_.try_emplace(to, member);
    if (is_new || known->second == member) return;
    known->second = member;
    if (trains_[to] && world_.disturbed.count(to) == 0)
      world_.fail("eviction", to + " lives and was never cut off, but is member " +
                                  std::to_string(member) + " now");
  }

  void on_installed(const Installed& installed) override {
    lives_[installed.process] = installed.generation;
  }
  void on_applied(const Applied& applied) override { lives_[applied.process] = applied.generation; }

  // A term that finds no open row has nothing to take over.
  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      const bool begins_anew =
          std::holds_alternative<coordinator::TermEntry>(entry) && !has_open_row();
      if (begins_anew || std::holds_alternative<coordinator::RollbackEntry>(entry))
        members_.clear();
      const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
      if (generation != nullptr && generation->state == coordinator::GenerationState::kStarted)
        started_ = generation->generation;
    }
  }

 private:
  bool has_open_row() const {
    return std::any_of(ledger_->rows().begin(), ledger_->rows().end(), [](const auto& item) {
      return !item.second.last && !item.second.rolled_back;
    });
  }

  World& world_;
  const SharedLedger ledger_;
  std::map<std::string, MemberId> members_;  // by process
  std::map<std::string, Generation> lives_;  // in which it trained last
  std::map<std::string, bool> trains_;       // in the newest one, when it was heard last
  Generation started_ = 0;                   // newest
};

}  // namespace

std::unique_ptr<Check> make_eviction_check(World& world, SharedLedger ledger) {
  return std::make_unique<EvictionCheck>(world, std::move(ledger));
}

}  // namespace lockstep::sim
