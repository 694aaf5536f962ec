// The script's code between two epochs, as the coordinator knows of it: where a start goes on, what
// ends a run, and how long a member may be in that code.
#include "comm/run/evaluation/edge.h"
#include "comm/wire/resume_point.h"
#include "coordinator/state/evaluations.h"
#include "coordinator/state/identity.h"
#include "tests/unit/coordinator/decide/recovery.h"

namespace lockstep::coordinator {
namespace {

constexpr Step kEpoch = 25;

Options with_edges(uint32_t workers = 2, uint64_t max_steps = 100) {
  Options options = small_options(workers, max_steps);
  options.has_edges = true;
  return options;
}

// Three workers at the end of an epoch; the third one is dead, and `first` and `second` are where
// the others stand.
Phase start_of(bool is_evaluated, Phase first, Phase second) {
  World w(with_edges(3));
  w.train();
  for (ConnectionId c : {1, 2, 3}) w.report(c, 1, 0, kEpoch);
  if (is_evaluated) {
    EXPECT_EQ(w.say(1, eval_after(kEpoch, 2)), Reason::kRecordsAccepted);
  }
  w.kill(3);
  EXPECT_EQ(w.say(1, promise_after(kEpoch, first)), Reason::kPromised);
  EXPECT_EQ(w.say(2, promise_after(kEpoch, second)), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), kEpoch);
  EXPECT_EQ(w.started().source().members_size(), 2) << "nobody fetches a state for an edge";
  return from_wire(w.started().resume()).phase;
}

TEST(Edges, AStartGoesOnFromTheMemberThatIsBehind) {
  EXPECT_EQ(start_of(true, Phase::kTrain, Phase::kEdge), Phase::kEdge);
  EXPECT_EQ(start_of(true, Phase::kEdge, Phase::kTrain), Phase::kEdge);
  EXPECT_EQ(start_of(true, Phase::kEval, Phase::kEdge), Phase::kEdge);
  EXPECT_EQ(start_of(true, Phase::kTrain, Phase::kTrain), Phase::kTrain);
  EXPECT_EQ(start_of(false, Phase::kEval, Phase::kEval), Phase::kEval);
}

TEST(Edges, AResumeRunsThatOfACheckpointOfTheStateBeforeIt) {
  const Options o = with_edges(2, 60);
  EvalEntry known;
  known.step = kEpoch;
  const EvalEntries evals = {{kEpoch, known}};
  EXPECT_EQ(phase_after(kEpoch - 1, evals, o), Phase::kTrain);
  EXPECT_EQ(phase_after(kEpoch, {}, o), Phase::kEval);
  EXPECT_EQ(phase_after(kEpoch, evals, o), Phase::kEdge);
  EXPECT_EQ(phase_after(kEpoch, evals, o, {}, /*is_after_edge=*/true), Phase::kTrain);
  EXPECT_EQ(phase_after(60, {{60, known}}, o), Phase::kEdge);
  EXPECT_EQ(phase_after(60, {{60, known}}, o, {}, /*is_after_edge=*/true), Phase::kEnd);
  // Never an evaluation of the state after it.
  EXPECT_EQ(phase_after(kEpoch, {}, o, {}, /*is_after_edge=*/true), Phase::kTrain);
}

TEST(Edges, TheEndNeedsACheckpointOfTheStateAfterTheLast) {
  for (const bool is_after : {false, true}) {
    World w(with_edges(2, 4));
    w.train();
    for (ConnectionId c : {1, 2}) w.report(c, 1, 0, 4);
    EXPECT_EQ(w.say(2, eval_after(4, 2)), Reason::kRecordsAccepted);
    wire::Envelope e;
    e.set_generation(1);
    wire::CheckpointReport& report = *e.mutable_checkpoint();
    report.set_step(4);
    report.set_name(checkpoint_name({4, 1, w.state.writer, is_after}));
    report.set_manifest_sha256("m");
    report.set_weights_sha256("w");
    report.set_final(true);
    EXPECT_EQ(w.say(1, e), Reason::kCheckpointWritten);
    EXPECT_EQ(w.happen(ManifestRead{report.name(), "m", ""}), Reason::kCheckpointAccepted);
    EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 4), Reason::kLeft);
    EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4),
              is_after ? Reason::kEndedFinished : Reason::kEndedNoCheckpoint);
  }
}

void beat(World& w, ConnectionId c, Generation generation, Phase phase) {
  wire::Envelope e;
  e.set_generation(generation);
  e.mutable_heartbeat()->set_step(kEpoch);
  e.mutable_heartbeat()->set_phase(static_cast<uint32_t>(phase));
  EXPECT_EQ(w.say(c, e), Reason::kHeard);
}

TEST(Edges, AMemberThatIsInOneMayOweItsAnswerForLongerThanALease) {
  for (const Phase phase : {Phase::kEdge, Phase::kTrain}) {
    Options options = with_edges(3);
    options.hang_ms = 10'000;
    World w(options);
    w.train();
    for (ConnectionId c : {1, 2, 3}) w.report(c, 1, 0, kEpoch);
    EXPECT_EQ(w.say(1, eval_after(kEpoch, 2)), Reason::kRecordsAccepted);
    beat(w, 2, 1, phase);
    w.kill(3);
    EXPECT_EQ(w.say(1, promise_after(kEpoch, Phase::kTrain)), Reason::kPromised);
    Reason reason = Reason::kNothingDue;
    int64_t waited_ms = 0;
    while (reason == Reason::kNothingDue && waited_ms < 100'000) {
      beat(w, 1, 1, Phase::kTrain);
      beat(w, 2, 1, phase);
      reason = w.wait(500);
      waited_ms += 500;
    }
    EXPECT_EQ(reason, Reason::kEvictedUnpromised);
    EXPECT_EQ(waited_ms > 4 * options.hang_ms, phase == Phase::kEdge) << waited_ms;
  }
}

TEST(Edges, AreAFactThatOnlyAScriptWithThemSays) {
  wire::Register said;
  EXPECT_FALSE(has_edges(script_identity(said)));
  EXPECT_FALSE(lockstep::has_edges(said.identity()));
  wire::IdentityFact& fact = *said.add_identity();
  fact.set_key(kLoopFact);
  fact.set_value(kLoopOverEpochs);
  EXPECT_TRUE(has_edges(script_identity(said)));
  EXPECT_TRUE(lockstep::has_edges(said.identity()));
}

}  // namespace
}  // namespace lockstep::coordinator
