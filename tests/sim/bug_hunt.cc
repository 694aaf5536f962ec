#include "tests/sim/bug_hunt.h"

#include <cstdio>
#include <vector>

#include "tests/sim/bugs.h"
#include "tests/sim/simulation.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t kMostSeeds = 300;

// Where a bug shows.
std::vector<FaultSpec> aim(Bug bug) {
  switch (bug) {
    case Bug::kAckBeforeCommit:
    case Bug::kHistoryBeforeCommit:
    case Bug::kBatchNotKept:
    case Bug::kTermNotCounted:
      return {FaultKind::kCrashCoordinator};
    case Bug::kResumeAfterSmallest:
    case Bug::kPendingKeptOverRedo:
    case Bug::kHoleNotSeen:
    case Bug::kTornTransferInstalled:
      return {FaultKind::kOneAhead};
    case Bug::kPlanForgottenAtTakeOver:
      return {FaultKind::kChange,
              {FaultKind::kMoment, Moment::kPlanned, Strike::kKillCoordinator}};
    case Bug::kSwitchBeforeAllHaveHeard:
      return {FaultKind::kChange, FaultKind::kChange};
    case Bug::kNoBarrierAtSwitch:
      return {FaultKind::kChange, {FaultKind::kMoment, Moment::kReading, Strike::kStall}};
    case Bug::kSilenceBeforeGrace:
    case Bug::kBatchLostOnReconnect:
      return {FaultKind::kNetwork, FaultKind::kCrashCoordinator};
    case Bug::kNumbersOfOldIdentity:
    case Bug::kNewIdentityKeepsState:
      return {FaultKind::kStopProcess, FaultKind::kStopProcess};
    case Bug::kClosedGateLetsIn:
    case Bug::kPromiseBeforeClosed:
    case Bug::kAnswerOutsideGate:
      return {FaultKind::kCrashWorker,
              {FaultKind::kMoment, Moment::kApplying, Strike::kStall}};
    default:
      return {FaultKind::kCrashWorker, FaultKind::kMoment};
  }
}

// The seed that finds it; 0: none does.
uint64_t hunt(Bug bug) {
  for (uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    const Plan plan = plan_with(seed, aim(bug));
    const Outcome outcome = simulate(plan);
    if (outcome.failures.empty()) continue;
    plant(Bug::kNone);
    const bool is_its_doing = simulate(plan).failures.empty();
    plant(bug);
    if (!is_its_doing) continue;
    std::printf("%-28s found by seed %llu: %s: %s\n", bug_name(bug),
                static_cast<unsigned long long>(seed), outcome.failures.front().check.c_str(),
                outcome.failures.front().text.c_str());
    return seed;
  }
  std::printf("%-28s NOT FOUND by %llu seeds\n", bug_name(bug),
              static_cast<unsigned long long>(kMostSeeds));
  return 0;
}

}  // namespace

int hunt_all() {
  int missed = 0;
  for (uint8_t number = 1; number < static_cast<uint8_t>(Bug::kCount); ++number) {
    plant(static_cast<Bug>(number));
    if (hunt(static_cast<Bug>(number)) == 0) ++missed;
    std::fflush(stdout);
  }
  std::printf("%d planted bugs, %d missed\n", static_cast<int>(Bug::kCount) - 1, missed);
  return missed == 0 ? 0 : 1;
}

bool plant_by_name(const std::string& name) {
  for (uint8_t number = 1; number < static_cast<uint8_t>(Bug::kCount); ++number) {
    if (name != bug_name(static_cast<Bug>(number))) continue;
    plant(static_cast<Bug>(number));
    return true;
  }
  return false;
}

}  // namespace lockstep::sim
