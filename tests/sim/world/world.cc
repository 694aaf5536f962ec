#include "tests/sim/world/world.h"

#include <algorithm>
#include <array>
#include <limits>

#include "comm/run/evaluation/edge.h"
#include "comm/run/evaluation/eval_track.h"
#include "comm/run/evaluation/evaluation_due.h"
#include "comm/run/plan/digest.h"
#include "comm/run/plan/epoch_order.h"

namespace lockstep::sim {
namespace {

wire::JobSpec make_job(const WorldOptions& options, uint64_t seed) {
  wire::JobSpec job;
  job.set_job("sim");
  job.set_seed(seed);
  job.mutable_train()->set_global_batch(options.global_batch);
  job.mutable_train()->set_slots(options.slots);
  job.mutable_train()->set_max_steps(options.steps -
                                     (options.turns - 1));  // the run ends its last batch
  job.mutable_train()->set_check_every(options.check_every);
  job.mutable_train()->set_on_corruption("rollback");
  job.mutable_train()->set_on_bad_samples(options.skips_bad_samples ? "skip" : "stop");
  job.mutable_comm()->set_numerics("exact");
  job.mutable_comm()->set_bucket_mb(1);
  job.mutable_checkpoint()->set_every_steps(options.checkpoint_every);
  job.mutable_checkpoint()->set_keep(2);
  wire::ClusterSpec& cluster = *job.mutable_cluster();
  cluster.set_workers(options.nodes * options.workers_per_node);
  cluster.set_start_timeout_s(120);
  cluster.set_lease_s(options.lease_s);
  cluster.set_grace_s(30);
  cluster.set_min_workers(1);
  cluster.set_min_wait_s(60);
  cluster.set_max_crashes(100);
  cluster.set_max_preemptions(100);
  cluster.set_hang_s(options.hang_s);
  cluster.set_rebalance(options.rebalances);
  if (options.is_script) job.mutable_model()->set_name("script");
  if (options.has_eval && !options.is_script) job.mutable_data()->mutable_eval()->set_path("eval");
  job.mutable_eval()->set_every_steps(options.eval_every);
  job.mutable_checkpoint()->set_best(options.best);
  job.mutable_train()->set_patience(options.patience);
  return job;
}

wire::DataFacts make_facts(const WorldOptions& options) {
  wire::DataFacts facts;
  facts.set_train_fingerprint("0123456789abcdef");
  facts.set_train_samples(options.samples);
  if (options.turns > 1) facts.set_turns(options.turns);
  if (options.has_eval) {
    facts.set_eval_fingerprint("fedcba9876543210");
    facts.set_eval_samples(16);
  }
  return facts;
}

wire::DataFacts make_facts_file(const WorldOptions& options) {
  if (!options.is_script) return make_facts(options);
  wire::DataFacts facts;
  facts.set_open(true);
  return facts;
}

}  // namespace

const char* moment_name(Moment moment) {
  static constexpr std::array<const char*, static_cast<size_t>(Moment::kCount)> kNames = {
      "before-publish", "reading",       "before-apply", "applying",  "applied",    "closing",
      "closed",         "started",       "transfer",     "switching", "evaluating", "evaluated",
      "checkpoint",     "final-written", "leaving",      "planned",   "edge"};
  return kNames[static_cast<size_t>(moment)];
}

Generation told_by(const coordinator::JournalEntry& entry) {
  const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
  const bool is_told =
      generation != nullptr && (generation->state == coordinator::GenerationState::kStarted ||
                                generation->state == coordinator::GenerationState::kPlanned);
  return is_told ? generation->generation : 0;
}

World::World(uint64_t the_seed, const WorldOptions& the_options, std::string the_directory)
    : seed(the_seed),
      options(the_options),
      directory(std::move(the_directory)),
      job(make_job(options, seed)),
      facts(make_facts(options)),
      facts_file(make_facts_file(options)),
      shape{options.samples, options.global_batch, options.slots, options.turns},
      prng(stream_key({seed, 7})),
      trace([this] { return loop.now_ms(); }),
      reference(seed, shape) {
  if (options.is_script) script = {{"model", "linear"}, {kLearningRate, "0.1"}};
  if (options.has_edges) {
    script[kLoopFact] = kLoopOverEpochs;
    reference.seen_at_edge = [this](const ModelState& state, Generation generation) {
      return seen_at_edge(state, generation);
    };
  }
  trace.cut_at(directory);
  network.set_delays([this](const std::string&, const std::string&) {
    return static_cast<int64_t>(prng.below(static_cast<uint64_t>(options.delay_ms) + 1));
  });
  network.set_tap([this](const std::string& from, const std::string& to, const wire::Frame& frame) {
    if (frame.kind != wire::FrameKind::kEnvelope) return;
    wire::Envelope envelope;
    if (!envelope.ParseFromString(frame.payload)) return;
    trace.add(wire::Envelope::descriptor()->FindFieldByNumber(envelope.body_case())->name(),
              from + ">" + to, envelope.term(), envelope.generation());
    for (const auto& check : checks) check->on_message(from, to, envelope);
  });
  // A skip may be found late: newer generations had begun without it, or were planned without it,
  // so that their members may have switched already. Then the rollback cuts these generations.
  disk.on_commit = [this, newest = Generation{0}](const Disk::Entries& entries) mutable {
    trace.add("commit", "journal", entries.size(), disk.commits().size());
    for (const coordinator::JournalEntry& entry : entries) {
      newest = std::max(newest, told_by(entry));
      if (const auto* skip = std::get_if<coordinator::SkipEntry>(&entry))
        reference.skip(newest, skip->step, skip->slots.begin, skip->slots.end);
      if (const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry))
        follow(*generation);
    }
    for (const auto& check : checks) check->on_commit(entries);
  };
}

// A start after a death tells the members of an end by the script that any of them knows of. A
// member that knew of another end is dead, or is left behind.
void World::follow(const coordinator::GenerationEntry& entry) {
  if (entry.state == coordinator::GenerationState::kPlanned) planned_.insert(entry.generation);
  const bool is_new = entry.state == coordinator::GenerationState::kStarted &&
                      entry.generation > newest_start_ && !planned_.contains(entry.generation);
  if (!is_new) return;
  newest_start_ = entry.generation;
  wire::Start start;
  if (ended && start.ParseFromString(entry.start) && start.total_steps() != ended->at.step)
    ended.reset();
}

uint64_t World::digest_of(Step step, uint32_t slot) {
  const auto [found, is_new] = digests_.try_emplace({step, slot});
  if (is_new) {
    const StepPlan plan = plan_step(shape, step);
    const EpochOrder order({seed, facts.train_fingerprint(), shape.samples}, plan.epoch);
    found->second = planned_digest(order, plan, slot, shape.slots);
  }
  return found->second;
}

void World::tell(const std::string& place, wire::Register* hello) const {
  *hello->mutable_facts() = facts;
  if (const auto other = misread.find(place); other != misread.end())
    hello->mutable_facts()->set_train_samples(other->second);
  const auto lr = mistold.find(place);
  for (const auto& [key, value] : script) {
    wire::IdentityFact& fact = *hello->add_identity();
    fact.set_key(key);
    fact.set_value(key == kLearningRate && lr != mistold.end() ? lr->second : value);
  }
}

double World::clock_rate(uint32_t pid) const {
  Prng own(stream_key({seed, 29, pid}));
  return 1 + options.drift * (static_cast<double>(own.below(2'001)) / 1'000 - 1);
}

bool World::kills(Step step, uint32_t slot) const {
  return deadly && deadly->step == step && deadly->slot == slot;
}

double World::loss_of(Step step, const SkipSet& skips) const {
  if (absurd && absurd->step == step && !skips.contains(step, absurd->slot))
    return std::numeric_limits<double>::quiet_NaN();
  return 1.0 / static_cast<double>(step + 2);
}

wire::EvalReport World::evaluation_of(const ModelState& state) const {
  wire::EvalReport report;
  report.set_step(state.step);
  if (state.step > 0) report.set_epoch(plan_step(shape, state.step - 1).epoch);
  report.set_samples(facts.eval_samples());
  report.set_correct(state.hash % (facts.eval_samples() + 1));
  constexpr uint64_t kLosses = 13;  // so few that there are ties
  report.set_loss(1 + static_cast<double>((state.hash >> 20) % kLosses) / kLosses);
  return report;
}

bool World::votes_to_end(const std::string& process, Step applied) const {
  if (options.script_ends == ScriptEnds::kInBody) return applied + 1 >= options.script_steps;
  if (options.script_ends != ScriptEnds::kByClock) return false;
  constexpr int64_t kApartMs = 300;
  Prng own(stream_key({seed, 43, std::hash<std::string>{}(process)}));
  return loop.now_ms() >= options.script_ends_ms + static_cast<int64_t>(own.below(kApartMs));
}

bool World::is_ended_in_apply(Step applied) const {
  return options.script_ends == ScriptEnds::kInApply && applied >= options.script_steps;
}

bool World::is_ended_at_edge(Step applied) const {
  return options.script_ends == ScriptEnds::kAtEdge && applied >= options.script_steps;
}

// If all samples of a step are left out, no script votes in it.
Step World::last(Generation generation) {
  if (options.script_ends == ScriptEnds::kByClock) return ended ? ended->at.step : options.steps;
  if (options.script_ends == ScriptEnds::kNever) return options.steps;
  if (options.script_ends == ScriptEnds::kAtEdge) {
    const uint64_t epoch = steps_per_epoch(shape);
    return std::min<Step>((options.script_steps + epoch - 1) / epoch * epoch, options.steps);
  }
  const SkipSet& skips = reference.skips_in(generation);
  const uint64_t turns = options.turns;
  Step step = (options.script_steps + turns - 1) / turns * turns;  // after a whole batch
  const auto is_empty = [&](Step s) {
    return skips.counted_samples(plan_step(shape, s), s, shape.slots) == 0;
  };
  while (step < options.steps && is_empty(step - 1)) step += turns;
  return std::min<Step>(step, options.steps);
}

EvalTrack World::track_until(Step step, Generation generation) {
  const Evaluations when = evaluations_of(job, facts, shape);
  const BestBy by = best_by(options.best);
  const Step end = last(generation);
  EvalTrack track;
  for (Step applied = 1; applied <= std::min<Step>(step, end); ++applied) {
    if (!evaluation_due(when, applied, end)) continue;
    track.add(lockstep::mark_of(evaluation_of(reference.after(applied, generation))), by);
    if (track.is_over(options.patience)) break;
  }
  return track;
}

Step World::end(Generation generation) {
  const EvalTrack track = track_until(options.steps, generation);
  return track.is_over(options.patience) ? track.last.step : last(generation);
}

bool World::has_edge(Step step, Generation generation) {
  return options.has_edges && edge_due(evaluations_of(job, facts, shape), step, end(generation));
}

bool World::is_past_edge(const ResumePoint& at, Generation generation) {
  return is_after_edge(at.phase) && has_edge(at.step, generation);
}

uint64_t World::seen_at_edge(const ModelState& state, Generation generation) {
  const bool is_evaluated =
      evaluation_due(evaluations_of(job, facts, shape), state.step, last(generation));
  return is_evaluated ? 1 + evaluation_of(state).correct() : 0;
}

// Makes a step take about as long whatever the number of workers at the start.
int64_t World::slot_ms(const std::string& place) {
  const uint64_t workers = uint64_t{options.nodes} * options.workers_per_node;
  const uint64_t most = 1 + static_cast<uint64_t>(options.compute_ms) * workers / options.slots;
  const auto slow = slowness.find(place);
  return static_cast<int64_t>(prng.below(most)) * (slow == slowness.end() ? 1 : slow->second);
}

void World::poke_after(int64_t ms) {
  loop.call_after(ms, [this] { fabric.changed(); });
}

void World::fail(const std::string& check, const std::string& text) {
  trace.add("FAILURE", check, 0, 0, text);
  failures.push_back({check, text});
}

void World::note_applied(const Applied& applied) {
  trace.add("applied", applied.process, applied.step, applied.generation);
  for (const auto& check : checks) check->on_applied(applied);
}

void World::note_installed(const Installed& installed) {
  trace.add("installed", installed.process, installed.at.step, installed.generation);
  for (const auto& check : checks) check->on_installed(installed);
}

void World::note_evaluated(const Evaluated& evaluated) {
  trace.add("evaluation", evaluated.process, evaluated.track.last.step, evaluated.generation);
  for (const auto& check : checks) check->on_evaluated(evaluated);
}

void World::note_crossed(const Crossed& crossed) {
  trace.add("edge", crossed.process, crossed.after.step, crossed.generation);
  for (const auto& check : checks) check->on_crossed(crossed);
}

void World::note_finished(const Finished& finished) {
  trace.add("finished", finished.process, finished.at.step, finished.generation);
  for (const auto& check : checks) check->on_finished(finished);
}

void World::note_ended(const Finished& end) {
  trace.add("ended-by-script", end.process, end.at.step, end.generation);
  if (!is_left_behind(end.generation)) ended = end;
  for (const auto& check : checks) check->on_ended(end);
}

void World::note_killed(const std::string& process, bool in_evaluation) {
  for (const auto& check : checks) check->on_killed(process, in_evaluation);
}

void World::moment(Moment which, const std::string& process) {
  // A listener may add another one.
  for (size_t i = 0; i < on_moment.size(); ++i) {
    const auto listener = on_moment[i];
    listener(which, process);
  }
}

}  // namespace lockstep::sim
