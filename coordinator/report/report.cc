#include "coordinator/report/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "comm/wire/predictions.h"
#include "coordinator/report/json_values.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

double seconds_of(uint64_t us) {
  return static_cast<double>(us) / 1e6;
}

json eval_json(const EvalEntry& eval) {
  const double accuracy =
      eval.samples == 0 ? 0 : static_cast<double>(eval.correct) / static_cast<double>(eval.samples);
  return {{"step", eval.step},
          {"epoch", eval.epoch},
          {"accuracy", accuracy},
          {"loss", json_number(eval.loss)},
          {"samples", eval.samples}};
}

// Steps applied as far as anyone has said: heartbeats run ahead of records.
Step newest_step(const State& state) {
  Step step = state.completed;
  for (MemberId id : state.ranks) step = std::max(step, state.members.at(id).step);
  return step;
}

json phases_json(const PhaseSums& sums) {
  json out = json::object();
  for (size_t i = 0; i < kStepPhases.size(); ++i) out[kStepPhases[i]] = seconds_of(sums.us[i]);
  return out;
}

json member_json(const Member& member, const Options& options, const PhaseWatch& phases) {
  json out = {{"id", member.id},
              {"rank", member.rank},
              {"node", member.node},
              {"pid", member.pid},
              {"local_rank", member.local_rank},
              {"step", member.step},
              {"state", member_state_name(member.state)},
              {"connected", member.connection != 0},
              {"slots", {member.slots.begin, member.slots.end}}};
  const PhaseSums sums = phases.of(member.id);
  if (sums.own_us() == 0 || options.shape.slots == 0) return out;
  // Its share of the samples, per second that it did not wait for others: what it could do alone.
  const double samples = static_cast<double>(sums.samples) *
                         (member.slots.end - member.slots.begin) / options.shape.slots;
  out["own_samples_per_second"] = samples / seconds_of(sums.own_us());
  out["phases"] = phases_json(sums);
  return out;
}

// By rank; before there are ranks, whoever has registered.
std::vector<const Member*> members_of(const State& state) {
  std::vector<const Member*> members;
  for (MemberId id : state.ranks) members.push_back(&state.members.at(id));
  if (!members.empty()) return members;
  for (const auto& [id, member] : state.members) {
    if (member.state != MemberState::kDead) members.push_back(&member);
  }
  return members;
}

void add_members(const State& state, const Options& options, const StatusDetail& detail,
                 json* out) {
  const std::vector<const Member*> members = members_of(state);
  json& list = (*out)["members"] = json::array();
  std::map<std::string, uint64_t> by_state;
  for (const Member* member : members) {
    if (list.size() < detail.members) {
      list.push_back(member_json(*member, options, detail.phases));
    }
    ++by_state[member_state_name(member->state)];
  }
  (*out)["members_total"] = members.size();
  (*out)["members_by_state"] = by_state;
  (*out)["standbys"] = state.ranks.empty() ? 0 : state.waiting.size();
  const PhaseSums all = detail.phases.all();
  if (all.steps > 0) (*out)["phases"] = phases_json(all);
}

uint64_t epochs_of(const Options& options) {
  const uint64_t per_epoch = data::steps_per_epoch(options.shape);
  return (options.total_steps + per_epoch - 1) / per_epoch;
}

}  // namespace

std::string status_json(const State& state, const Options& options, const RunStats& stats,
                        const ReportTimes& times, const StatusDetail& detail) {
  const Step step = newest_step(state);
  json out;
  out["run"] = state.run_id;
  out["lineage"] = state.lineage_id;
  out["state"] =
      state.stop_ms && state.run == RunState::kStarted ? "stopping" : run_state_name(state.run);
  out["term"] = state.term;
  out["generation"] = state.generation;
  out["step"] = step;
  out["total_steps"] = options.is_batch_open() ? 0 : options.total_steps;
  out["epoch"] = data::plan_step(options.shape, step).epoch;  // of the next step, from 0
  out["epochs"] = epochs_of(options);
  out["global_batch"] = options.job.train().global_batch();  // 0: not resolved yet
  if (!stats.is_empty()) {
    out["loss"] = json_number(stats.loss());
    out["accuracy"] = stats.correct_per_sample() /
                      static_cast<double>(predictions_per_sample(options.job.model()));
    out["samples_per_second"] = stats.samples_per_second();
    out["eta_s"] = static_cast<double>(options.total_steps - step) * stats.seconds_per_step();
  }
  if (!state.evals.empty()) out["eval"] = eval_json(state.evals.rbegin()->second);
  out["workers"] = state.wanted_workers != 0 ? state.wanted_workers : options.workers;
  add_members(state, options, detail, &out);
  if (!state.checkpoints.empty()) {
    const CheckpointEntry& last = state.checkpoints.back();
    out["last_checkpoint"] = {{"name", last.name}, {"step", last.step}};
  }
  out["failed_checkpoints"] = state.failed_checkpoints;
  out["skipped_by_policy"] = state.skips.size();  // entries; the audit names their samples
  if (state.checks.tainted) out["tainted_from_step"] = *state.checks.tainted;
  out["goodput"] = times.goodput;
  out["wall_seconds"] = times.wall_seconds;
  out["message"] = state.message;
  return json_text(out);
}

std::string discovery_json(const State& state, const std::string& own_address, bool is_https) {
  json targets = json::array();
  targets.push_back({{"targets", {own_address}}, {"labels", {{"run", state.run_id}}}});
  std::set<std::string> nodes;  // under mpirun a node has many agents, which all say the same
  for (const auto& [connection, agent] : state.agents) {
    if (agent.metrics_address.empty() || !nodes.insert(agent.node).second) continue;
    targets.push_back({{"targets", {agent.metrics_address}},
                       {"labels", {{"run", state.run_id}, {"node", agent.node}}}});
  }
  for (const auto& [id, member] : state.members) {
    if (member.state == MemberState::kDead || member.metrics_address.empty()) continue;
    targets.push_back({{"targets", {member.metrics_address}},
                       {"labels",
                        {{"run", state.run_id},
                         {"node", member.node},
                         {"local_rank", std::to_string(member.local_rank)}}}});
  }
  if (is_https)
    for (json& target : targets) target["labels"]["__scheme__"] = "https";
  return json_text(targets);
}

bool is_summary_of(const std::string& text, const State& state) {
  const json summary = json::parse(text, nullptr, false);
  return summary.is_object() && summary.value("steps", json()) == json(state.completed) &&
         summary.value("exit_code", json()) == json(state.exit_code);
}

std::string summary_json(const State& state, const Options& options, const RunStats& stats,
                         const ReportTimes& times) {
  json out;
  out["run"] = state.run_id;
  out["lineage"] = state.lineage_id;
  out["steps"] = state.completed;
  out["epochs"] = state.completed / data::steps_per_epoch(options.shape);  // finished ones
  out["global_batch"] = options.job.train().global_batch();
  if (!state.evals.empty()) {
    const json eval = eval_json(state.evals.rbegin()->second);
    out["eval_accuracy"] = eval["accuracy"];
    out["eval_loss"] = eval["loss"];
    out["eval_step"] = eval["step"];
  }
  out["samples_per_second"] = stats.steady_samples_per_second();
  if (!state.checkpoints.empty()) {
    out["checkpoint"] = state.checkpoints.back().name;
    out["weights_sha256"] = state.checkpoints.back().weights_sha256;
  }
  out["generations"] = state.generation;
  out["terms"] = state.term;
  out["goodput"] = times.goodput;
  out["wall_seconds"] = times.wall_seconds;
  out["exit_code"] = state.exit_code;
  out["message"] = state.message;
  return out.dump(2) + "\n";
}

}  // namespace lockstep::coordinator
