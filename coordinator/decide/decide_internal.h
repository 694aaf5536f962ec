// What the parts of decide() share. Not for others.
//
// A Turn holds the state being changed and collects actions; every on_* returns the reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/base/counted.h"
#include "comm/wire/in_hand.h"
#include "comm/wire/resume_point.h"
#include "coordinator/state/action.h"
#include "coordinator/state/event.h"
#include "coordinator/state/options.h"
#include "coordinator/state/reason.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// To a worker: its agent is to start another one in its place.
inline constexpr int kRunMeAgain = 75;

struct Turn {
  int64_t now_ms;
  State& state;
  const Options& options;
  std::vector<Action>& actions;

  void persist(JournalEntry entry) { actions.push_back(Persist{std::move(entry)}); }
  void log(LogLine::Level level, std::string event, std::string message) {
    actions.push_back(LogLine{level, std::move(event), std::move(message)});
  }
  // Fills term and the present generation in; does nothing for connection 0.
  void send(ConnectionId to, wire::Envelope envelope);
  void send_as(ConnectionId to, Generation generation, wire::Envelope envelope);
  // The same to several.
  void send_to(const std::vector<ConnectionId>& to, Generation generation, wire::Envelope envelope);
  // Journals and logs something that went wrong or ended.
  void note(LogLine::Level level, const std::string& kind, const std::string& text);

  Member* member_of(ConnectionId connection);
  Member* find(MemberId id);
  Member& at(MemberId id) { return state.members.at(id); }
  uint32_t wanted() const {
    return state.wanted_workers != 0 ? state.wanted_workers : options.workers;
  }
};

// ---- members.cc: questions about members
bool is_open(RunState run);                                // prepared or started
bool is_listed(const State& state, const Member& member);  // in the present generation
bool is_source(const State& state, const Member& member);  // in the last started one
bool is_alive(const Member& member);                       // not dead, not sent away
// Its place was found to compute wrong (corruption.h).
bool is_expelled(const State& state, const Member& member);
bool may_join(const Turn& turn, const Member& member);  // now
bool contains(const std::vector<MemberId>& members, MemberId id);
// An exit code that a process chose to say what is wrong; anything else is an accident.
bool is_verdict(int exit_code);
// The state after `step` applied steps of `generation` is one that the surviving lineage has.
bool is_in_lineage(const State& state, Generation generation, Step step);
// Its process is nobody's any more; a later one may have got the same pid.
void forget_process(State& state, const Member& member);
bool can_be_suspected(const State& state, const Member& member);  // meets the others in a step
bool has_agent(const State& state, const std::string& node);
// By node, with numbers in names compared as numbers, local rank, id: ranks of one node lie
// together, and the same machine gets the same ranks again after a restart.
void sort_naturally(const State& state, std::vector<MemberId>& members);
// "worker of rank 1 (member 2, node n, pid 42)"
std::string describe(const State& state, const Member& member);
std::string describe(const State& state, const std::vector<MemberId>& members);
bool is_valid(const wire::ResumePoint& point, const Options& options);
// The member's connection is no longer its; it is closed after what was sent has left.
void detach(Turn& turn, Member& member);

// ---- decide_register.cc, decide_agent.cc, decide_command.cc
Reason on_register(Turn& turn, ConnectionId connection, const wire::Register& message);
Reason on_agent_hello(Turn& turn, ConnectionId connection, const wire::AgentHello& message);
Reason on_worker_exit(Turn& turn, Agent& agent, const wire::WorkerExit& message);
Reason on_closed(Turn& turn, const ConnectionClosed& event);
Reason on_command(Turn& turn, ConnectionId connection, const wire::Command& message);
// `farewell`: kRunMeAgain if its process was told to go, 0 if its place is not wanted any more.
Reason on_drain(Turn& turn, Member& member, const std::string& why, int farewell);
void send_set_workers(Turn& turn);
// The member is gone from here on; its connection, if it has one, hears so with Member.farewell,
// and so does a later one.
void bid_farewell(Turn& turn, Member& member, const std::string& why);

// ---- from a member, term fence passed
Reason on_heartbeat(Turn& turn, Member& member, Generation generation,
                    const wire::Heartbeat& message);
Reason on_promise(Turn& turn, Member& member, const wire::Promise& message);
Reason on_records(Turn& turn, Member& member, Generation generation,
                  const wire::StepRecords& message);
Reason on_eval(Turn& turn, Member& member, Generation generation, const wire::EvalReport& message);
Reason on_checkpoint(Turn& turn, Member& member, Generation generation,
                     const wire::CheckpointReport& message);
Reason on_leave(Turn& turn, Member& member, const wire::Leave& message);
Reason on_suspect(Turn& turn, Member& member, const wire::PeerSuspect& message);
Reason on_switched(Turn& turn, Member& member, Generation generation,
                   const wire::SwitchReport& message);
Reason on_tick(Turn& turn);
Reason on_stop(Turn& turn, const std::string& why);
void push_stop(Turn& turn, const Member& member);
// Completes what has enough reports now.
void complete_steps(Turn& turn);
// A report of a step that its row covers; the state only.
void count_report(State& state, MemberId member, Generation generation,
                  const wire::StepRecord& record);

// ---- auto_batch.cc
// All of generation 1 are here, and have measured: ends the term that knows no global batch.
Reason resolve_global_batch(Turn& turn, const std::vector<MemberId>& members);

// ---- gather.cc
// A term that goes on from something may start with fewer workers than are wanted.
bool is_first_start(const Turn& turn);
// Prepares the first generation if those who wait are enough.
Reason gather(Turn& turn, Reason otherwise);
std::optional<Reason> judge_gathering(Turn& turn);

// ---- judge.cc
std::optional<Reason> judge_members(Turn& turn);
std::optional<Reason> judge_suspicion(Turn& turn);
// Who has not promised is out.
Reason evict_unpromised(Turn& turn);
// The generation broke and nobody can be blamed: once the same members try again.
Reason try_again(Turn& turn, const std::string& what);

// ---- left_over.cc
// The agent has come: which of its node's dead are still processes is known from it.
void note_living(Turn& turn, Agent& agent);
// Has those killed who are there for nothing. At a tick.
void kill_left_over(Turn& turn);

// ---- pace.cc
// One step of a member, as its record says.
void note_pace(Turn& turn, const Member& member, Generation generation,
               const wire::StepRecord& record);
// Judges the window if it is whole. At a tick; a change that follows is planned like any other.
void judge_pace(Turn& turn);
// What a slot costs each of `ranks`, for assign_slots(); who is not known is like the others.
std::vector<uint32_t> slot_costs(const Turn& turn, const std::vector<MemberId>& ranks);
bool is_rebalance_due(const State& state);
// Who works in its place is slow for long.
bool is_slow(const State& state, const Member& member);
// A coordinator that takes over knows from the slots how fast the members were.
void recall_costs(State& state);

// ---- hang.cc
void begin_progress(State& state, int64_t now_ms);  // a generation begins, or is taken over
void note_progress(Turn& turn, Member& member, const Progress& at);
// Puts out who is behind when nobody has got further for too long.
std::optional<Reason> judge_hang(Turn& turn);

// ---- regroup.cc
// The member is dead from here on. after_deaths() must follow in the same turn.
void declare_dead(Turn& turn, Member& member);
// What follows, told with `what` ("worker … was killed …"). `code`: of the process, if it is a
// verdict on the run, else 70.
Reason after_deaths(Turn& turn, const std::vector<MemberId>& dead, const std::string& what,
                    int code);
// The next generation of those who are here, because of `why`.
Reason regroup(Turn& turn, const std::string& why, int code);
// Nobody holds the state any more.
Reason total_loss(Turn& turn, const std::string& why, int code);

// ---- generation.cc
void set_generation_state(Turn& turn, Generation generation, GenerationState to,
                          const wire::Start* start = nullptr);
void prepare_generation(Turn& turn, std::vector<MemberId> members, const std::string& why);
// REQUIRES: all members of the prepared generation have promised.
Reason start_generation(Turn& turn);
// Gives ranks and slots to the members of a started generation and lists them in `start`.
void place_members(const Turn& turn, const std::vector<MemberId>& ranks, wire::Start* start);
void take_places(Turn& turn, Generation generation);
// The row that ends at `at` and the next one, which begins there.
void turn_page(Turn& turn, Generation next, const ResumePoint& at, const std::string& reason);
// Pushes to one member again what the present is. Idempotent for it.
void push_present(Turn& turn, const Member& member);

// ---- resume_point.cc
// The largest answer that lies in the lineage; nothing if nobody holds the state.
std::optional<ResumePoint> best_answer(const Turn& turn);
bool holds(const Turn& turn, const Member& member, const ResumePoint& point);
// Empty if every step before `resume` is reported or can still be; else which is not, and why.
std::string unprovable_step(const Turn& turn, Step resume);
// The survivors are behind what was started: the rows are cut in place. False: that would change a
// step whose numbers are in the history.
bool roll_back_in_place(Turn& turn, const ResumePoint& to);

// The lineage goes on from `to`; what came after it is of no generation any more.
void cut_lineage(Turn& turn, const ResumePoint& to, const std::string& checkpoint,
                 const std::string& why);

// ---- skip_slots.cc
void fill_skips(const State& state, wire::Start* start);
// Whether the run leaves bad samples out instead of ending; at most limits::kSkips times.
bool may_skip(const Turn& turn);
void skip_slots(Turn& turn, SkipEntry entry);
std::string what_to_do_about_samples(const Turn& turn);  // of a run that has ended for them
// "positions [36, 40) of epoch 1"; epochs are counted from 1, as the audit does.
std::string positions_of(const Turn& turn, Step step, const SlotRun& slots);

// ---- poison.cc
// A process has ended while it had these in hand. It may be told again, also to a later term.
void note_casualty(Turn& turn, Casualty casualty);
// Whether the samples of a slot have killed two who had it in hand, in a step from `next` on.
bool is_poisoned(const Turn& turn, Step next);
// Leaves such samples out, or ends the run.
std::optional<Reason> judge_poison(Turn& turn, Step next);

// ---- bad_loss.cc
// If a step was found to have a loss that is no number, or a spike: the term ends, to go on without
// that step, or the run.
std::optional<Reason> judge_bad_loss(Turn& turn);

// ---- judge_checks.cc
Reason on_check(Turn& turn, Member& member, Generation generation,
                const wire::CheckReport& message);
// Judges the checks to which nobody has to add anything any more.
std::optional<Reason> judge_checks(Turn& turn);

// ---- planned.cc
// Plans the change that is due, if one is and nothing speaks against it now.
void plan_change(Turn& turn);
void push_planned(Turn& turn, const Member& member);
// The members of the planned generation have switched at `since`. kSwitched, or an end.
Reason adopt_switch(Turn& turn, const ResumePoint& since);
// It is known that the member lives in the generation.
void note_lived(Turn& turn, Member& member, Generation generation);
Reason on_drained(Turn& turn, Member& member, const wire::Leave& message);
// Sends away who was left out. `all`: whether they have said that they are ready or not.
void release_leavers(Turn& turn, bool all);

// ---- decide_checkpoint.cc
// The newest of the lineage of at most so many steps; null: there is none.
const CheckpointEntry* newest_until(const State& state, Step step);
// The next term takes none of more steps, and nobody is to be told that they remain.
void forget_checkpoints_after(State& state, Step step);

// ---- finish.cc
// Closes what is open in the journal, sends everybody a Goodbye and ends the run.
void end_run(Turn& turn, int code, const std::string& message);
// The next term begins from the newest checkpoint.
Reason end_term(Turn& turn, const std::string& message,
                LogLine::Level level = LogLine::Level::kWarn);
Reason corrupt(Turn& turn, const std::string& what);
// A checkpoint of that step is in the journal and part of the lineage.
bool has_checkpoint_of(const State& state, Step step);
// Everything is done but for the farewells.
bool is_done(const Turn& turn);
// Ends the run if every member has left and the final checkpoint is in the journal.
Reason finish_if_all_left(Turn& turn, Reason otherwise);
// "…; the checkpoint step-… of step 1500 remains; to go on: lockstep run …"
std::string what_remains(const Turn& turn);
void say_goodbye(Turn& turn, ConnectionId to, int code, const std::string& message);

}  // namespace lockstep::coordinator
