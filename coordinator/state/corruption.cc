#include "coordinator/state/corruption.h"

#include <algorithm>

#include "comm/base/planted_bug.h"

namespace lockstep::coordinator {
namespace {

// The lineage was cut since, or went on by policy. A later generation may find who was wrong in an
// earlier attempt. This entry needs no cut: the later generation was only reached through one.
bool is_settled(const JournalContents& contents, const CheckEntry& difference) {
  return difference.rolled_back || difference.goes_on ||
         std::any_of(contents.checks.begin(), contents.checks.end(), [&](const CheckEntry& check) {
           return check.agreed && !check.rolled_back && check.step >= difference.step &&
                  check.generation > difference.generation;
         });
}

}  // namespace

bool is_checking(const Options& options) {
  return options.job.train().check_every() > 0;
}

bool compares_work(const Options& options) {
  return is_checking(options) && options.exact();
}

CheckHistory check_history(const JournalContents& contents) {
  CheckHistory history;
  history.witnesses = contents.witnesses;
  for (const CheckEntry& check : contents.checks) {
    if (check.agreed) {
      if (!check.rolled_back) history.agreed = std::max(history.agreed, check.step);
      continue;
    }
    history.is_open = history.is_open || !is_settled(contents, check);
    if (check.goes_on && !check.rolled_back) {
      history.tainted = std::min(history.tainted.value_or(check.step), check.step);
    }
    if (check.node.empty()) {
      history.unexplained.insert(check.step);
    } else {
      history.expelled.insert(place_of(check));
    }
  }
  return history;
}

std::optional<Step> newest_trusted(const JournalContents& contents) {
  const CheckHistory history = check_history(contents);
  const bool is_cut_due = history.is_open && !LOCKSTEP_BUG(kDamageNotCut);
  return is_cut_due ? std::optional<Step>(history.agreed) : std::nullopt;
}

bool wrote_wrong(const JournalContents& contents, MemberId member, Step step) {
  const auto writer = std::find_if(contents.members.begin(), contents.members.end(),
                                   [member](const MemberEntry& m) { return m.member == member; });
  if (writer == contents.members.end()) return false;
  return std::any_of(contents.checks.begin(), contents.checks.end(), [&](const CheckEntry& check) {
    return check.goes_on && place_of(check) == place_of(*writer) && step >= check.step;
  });
}

}  // namespace lockstep::coordinator
