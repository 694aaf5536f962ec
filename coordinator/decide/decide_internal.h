// Declarations that the parts of decide() share. Only decide/ uses them. Every on_* returns the
// reason.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/counted.h"
#include "comm/wire/in_hand.h"
#include "comm/wire/resume_point.h"
#include "coordinator/decide/turn.h"
#include "coordinator/state/event.h"
#include "coordinator/state/reason.h"

namespace lockstep::coordinator {

// The exit code of a worker whose agent should start another one in its place.
inline constexpr int kRunMeAgain = 75;

// ---- members.cc: questions about members
bool is_open(RunState run);                                // prepared or started
bool is_listed(const State& state, const Member& member);  // in the present generation
bool is_source(const State& state, const Member& member);  // in the last started one
bool is_alive(const Member& member);                       // not dead, not sent away
// A check found that its place computes wrong (corruption.h).
bool is_expelled(const State& state, const Member& member);
bool may_join(const Turn& turn, const Member& member);  // now
bool contains(const std::vector<MemberId>& members, MemberId id);
// Whether a process chose this exit code to name its error. Any other code is an accident.
bool is_verdict(int exit_code);
// The member holds what every worker reads, runs the script that all run, or says before the first
// step that it cannot begin: no other one will do better.
bool ends_the_run(const Turn& turn, const Member& member, int exit_code);
// Whether the state after `step` applied steps of `generation` is in the surviving lineage.
bool is_in_lineage(const State& state, Generation generation, Step step);
// Its process belongs to no member any more, because a later process may get the same pid.
void forget_process(State& state, const Member& member);
bool can_be_suspected(const State& state, const Member& member);  // meets the others in a step
bool has_agent(const State& state, const std::string& node);
// It was drained, or a `scale` emptied it: its agent starts no worker.
bool keeps_none(const State& state, const std::string& node);
// node2 before node10. A total order: names that differ only in leading zeros are told apart.
bool natural_less(std::string_view a, std::string_view b);
// Sorts by node (with numbers in names compared as numbers), local rank, id. So the ranks of one
// node are neighbours, and a machine gets the same ranks again after a restart.
void sort_naturally(const State& state, std::vector<MemberId>& members);
// 0, 0, ..., 1, 1, ...: by machine (comm/collectives/node_levels.h).
std::vector<uint32_t> node_of_rank(const State& state, const std::vector<MemberId>& ranks);
// "worker of rank 1 (member 2, node n, pid 42)"
std::string describe(const State& state, const Member& member);
std::string describe(const State& state, const std::vector<MemberId>& members);
// True if both (Register.process) are known, and not of one process.
bool is_other_process(uint64_t a, uint64_t b);
// The node that a machine is here; gives it a name if it is new (state/node_names.h).
std::string node_of(Turn& turn, const std::string& name, const std::string& machine);

// ---- fit.cc
// kRegistered if the newcomer fits the run and the members that are here. Else refuses it.
Reason check_fit(Turn& turn, ConnectionId connection, const wire::Register& newcomer);
std::string name_of(const wire::Register& message);  // "worker 0 on n (pid 42)"
std::vector<std::string> fingerprint_of(const wire::Register& message);
// The first worker of a script says with what code and which values the run begins.
// REQUIRES: check_fit().
void note_script(Turn& turn, const wire::Register& message);

bool is_valid(const wire::ResumePoint& point, const Options& options);
// Takes the member's connection away, and closes it after its queued messages have left.
void detach(Turn& turn, Member& member);

// ---- decide_register.cc, decide_agent.cc, decide_command.cc
Reason on_register(Turn& turn, ConnectionId connection, const wire::Register& message);
Reason on_agent_hello(Turn& turn, ConnectionId connection, const wire::AgentHello& message);
Reason on_worker_exit(Turn& turn, KnownAgent& agent, const wire::WorkerExit& message);
Reason on_closed(Turn& turn, const ConnectionClosed& event);
Reason on_command(Turn& turn, ConnectionId connection, const wire::Command& message);
// `farewell`: kRunMeAgain if its own process asks to leave (DrainRequest), 0 if the run does not
// want its place any more.
Reason on_drain(Turn& turn, Member& member, const std::string& why, int farewell);
// Too few would stay if all went that are to leave: the whole run stops at a checkpoint.
bool is_too_much(const Turn& turn);
// The node's agent is to keep so many workers, also when another coordinator takes over.
// send_set_workers() must follow.
void keep_workers(Turn& turn, const std::string& node, uint32_t workers);
void send_set_workers(Turn& turn);
// The process of member `was` comes back as this one. True if a command had told it to leave: it
// leaves now.
bool obey_old_order(Turn& turn, Member& member, MemberId was);
// A new member of a drained node, which has waited until then or was started there by hand, leaves
// at once. None if its node is not drained.
std::optional<Reason> obey_drain_of_node(Turn& turn, Member& member);
// The process of the member has ended.
void forget_order(Turn& turn, MemberId member);
// The member is gone from here on. Its connection, or a later one, gets Member.farewell.
void bid_farewell(Turn& turn, Member& member, const std::string& why);

// ---- messages of a member that have passed the term fence
Reason on_heartbeat(Turn& turn, Member& member, Generation generation,
                    const wire::Heartbeat& message);
Reason on_promise(Turn& turn, Member& member, const wire::Promise& message);
Reason on_records(Turn& turn, Member& member, Generation generation,
                  const wire::StepRecords& message);
Reason on_checkpoint(Turn& turn, Member& member, Generation generation,
                     const wire::CheckpointReport& message);
Reason on_leave(Turn& turn, Member& member, const wire::Leave& message);
Reason on_suspect(Turn& turn, Member& member, const wire::PeerSuspect& message);
Reason on_switched(Turn& turn, Member& member, Generation generation,
                   const wire::SwitchReport& message);
Reason on_tick(Turn& turn);
Reason on_stop(Turn& turn, const std::string& why);
void push_stop(Turn& turn, const Member& member);
// Completes the steps that have enough reports. A step before `resume`, where a generation that is
// about to start resumes, needs one.
void complete_steps(Turn& turn, Step resume = 0);
// Counts a report in the state. REQUIRES: the row covers its step.
void count_report(State& state, MemberId member, Generation generation,
                  const wire::StepRecord& record);

// ---- gather.cc
// Whether the run has no state yet. A term with a state may start with fewer workers than wanted.
bool is_first_start(const Turn& turn);
// Prepares the first generation if enough members wait.
Reason gather(Turn& turn, Reason otherwise);
std::optional<Reason> judge_gathering(Turn& turn);
// Asks nodes that lost all their workers to a `scale` to keep some again, as many as the run wants,
// because the other workers are gone. False if there is no such node.
bool call_others(Turn& turn);
// Places of the node where its agent starts no worker again.
size_t given_up_on(const State& state, const std::string& node);
// No process is left, and no agent that is here starts one, because a user emptied its node.
bool are_all_drained(const State& state);
// Ends the run because all nodes were drained. `after` says what happened before; it may be empty.
Reason stop_drained(Turn& turn, const std::string& after);

// ---- judge.cc
std::optional<Reason> judge_members(Turn& turn);
std::optional<Reason> judge_suspicion(Turn& turn);
// Evicts members that have not promised in time.
std::optional<Reason> judge_unpromised(Turn& turn);
// The generation broke without a culprit. The same members try again, once.
Reason try_again(Turn& turn, const std::string& what);
// Whether they have, in the step in work: another try_again() ends the term.
bool has_tried_again(const State& state);

// ---- left_over.cc
// The agent has connected: its list shows which of its node's dead are still processes.
void note_living(Turn& turn, KnownAgent& agent);
// Tells agents to kill processes of dead members. Call it at a tick.
void kill_left_over(Turn& turn);

// ---- pace.cc
// Notes one step of a member from its record.
void note_pace(Turn& turn, const Member& member, Generation generation,
               const wire::StepRecord& record);
// Judges the window if it is whole. Call it at a tick. A change that follows is planned like any
// other.
void judge_pace(Turn& turn);
// The cost of a slot for each of `ranks`, for assign_slots(). A rank without a measured cost has
// the usual one.
std::vector<uint32_t> slot_costs(const Turn& turn, const std::vector<MemberId>& ranks);
bool is_rebalance_due(const State& state);
// Whether the worker at its place has been slow for long.
bool is_slow(const State& state, const Member& member);
// After a take-over: derives from the slots how fast the members were.
void recall_costs(State& state);

// ---- hang.cc
// So long a worker that was evicted because it hung may take to say where it stands, and to go.
inline constexpr int64_t kLastWordsMs = 10'000;
// Whether a process that was evicted for a hang may still be about to say it.
bool is_about_to_tell(const State& state, const Member& member);
void begin_progress(State& state, int64_t now_ms);  // at the start of a generation or a take-over
void note_progress(Turn& turn, Member& member, const MemberProgress& at);
// Asks the member for its stack and declares it dead: it hung with `step` steps applied.
// after_deaths() must follow in the same turn.
void evict_hung(Turn& turn, Member& member, Step step, const std::string& why);
// Whether a member that owes its answer to a prepare is in the script's code between two epochs,
// and not for so long that it hangs. It answers when that is over.
bool is_busy_in_edge(const Turn& turn, const Member& member);
// Evicts the member that is behind if no member has made progress for too long.
std::optional<Reason> judge_hang(Turn& turn);
// Notes whether a heartbeat says that a debugger has stopped the worker's script.
void note_pause(Turn& turn, Member& member, bool is_paused);
// Some member of the present generation waits for a debugger.
bool is_paused(const State& state);

// ---- regroup.cc
// Declares the member dead. after_deaths() must follow in the same turn.
void declare_dead(Turn& turn, Member& member);
// A beginning has come to its end, whatever ended it: counts it if no step was completed since the
// last one. Ends the run if too many in a row completed none, over all terms of this process.
// Nothing: the run goes on.
std::optional<Reason> judge_fruitless(Turn& turn, const std::string& why);
// Decides what follows. Messages tell `what` ("worker … was killed …"). `code`: the exit code of
// the process if it is a verdict on the run, else 70.
Reason after_deaths(Turn& turn, const std::vector<MemberId>& dead, const std::string& what,
                    int code);
// Prepares the next generation of the members that are here, because of `why`.
Reason regroup(Turn& turn, const std::string& why, int code);
// Ends the term or the run, because no member holds the state any more.
Reason total_loss(Turn& turn, const std::string& why, int code);

// ---- generation.cc
void set_generation_state(Turn& turn, Generation generation, GenerationState to,
                          const wire::Start* start = nullptr);
void prepare_generation(Turn& turn, std::vector<MemberId> members, const std::string& why);
// Starts the prepared generation if all its members have promised and no word of a dead one is due.
Reason start_if_ready(Turn& turn, Reason otherwise);
// Gives ranks and slots to the members of a started generation, and lists them in `start`.
void place_members(const Turn& turn, const std::vector<MemberId>& ranks, wire::Start* start);
// The member that writes checkpoints and whatever else one member writes: the first that comes with
// the state, because it was there in the steps before and knows what is not written yet. If none
// comes with the state, the first rank. REQUIRES: members and source are listed.
MemberId writer_of(const wire::Start& start);
void take_places(Turn& turn, Generation generation);
// Journals the row that ends at `at`, and the next one, which begins there.
void turn_page(Turn& turn, Generation next, const ResumePoint& at, const std::string& reason);
// Pushes the present generation to one member again. Idempotent for the member.
void push_present(Turn& turn, const Member& member);

// ---- resume_point.cc
// The largest answer in the lineage. Nothing if no member holds the state.
std::optional<ResumePoint> best_answer(const Turn& turn);
bool holds(const Turn& turn, const Member& member, const ResumePoint& point);
// Empty if every step before `resume` is reported or can still be reported. Else a step that cannot
// be, and why.
std::string unprovable_step(const Turn& turn, Step resume);
// Cuts the rows in place, because the survivors are behind the started generation. False if the cut
// would change a step whose numbers are in the history.
bool roll_back_in_place(Turn& turn, const ResumePoint& to);

// Continues the lineage from `to`. Later steps, evaluations and checkpoints leave it.
void cut_lineage(Turn& turn, const ResumePoint& to, const std::string& checkpoint,
                 const std::string& why);

// ---- skip_slots.cc
void fill_skips(const State& state, wire::Start* start);
// How many entries State::skips may have: one for each step, and what is left out of a batch is
// left out in each of its turns.
size_t most_skips(const Turn& turn);
// Whether the run leaves bad samples out instead of ending.
bool may_skip(const Turn& turn);
void skip_slots(Turn& turn, SkipEntry entry);
std::string what_to_do_about_samples(const Turn& turn);  // the hint when bad samples end the run
// "positions [36, 40) of epoch 1". Epochs count from 1, as in the audit.
std::string positions_of(const Turn& turn, Step step, const SlotRun& slots);

// ---- poison.cc
// The first line, and what stands from its end on: last words, or the traceback of a script.
std::pair<std::string, std::string> split_line(const std::string& text);
// Notes that a process ended with these slots in hand, or after a hang. The report may come again,
// also to a later term.
void note_casualty(Turn& turn, Casualty casualty);
// Keeps what the script raised, if it did.
void note_error(const wire::Leave& message, Casualty& casualty);
// Ends the run if the script has raised the same at two slots of a step.
std::optional<Reason> judge_raised(Turn& turn);
// Whether a process has hung in this step before.
bool has_hung_in(const State& state, Step step);
// Whether a process died with slots in hand that are still to be computed.
bool has_suspects(const Turn& turn);
// Whether the member or its agent has said what the member had in hand as it ended.
inline bool is_told_of(const Member& member) {
  return member.has_exited || member.has_told;
}
// Whether the node's agent can say how a process ended: it is connected, or still on its way to a
// term that has just begun.
bool may_tell(const Turn& turn, const std::string& node);
// Whether samples may have killed two members, and an agent is about to say what one of them had in
// hand. Until then no other member gets these samples.
bool awaits_word_of_dead(const Turn& turn);
// Whether two processes died or hung with the same slot in hand, or hung in the same step at
// different times, in a step from `next` on.
bool is_poisoned(const Turn& turn, Step next);
// Leaves the samples of such a slot out, or ends the run.
std::optional<Reason> judge_poison(Turn& turn, Step next);

// ---- bad_loss.cc
// After a step with a loss that is not a number, or a spike: ends the term, to go on without that
// step, or ends the run.
std::optional<Reason> judge_bad_loss(Turn& turn);

// ---- judge_checks.cc
Reason on_check(Turn& turn, Member& member, Generation generation,
                const wire::CheckReport& message);
// Judges the checks whose reports are complete.
std::optional<Reason> judge_checks(Turn& turn);

// ---- expel.cc: no worker of an expelled place takes part any more (corruption.h, C1)
// "local rank 1 of node a, local rank 0 of node b"; each place once.
std::string names_of(const std::vector<WitnessEntry>& witnesses);

// Where a check found a place wrong. goes_on: decide() does not cut the lineage, but taints it from
// `step` on.
struct Wrong {
  Generation generation = 0;
  Step step = 0;
  bool goes_on = false;
};
void expel(Turn& turn, const Place& place, const Wrong& wrong);

// C3: takes the checkpoints that a worker there wrote from step `since` on out of the lineage.
void disown_checkpoints(Turn& turn, const Place& place, Step since);

// Removes members of the present, the planned and the last started generation at expelled places,
// like members that died. Nothing: there are none.
std::optional<Reason> evict_expelled(Turn& turn);

// ---- unfit.cc
Reason on_node_notice(Turn& turn, KnownAgent& agent, const wire::NodeNotice& message);
// The agent has connected: what it said before counts when it says so again.
void await_notices(Turn& turn, const KnownAgent& agent);
// The run acts on a notice about the member's place: it takes part only where it is needed.
bool is_unfit(const Turn& turn, const Member& member);
// With fewer workers unfit places are used all the same.
size_t least_workers(const Turn& turn);
// Unfit places where no worker is and none comes.
size_t empty_unfit(const Turn& turn);
// Asks agents to start workers at unfit places that they keep empty, as many as cluster.min_workers
// lacks. False: there is no such place, or no worker is lacking.
bool call_unfit(Turn& turn);
// ". GPUs that are not fit: local rank 1 of node a (REASON)"; empty: none is.
std::string what_is_unfit(const State& state);
// Says goodbye to members that wait at unfit places while enough others take part.
void turn_away_unfit(Turn& turn);

// ---- planned.cc
// Plans a change if one is due and nothing prevents it now.
void plan_change(Turn& turn);
void push_planned(Turn& turn, const Member& member);
// Adopts the planned generation, whose members have switched at `since`. kSwitched, or an end.
Reason adopt_switch(Turn& turn, const ResumePoint& since);
// Notes that the member lives in the generation.
void note_lived(Turn& turn, Member& member, Generation generation);
Reason on_drained(Turn& turn, Member& member, const wire::Leave& message);
// Sends the leavers their Goodbye. `all`: also the leavers that have not reported that they are
// ready.
void release_leavers(Turn& turn, bool all);

// ---- decide_checkpoint.cc
// Lets the written checkpoints count that may, after a check was judged: their manifest was read,
// and no check of their weights is outstanding.
void settle_checkpoints(Turn& turn);
// Drops the written checkpoints that `is_void` names: they will never count.
void void_written(Turn& turn, const std::function<bool(const WrittenCheckpoint&)>& is_void);
// Takes checkpoints that count, and for which `is_gone` is true, out of the lineage. The next
// writer that is told to delete deletes them.
void void_checkpoints(Turn& turn, const std::function<bool(const CheckpointEntry&)>& is_gone);
// Asks again for manifests that were not there.
void look_for_manifests(Turn& turn);
Reason on_manifest_read(Turn& turn, const ManifestRead& event);
// The newest checkpoint of the lineage with at most `step` steps; null if there is none.
const CheckpointEntry* newest_until(const State& state, Step step);
// The steps after `before` are complete: drops the checkpoints that had to stay until then.
void drop_judged(Turn& turn, Step before);
// With checkpoint.best, at a start: says that the best evaluation has no checkpoint any more.
void note_lost_best(Turn& turn);
// Forgets the checkpoints of more steps: the next term takes none, and no message mentions them.
void forget_checkpoints_after(State& state, Step step);

// ---- finish.cc
// Closes open rows in the journal, sends every peer a Goodbye and ends the run.
void end_run(Turn& turn, int code, const std::string& message);
// Ends the term. The next one begins from the newest checkpoint.
Reason end_term(Turn& turn, const std::string& message,
                LogLine::Level level = LogLine::Level::kWarn);
Reason corrupt(Turn& turn, const std::string& what);
// Whether the journal has a checkpoint of that step in the lineage.
bool has_checkpoint_of(const State& state, Step step);
// The script has ended the run (state/script_end.h): keeps the news.
void end_by_script(Turn& turn, Step step);
// Drops the end: the run goes back, and the steps that led to it count no more. E3
void forget_script_end(Turn& turn, const std::string& why);
// Whether members of the last started generation can stand at `step`, and no earlier end is known.
bool can_end_at(const Turn& turn, Step step);
Reason on_end(Turn& turn, const Member& member, Generation generation,
              const wire::EndReport& message);
// Whether a checkpoint of `step` has the state with which a run ends there: after its last edge.
bool has_last_checkpoint(const Turn& turn, Step step);
// Whether only the farewells are left to do.
bool is_done(const Turn& turn);
// Whether the checkpoint with which the workers end is there, but not the evaluation before it:
// reports of checkpoints overtake reports of steps and evaluations.
bool lacks_last_evaluation(const Turn& turn);
// Ends the run if every member has left and the final checkpoint is in the journal.
Reason finish_if_all_left(Turn& turn, Reason otherwise);
// The message with which the run ends after `last` steps.
std::string how_it_ended(const Turn& turn, Step last);
// Half a sentence on the steps that no checkpoint holds.
std::string what_is_lost(const Turn& turn);
// "…; the checkpoint step-… of step 1500 remains; to go on: lockstep run …"
std::string what_remains(const Turn& turn);
void say_goodbye(Turn& turn, ConnectionId to, int code, const std::string& message);

}  // namespace lockstep::coordinator
