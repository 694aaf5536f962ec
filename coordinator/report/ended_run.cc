#include "coordinator/report/ended_run.h"

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/directory/run_lock.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/report/job_json.h"
#include "coordinator/report/watch_json.h"
#include "metrics/base/goodput.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

// Fills in the members of the last generation, with the slots that they had when it ended.
Status fill_members(Journal& journal, const JournalContents& contents, State* state) {
  const auto last = std::find_if(contents.ledger.rbegin(), contents.ledger.rend(),
                                 [](const LedgerRow& row) { return !row.rolled_back; });
  if (last == contents.ledger.rend()) return Status::ok();
  state->generation = last->generation;
  LOCKSTEP_ASSIGN_OR_RETURN(const SlotMapEntry map, journal.slot_map(last->generation));
  for (size_t rank = 0; rank < map.members.size(); ++rank) {
    Member& member = state->members[map.members[rank]];
    member.id = map.members[rank];
    member.state = MemberState::kGone;
    member.rank = static_cast<uint32_t>(rank);
    member.slots = map.runs[rank];
    member.step = state->completed;
    state->ranks.push_back(member.id);
  }
  for (const MemberEntry& entry : contents.members) {
    const auto it = state->members.find(entry.member);
    if (it == state->members.end()) continue;
    it->second.node = entry.node;
    it->second.local_rank = entry.local_rank;
    it->second.pid = entry.pid;
  }
  return Status::ok();
}

// The newest steps, with when they ended.
constexpr size_t kNewestSteps = 1'000;
using StepTimes = std::deque<std::pair<Step, int64_t>>;

// Fills in the phases of the newest steps, as far as their records were not folded.
Status fill_phases(Journal& journal, const State& state, const StepTimes& ends,
                   PhaseWatch* phases) {
  const Step from = ends.empty() ? state.completed : ends.front().first;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto batches,
                            journal.batches(state.generation, from, state.completed));
  std::map<Step, std::vector<std::pair<MemberId, const wire::StepRecord*>>> by_step;
  for (const RecordsEntry& batch : batches) {
    for (const wire::StepRecord& record : batch.records)
      by_step[record.step()].emplace_back(batch.member, &record);
  }
  for (const auto& [step, end_ms] : ends) {
    for (const auto& [member, record] : by_step[step]) phases->add(end_ms, member, *record);
  }
  return Status::ok();
}

// Takes the end from summary.json, if that is the end of these steps. If the run was killed, takes
// it from the journal, up to the last commit.
void fill_end(const std::string& run_dir, const JournalContents& contents, EndedRun* run) {
  run->times.wall_seconds = static_cast<double>(contents.wall_ms) / 1e3;
  Goodput goodput(0);
  goodput.step_survives(run->stats.useful_seconds());
  run->times.goodput = goodput.ratio(contents.wall_ms * 1'000'000);
  const auto text = read_file(rundir::file_in(run_dir, rundir::kSummary), limits::kJobFileBytes);
  if (!text.is_ok()) return;
  const json summary = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || summary.value("steps", json()) != json(run->state.completed)) return;
  const auto number = [&](const char* key) {
    const json value = summary.value(key, json());
    return value.is_number() ? value.get<double>() : 0;
  };
  run->is_over = true;
  run->times = {number("wall_seconds"), number("goodput")};
  run->state.exit_code = static_cast<int>(number("exit_code"));
  const json message = summary.value("message", json());
  if (message.is_string()) run->state.message = message.get<std::string>();
}

}  // namespace

std::string EndedRun::status(size_t members) const {
  json out =
      json::parse(status_json(state, options, stats, times, {phases, steps, now_ms, members}));
  out["state"] = is_over ? "ended" : "interrupted";
  if (is_over) out["exit_code"] = state.exit_code;
  out.erase("eta_s");
  return out.dump() + "\n";
}

std::string EndedRun::job() const {
  return job_json(options.job);
}

std::string EndedRun::history(size_t points) const {
  return history_json(stats.curves(), state.evals, options.shape.turns, points);
}

std::string EndedRun::events(size_t limit) const {
  return events_json(timeline, limit);
}

Result<EndedRun> read_ended_run(const std::string& run_dir) {
  const std::string path = journal_path(run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock, RunLock::take_to_read(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto journal, read_sqlite_journal(path, JournalCheck::kOpenPart));
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents contents, journal->load());
  LOCKSTEP_ASSIGN_OR_RETURN(const RunInputs inputs, run_inputs_to_show(run_dir));
  EndedRun run;
  LOCKSTEP_ASSIGN_OR_RETURN(run.options,
                            resolve_options(inputs.job, inputs.facts, contents.identity, run_dir));
  State& state = run.state;
  state.run_id = inputs.job.job();
  state.lineage_id = contents.mark.lineage_id;
  state.term = contents.last_term;
  state.run = RunState::kEnded;
  LOCKSTEP_ASSIGN_OR_RETURN(auto all_pieces, journal->pieces());
  const auto pieces = pieces_well_before(std::move(all_pieces), kNoStep);
  run.stats.begin(pieces);
  state.completed = end_of(pieces);
  uint64_t run_us = pieces.empty() ? 0 : pieces.back().totals.all.wall_us;
  StepTimes ends;
  LOCKSTEP_RETURN_IF_ERROR(
      journal->visit_steps(state.completed, kNoStep, [&](const StepEntry& step) {
        if (step.step != state.completed) return;
        ++state.completed;
        run.stats.add(step);
        run_us += step.wall_us;
        run.now_ms = static_cast<int64_t>(run_us / 1000);
        run.steps.add(run.now_ms, step);
        ends.emplace_back(step.step, run.now_ms);
        if (ends.size() > kNewestSteps) ends.pop_front();
      }));
  for (const EvalEntry& eval : contents.evals) {
    if (eval.step <= state.completed) state.evals[eval.step] = eval;
  }
  for (const CheckpointEntry& entry : contents.checkpoints) {
    if (entry.state == CheckpointState::kComplete) state.checkpoints.push_back(entry);
  }
  state.skips = contents.skips;
  state.script_end = script_end_in(contents.settings);
  LOCKSTEP_RETURN_IF_ERROR(fill_members(*journal, contents, &state));
  LOCKSTEP_RETURN_IF_ERROR(fill_phases(*journal, state, ends, &run.phases));
  fill_end(run_dir, contents, &run);
  run.timeline.add_tail_of(run_dir + kLogName);
  return run;
}

}  // namespace lockstep::coordinator
