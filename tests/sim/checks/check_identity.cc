// The identity of a run: whole in one commit, never changed, and before the first generation if the
// workers had to tell it. Every worker that trains has told the same identity.
#include <map>
#include <string>

#include "coordinator/state/identity.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::GenerationEntry;
using coordinator::IdentityEntry;

class IdentityCheck final : public Check {
 public:
  IdentityCheck(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  void on_commit(const Disk::Entries& entries) override {
    const bool was_known = !identity_.empty();
    for (const coordinator::JournalEntry& entry : entries) {
      if (const auto* e = std::get_if<IdentityEntry>(&entry)) {
        if (was_known) world_.fail("G1", e->key + " is journalled again");
        identity_[e->key] = e->value;
      }
      if (std::holds_alternative<GenerationEntry>(entry) && world_.options.is_script && !was_known)
        world_.fail("G2", "a generation is prepared before it is known what the run is");
    }
    if (!was_known && !identity_.empty()) check_whole();
  }

  void on_installed(const Installed& installed) override {
    const SimWorker* worker = cluster_.worker_named(installed.process);
    if (worker == nullptr) return;
    wire::Register said;
    world_.tell(worker->place(), &said);
    if (is_other(coordinator::kSamplesKey, std::to_string(said.facts().train_samples())))
      world_.fail("G1", installed.process + " trains with other data than the run's");
    for (const IdentityEntry& entry : coordinator::script_identity(said))
      if (is_other(entry.key, entry.value))
        world_.fail("G1", installed.process + " trains with another " + entry.key);
  }

 private:
  bool is_other(const std::string& key, const std::string& value) const {
    const auto known = identity_.find(key);
    return known == identity_.end() || known->second != value;
  }

  void check_whole() const {
    if (!world_.options.is_script) return;
    for (const char* key :
         {coordinator::kSamplesKey, coordinator::kFingerprintKey, coordinator::kEvalSamplesKey,
          coordinator::kGlobalBatchKey, "script.model", "script.optimizer.lr"})
      if (identity_.count(key) == 0)
        world_.fail("G1", std::string("the identity was journalled without ") + key);
  }

  World& world_;
  Cluster& cluster_;
  std::map<std::string, std::string> identity_;
};

}  // namespace

std::unique_ptr<Check> make_identity_check(World& world, Cluster& cluster) {
  return std::make_unique<IdentityCheck>(world, cluster);
}

}  // namespace lockstep::sim
