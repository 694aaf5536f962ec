#include "tests/sim/bug_hunt.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <vector>

#include "tests/sim/bugs.h"
#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t kMostSeeds = 600;

// The faults under which a bug shows.
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
      return {FaultKind::kOneAhead};
    case Bug::kTornTransferInstalled:
      return {FaultKind::kOneAhead, FaultKind::kOneAhead};
    case Bug::kPlanForgottenAtTakeOver:
      return {FaultKind::kChange, {FaultKind::kMoment, Moment::kPlanned, Strike::kKillCoordinator}};
    case Bug::kNoBarrierAtSwitch:
      return {FaultKind::kChange,
              FaultKind::kChange,
              {FaultKind::kMoment, Moment::kReading, Strike::kStall},
              {FaultKind::kMoment, Moment::kReading, Strike::kStall}};
    case Bug::kNewIdentityKeepsState:
      return {FaultKind::kStopProcess, FaultKind::kStopProcess};
    case Bug::kExperienceLost:
      return {FaultKind::kOneWay};
    case Bug::kUndoIgnored:
      return {FaultKind::kUnfitGpu};
    case Bug::kNoticeNotRepeated:
      return {FaultKind::kUnfitGpu, FaultKind::kCrashCoordinator};
    case Bug::kClosedGateLetsIn:
    case Bug::kPromiseBeforeClosed:
    case Bug::kAnswerOutsideGate:
      return {{FaultKind::kMoment, Moment::kApplying, Strike::kStall},
              {FaultKind::kMoment, Moment::kApplying, Strike::kKillOther}};
    default:
      return {FaultKind::kCrashWorker, FaultKind::kMoment};
  }
}

// The scenario that shows a bug with every seed. Null: random faults show it.
const Scenario* scene(Bug bug) {
  switch (bug) {
    case Bug::kSlotForgotten:
    case Bug::kSwitchBeforeAllHaveHeard:
      return scenario_named("one-is-slow");
    case Bug::kBatchLostOnReconnect:
      return scenario_named("restarted-twice-in-a-transfer");
    case Bug::kLeastNamedGoes:
      return scenario_named("nobody-hears-one");
    case Bug::kNumbersOfOldIdentity:
    case Bug::kExpelledGoesOn:
    case Bug::kDamageNotCut:
      return scenario_named("one-of-three-holds-other-weights");
    case Bug::kKilledAtOnce:
      return scenario_named("wakes-up-in-time");
    case Bug::kEndForgotten:
      return scenario_named("dies-with-the-end");
    case Bug::kDroppedCounts:
      return scenario_named("all-die-among-dropped-checkpoints");
    case Bug::kBestUntilRollbackDropped:
      return scenario_named("goes-back-across-the-best");
    case Bug::kWayToBestDropped:
      return scenario_named("writer-dies-as-it-keeps-the-best");
    case Bug::kUnjudgedDropped:
      return scenario_named("checkpoints-overtake-an-absurd-loss");
    case Bug::kTrackOfJoinerFromStart:
      return scenario_named("others-join-with-patience");
    case Bug::kEvalReportedByOne:
      return scenario_named("writer-dies-after-an-evaluation");
    case Bug::kOrderForgotten:
      return scenario_named("dies-after-a-drain");
    case Bug::kEdgeRunAgain:
      return scenario_named("one-has-not-crossed-an-edge");
    case Bug::kEdgeBeforeItsEvaluation:
      return scenario_named("coordinator-is-away-at-an-edge");
    case Bug::kOpenNotCompared:
      return scenario_named("one-reads-other-data-than-the-first");
    case Bug::kOpenTermTrains:
    case Bug::kOpenAfterTheCommit:
      return scenario_named("dies-with-the-facts");
    case Bug::kSkipOfOneTurn:
    case Bug::kEvaluatedWithinBatch:
      return scenario_named("deadly-sample-of-a-batch-in-turns");
    case Bug::kScriptEndNotKept:
      return scenario_named("all-die-after-the-script-ends");
    case Bug::kScriptEndNotRepeated:
      return scenario_named("coordinator-dies-as-the-script-ends");
    case Bug::kSkipNotTold:
    case Bug::kSkippedCountExpected:
    case Bug::kSkippedSlotCounted:
      return scenario_named("deadly-sample-is-skipped");
    default:
      return nullptr;
  }
}

Outcome try_seed(Bug bug, uint64_t seed) {
  const Scenario* scenario = scene(bug);
  return scenario == nullptr ? simulate(plan_with(seed, aim(bug))) : play(*scenario, seed);
}

// Runs in a process of its own, because an assertion of the code itself finds a bug too. Returns
// what it found, empty if nothing.
std::string symptom(Bug planted, Bug aimed_at, uint64_t seed) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return {};
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    plant(planted);
    ::dup2(pipe[1], STDERR_FILENO);  // the words of an assertion
    const Outcome outcome = try_seed(aimed_at, seed);
    if (outcome.failures.empty()) ::_exit(0);
    const Failure& failure = outcome.failures.front();
    (void)::dprintf(pipe[1], "%s: %s", failure.check.c_str(), failure.text.c_str());
    ::_exit(1);
  }
  ::close(pipe[1]);
  std::string text;
  std::array<char, 256> buffer{};
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? std::string() : text.substr(0, text.find('\n'));
}

// The seed that finds the bug; 0: none does. A seed that fails without the bug too proves nothing.
uint64_t hunt(Bug bug) {
  for (uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    const std::string found = symptom(bug, bug, seed);
    if (found.empty() || !symptom(Bug::kNone, bug, seed).empty()) continue;
    std::printf("%-28s found by seed %llu: %s\n", bug_name(bug),
                static_cast<unsigned long long>(seed), found.c_str());
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
