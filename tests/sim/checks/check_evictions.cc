// The coordinator takes no worker for dead without a reason: a worker that trains in the present
// generation and was never stopped or cut off keeps its identity, whatever happens to others, to
// the coordinator and to its connection. Two exceptions: a term that begins from a checkpoint knows
// no members, and a worker that a planned change left out does not train any more.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

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
    if (!is_new && known->second == member) return;
    lives_[to] = 0;  // a new member has trained in no generation yet
    const bool trains = std::exchange(trains_[to], false);
    const bool is_left_out = left_out_.count(std::exchange(known->second, member)) != 0;
    if (!is_new && trains && !is_left_out && world_.disturbed.count(to) == 0)
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
      if (generation == nullptr) continue;
      if (generation->state == coordinator::GenerationState::kPlanned)
        planned_.insert(generation->generation);
      if (generation->state == coordinator::GenerationState::kStarted) note_start(*generation);
    }
  }

 private:
  bool has_open_row() const {
    return std::any_of(ledger_->rows().begin(), ledger_->rows().end(), [](const auto& item) {
      return !item.second.last && !item.second.rolled_back;
    });
  }

  void note_start(const coordinator::GenerationEntry& entry) {
    started_ = entry.generation;
    wire::Start start;
    if (!start.ParseFromString(entry.start))
      return world_.fail("eviction", "a start in the journal cannot be read");
    const std::set<MemberId> before = std::exchange(placed_, {});
    for (const wire::MemberInfo& info : start.members()) placed_.insert(info.member());
    if (planned_.count(entry.generation) == 0) return;
    for (const MemberId id : before)
      if (placed_.count(id) == 0) left_out_.insert(id);
  }

  World& world_;
  const SharedLedger ledger_;
  std::set<Generation> planned_;
  std::set<MemberId> placed_;                // in the newest started generation
  std::set<MemberId> left_out_;              // by planned changes
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
