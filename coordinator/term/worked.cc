#include "coordinator/term/worked.h"

#include <algorithm>
#include <set>

namespace lockstep::coordinator {
namespace {

// The members that held the state of the step after which `next` began. None, where the journal
// does not say.
Result<std::set<MemberId>> holders_at(Journal& journal, const LivingGeneration& living,
                                      Generation next) {
  wire::Start start = living.start;
  if (next != living.generation) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, journal.start_of(next));
    if (!start.ParseFromString(bytes)) start.Clear();
  }
  const auto& members = start.source().members();
  return std::set<MemberId>(members.begin(), members.end());
}

}  // namespace

Status add_worked(Journal& journal, const JournalContents& contents, LivingGeneration* living) {
  for (size_t i = 0; i < living->closed.size(); ++i) {
    const LedgerRow& row = living->closed[i];
    const bool is_last = i + 1 == living->closed.size();
    const Generation next = is_last ? living->generation : living->closed[i + 1].generation;
    LOCKSTEP_ASSIGN_OR_RETURN(const auto holders, holders_at(journal, *living, next));
    const auto entry = std::find_if(contents.generations.begin(), contents.generations.end(),
                                    [&](const auto& e) { return e.generation == row.generation; });
    if (entry == contents.generations.end()) continue;
    for (MemberId member : entry->members) {
      // Two members are at most one step apart.
      const Step end = row.last->step + (holders.contains(member) ? 1 : 0);
      if (row.first.step + 1 < end)
        living->worked[member].push_back({row.generation, row.first.step, end - 1});
    }
  }
  return Status::ok();
}

}  // namespace lockstep::coordinator
