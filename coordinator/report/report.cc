#include "coordinator/report/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "comm/run/job/data_formats.h"
#include "comm/run/job/data_legend.h"
#include "comm/run/job/predictions.h"
#include "coordinator/journal/journal.h"
#include "coordinator/report/json_values.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

double seconds_of(uint64_t us) {
  return static_cast<double>(us) / 1e6;
}

// "metrics": {"iou": 0.5}, only if there are any.
void add_metrics(const std::vector<MetricValue>& metrics, json* out) {
  for (const MetricValue& metric : metrics)
    (*out)["metrics"][metric.name] = json_number(metric.value);
}

json eval_json(const EvalEntry& eval) {
  const double samples = static_cast<double>(std::max<uint64_t>(eval.samples, 1));
  json out = {{"step", eval.step},
              {"epoch", eval.epoch},
              {"loss", json_number(eval.loss)},
              {"samples", eval.samples}};
  if (!eval.no_accuracy) out["accuracy"] = static_cast<double>(eval.correct) / samples;
  add_metrics(eval.metrics, &out);
  if (eval.top5) out["top5"] = static_cast<double>(*eval.top5) / samples;
  if (eval.lr) out["lr"] = json_number(*eval.lr);
  return out;
}

// Adds the best checkpoint that is there, if the job says what is best. Else adds the best
// evaluation, whose weights were not kept.
void add_best(const State& state, const Options& options, json* out) {
  const std::string& best = options.job.checkpoint().best();
  if (!keeps_best(best)) {
    const EvalMark mark = best_evaluation(state.evals, best_by(best), kNoStep);
    if (mark.step > 0) (*out)["best_evaluation"] = eval_json(state.evals.at(mark.step));
    return;
  }
  const auto* entry = best_checkpoint(state.checkpoints, state.evals, best_by(best), kNoStep);
  if (entry == nullptr) return;
  json& shown = (*out)["best_checkpoint"] = eval_json(state.evals.at(entry->step));
  shown["name"] = entry->name;
  shown["weights_sha256"] = entry->weights_sha256;
}

// The steps applied, as far as any member has reported: heartbeats run ahead of records.
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

// Each of a batch's steps counts its samples; a rate counts them once.
double once_a_batch(double rate, const Options& options) {
  return rate / options.shape.turns;
}

// Its share of the samples, per second that it did not wait for others: what it could do alone.
double own_rate(const Member& member, const Options& options, const PhaseSums& sums) {
  const double samples = static_cast<double>(sums.samples) *
                         (member.slots.end - member.slots.begin) / options.shape.slots;
  return once_a_batch(samples / seconds_of(sums.own_us()), options);
}

// People see a script that a debugger has stopped as a state of its own.
const char* shown_state(const Member& member) {
  return member.is_paused ? "paused" : member_state_name(member.state);
}

json member_json(const Member& member, const Options& options, const StatusDetail& detail) {
  json out = {{"id", member.id},
              {"rank", member.rank},
              {"node", member.node},
              {"pid", member.pid},
              {"local_rank", member.local_rank},
              {"step", member.step},
              {"state", shown_state(member)},
              {"connected", member.connection != 0},
              {"slots", {member.slots.begin, member.slots.end}}};
  if (!member.gpu.numa().empty()) out["numa"] = member.gpu.numa();
  const auto sums = [&](Span span) { return detail.phases.of(member.id, span, detail.now_ms); };
  const PhaseSums minute = sums(Span::kMinute);
  if (minute.own_us() == 0 || options.shape.slots == 0) return out;
  out["own_samples_per_second"] = own_rate(member, options, sums(Span::kTenSeconds));
  out["own_samples_per_second_60s"] = own_rate(member, options, minute);
  out["phases"] = phases_json(sums(Span::kTenSeconds));
  out["phases_60s"] = phases_json(minute);
  return out;
}

// The members by rank; before there are ranks, all that have registered.
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
      list.push_back(member_json(*member, options, detail));
    }
    ++by_state[shown_state(*member)];
  }
  (*out)["members_total"] = members.size();
  (*out)["members_by_state"] = by_state;
  (*out)["standbys"] = state.ranks.empty() ? 0 : state.waiting.size();
  const PhaseSums all = detail.phases.all(Span::kTenSeconds, detail.now_ms);
  if (all.steps == 0) return;
  (*out)["phases"] = phases_json(all);
  (*out)["phases_60s"] = phases_json(detail.phases.all(Span::kMinute, detail.now_ms));
}

// Speed and results of one span: {"samples_per_second", "loss", "accuracy"}; null: not known.
json recent_json(const StatusDetail& detail, const Options& options, Span span) {
  json out = json::object();
  const auto say = [&](const char* key, const std::optional<double>& value, double scale) {
    out[key] = value ? json_number(*value / scale) : json(nullptr);
  };
  const auto predictions = static_cast<double>(predictions_per_sample(options.job.model()));
  say("samples_per_second", detail.steps.samples_per_second(span, detail.now_ms),
      options.shape.turns);
  say("loss", detail.steps.loss(span, detail.now_ms), 1);
  say("accuracy", detail.steps.correct_per_sample(span, detail.now_ms), predictions);
  return out;
}

// The live figures: of the last ten seconds, else of the last minute, else of the last steps.
void add_live(const Options& options, const RunStats& stats, const StatusDetail& detail,
              json* out) {
  json& recent = (*out)["recent"] = json::object();
  for (size_t i = 0; i < kSpans.size(); ++i)
    recent[kSpanNames[i]] = recent_json(detail, options, kSpans[i]);
  if (stats.is_empty()) return;
  (*out)["lr"] = json_number(stats.last().lr);
  (*out)["loss"] = (*out)["last_loss"] = json_number(stats.loss());
  if (const auto correct = stats.correct_per_sample())
    (*out)["accuracy"] =
        *correct / static_cast<double>(predictions_per_sample(options.job.model()));
  add_metrics(stats.last().metrics, out);
  (*out)["samples_per_second"] = once_a_batch(stats.samples_per_second(), options);
  for (const char* key : {"loss", "accuracy", "samples_per_second"}) {
    for (const char* span : {"60s", "10s"})
      if (const json& value = recent[span][key]; value.is_number()) (*out)[key] = value;
  }
}

// GPUs that their agents find unfit, whether the run acts on it or not.
void add_unfit(const State& state, json* out) {
  json& list = (*out)["unfit_gpus"] = json::array();
  for (const auto& [place, unfit] : state.unfit)
    if (unfit.is_current)
      list.push_back(
          {{"node", place.node}, {"local_rank", place.local_rank}, {"reason", unfit.reason}});
}

const char* predicts(const wire::JobSpec& job) {
  return predicts_tokens(job) ? "tokens" : "classes";
}

// 0: not known yet.
uint64_t epochs_of(const Options& options) {
  const auto& train = options.job.train();
  if (options.is_open_term()) return train.max_steps() == 0 ? train.epochs() : 0;
  const uint64_t per_epoch = steps_per_epoch(options.shape);
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
  out["total_steps"] = options.is_open_term() ? 0 : end_step(state, options);
  out["epoch"] = plan_step(options.shape, step).epoch;  // of the next step, from 0
  out["epochs"] = epochs_of(options);
  out["global_batch"] = options.job.train().global_batch();  // 0: not resolved yet
  out["slots"] = options.shape.slots;
  out["steps_per_epoch"] = options.is_open_term() ? 0 : steps_per_epoch(options.shape);
  out["predicts"] = predicts(options.job);
  add_live(options, stats, detail, &out);
  if (!stats.is_empty())
    out["eta_s"] = static_cast<double>(std::max(end_step(state, options), step) - step) *
                   stats.seconds_per_step();
  if (!state.evals.empty()) out["eval"] = eval_json(state.evals.rbegin()->second);
  out["evaluations"] = state.evals.size();
  out["workers"] = state.wanted_workers != 0 ? state.wanted_workers : options.workers;
  add_members(state, options, detail, &out);
  if (!state.checkpoints.empty()) {
    const CheckpointEntry& last = state.checkpoints.back();
    out["last_checkpoint"] = {{"name", last.name}, {"step", last.step}};
  }
  add_best(state, options, &out);
  add_unfit(state, &out);
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
  out["epochs"] = state.completed / steps_per_epoch(options.shape);  // finished ones
  out["global_batch"] = options.job.train().global_batch();
  if (!state.evals.empty()) {
    const json eval = eval_json(state.evals.rbegin()->second);
    if (eval.contains("accuracy")) out["eval_accuracy"] = eval["accuracy"];
    if (eval.contains("metrics")) out["eval_metrics"] = eval["metrics"];
    out["eval_loss"] = eval["loss"];
    out["eval_step"] = eval["step"];
    if (eval.contains("top5")) out["eval_top5"] = eval["top5"];
    out["predicts"] = predicts(options.job);
  }
  out.update(legend_json(options.facts.legend()));
  out["samples_per_second"] = once_a_batch(stats.steady_samples_per_second(), options);
  if (!state.checkpoints.empty()) {
    out["checkpoint"] = state.checkpoints.back().name;
    out["weights_sha256"] = state.checkpoints.back().weights_sha256;
  }
  add_best(state, options, &out);
  out["checks"] = {{"every", options.job.train().check_every()},
                   {"agreed_step", state.checks.agreed}};
  out["generations"] = state.generation;
  out["terms"] = state.term;
  out["goodput"] = times.goodput;
  out["wall_seconds"] = times.wall_seconds;
  out["exit_code"] = state.exit_code;
  out["message"] = state.message;
  return out.dump(2) + "\n";
}

}  // namespace lockstep::coordinator
