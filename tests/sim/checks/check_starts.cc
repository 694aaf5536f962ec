// Prepare, promise, start, as they pass on the wire: a generation starts only when every member has
// answered, and never at an earlier step than one of them answered.
#include <map>
#include <set>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

class StartCheck final : public Check {
 public:
  StartCheck(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  void on_message(const std::string& from, const std::string& to,
                  const wire::Envelope& message) override {
    if (message.has_promise()) on_promise_sent(from, message.promise());
    if (message.has_planned()) planned_.insert(message.generation());
    if (message.has_start()) on_start(to, message.generation(), message.start());
  }

 private:
  void on_promise_sent(const std::string& from, const wire::Promise& promise) {
    const SimWorker* worker = cluster_.worker_named(from);
    if (worker == nullptr) return;
    answers_[promise.generation()].insert(worker->member());
    if (promise.has_state()) applied_[{promise.generation(), from}] = promise.applied().step();
  }

  void on_start(const std::string& to, Generation generation, const wire::Start& start) {
    if (planned_.count(generation) != 0) return;
    const std::set<MemberId>& answered = answers_[generation];
    for (const wire::MemberInfo& info : start.members())
      if (answered.count(info.member()) == 0)
        world_.fail("start", "generation " + std::to_string(generation) +
                                 " is started before member " + std::to_string(info.member()) +
                                 " has answered");
    const auto applied = applied_.find({generation, to});
    const bool is_from_members = start.source().members_size() > 0;
    if (is_from_members && applied != applied_.end() && applied->second > start.resume().step())
      world_.fail("start", to + " answered that it has applied " + std::to_string(applied->second) +
                               " steps, generation " + std::to_string(generation) +
                               " resumes at step " + std::to_string(start.resume().step()));
  }

  World& world_;
  Cluster& cluster_;
  std::map<Generation, std::set<MemberId>> answers_;
  std::map<std::pair<Generation, std::string>, Step> applied_;
  std::set<Generation> planned_;
};

}  // namespace

std::unique_ptr<Check> make_start_check(World& world, Cluster& cluster) {
  return std::make_unique<StartCheck>(world, cluster);
}

}  // namespace lockstep::sim
