// I3, I4, I7, seen from outside.
#include <algorithm>
#include <map>
#include <string>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::GenerationEntry;
using coordinator::GenerationState;

class GenerationCheck final : public Check {
 public:
  explicit GenerationCheck(World& world) : world_(world) {}

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      if (const auto* e = std::get_if<coordinator::TermEntry>(&entry)) {
        if (e->term <= term_) fail("I3", "term " + std::to_string(e->term) + " is given out twice");
        term_ = e->term;
      }
      if (const auto* e = std::get_if<coordinator::MemberEntry>(&entry)) {
        if (e->member <= member_)
          fail("I3", "member id " + std::to_string(e->member) + " is given out twice");
        member_ = e->member;
      }
      if (const auto* e = std::get_if<GenerationEntry>(&entry)) on_generation(*e);
    }
    size_t started = 0;
    for (const auto& [generation, state] : states_) started += state == GenerationState::kStarted;
    if (started > 1) fail("I7", std::to_string(started) + " generations are started");
  }

  // Nothing of an older generation takes effect in this process from now on.
  void on_message(const std::string& from, const std::string&,
                  const wire::Envelope& message) override {
    if (!message.has_promise()) return;
    Generation& promised = promised_[from];
    promised = std::max(promised, message.promise().generation());
  }

  void on_applied(const Applied& applied) override {
    if (promised_[applied.process] > applied.generation)
      fail("I4", applied.process + " applied step " + std::to_string(applied.step) +
                     " in generation " + std::to_string(applied.generation) +
                     " after it had promised that it would not");
  }

 private:
  void on_generation(const GenerationEntry& entry) {
    const auto known = states_.find(entry.generation);
    if (known == states_.end()) {
      if (!states_.empty() && entry.generation <= states_.rbegin()->first)
        fail("I3", "generation " + std::to_string(entry.generation) + " is given out twice");
      states_[entry.generation] = entry.state;
      return;
    }
    const bool was_over =
        known->second == GenerationState::kClosed || known->second == GenerationState::kAbandoned;
    if (was_over && entry.state != known->second)
      fail("I3", "generation " + std::to_string(entry.generation) + " comes back");
    known->second = entry.state;
  }

  void fail(const char* invariant, const std::string& text) { world_.fail(invariant, text); }

  World& world_;
  Term term_ = 0;
  MemberId member_ = 0;
  std::map<Generation, GenerationState> states_;
  std::map<std::string, Generation> promised_;
};

}  // namespace

std::unique_ptr<Check> make_generation_check(World& world) {
  return std::make_unique<GenerationCheck>(world);
}

}  // namespace lockstep::sim
