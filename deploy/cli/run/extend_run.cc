#include "deploy/cli/run/extend_run.h"

#include <algorithm>

#include "comm/base/text/shell_word.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/job/predictions.h"
#include "coordinator/state/options.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/watch/run_summary.h"
#include "worker/optim/schedule.h"

namespace lockstep {
namespace {

bool falls_to_the_end(const wire::ScheduleSpec& schedule) {
  return schedule.name() == "linear" || schedule.name() == "cosine" ||
         schedule.name() == "onecycle";
}

double highest_rate(const wire::JobSpec& job) {
  const bool has_peak = job.schedule().name() == "onecycle" && job.schedule().max_lr() > 0;
  return has_peak ? job.schedule().max_lr() : job.optimizer().lr();
}

// Where the schedule ended, if it ended above 0; else a tenth of its highest rate.
double rate_to_go_on_with(const wire::JobSpec& job) {
  constexpr double kShare = 10;
  const bool has_floor = job.schedule().name() != "onecycle" && job.schedule().min_lr() > 0;
  return has_floor ? job.schedule().min_lr() : highest_rate(job) / kShare;
}

bool ends_by_max_steps(const wire::JobSpec& job, uint64_t total) {
  return job.train().max_steps() > 0 && job.train().max_steps() == total;
}

// Commands that use the model of a run; only Python can build a script's model.
std::string use_commands(const std::string& word, const wire::JobSpec& job, bool has_best) {
  if (is_script(job.model())) return "";
  const std::string weights = has_best ? " --checkpoint best" : "";
  const bool writes = predicts_tokens(job);
  return "  lockstep eval " + word + " OTHER-DATA" + weights + "\n  lockstep " +
         (writes ? "generate " : "predict ") + word + (writes ? "" : " NEW-DATA") + weights +
         "\n  lockstep export model " + word + " NEW-DIRECTORY" + weights + "\n";
}

}  // namespace

std::string longer_by(const wire::JobSpec& job, const wire::DataFacts& facts) {
  const coordinator::Options options = coordinator::make_options(job, facts, "");
  const uint64_t per_epoch = steps_per_epoch(options.shape);
  const auto& train = job.train();
  std::string text;
  if (ends_by_max_steps(job, options.total_steps)) {
    const uint64_t steps = 2 * train.max_steps();
    text = "train.max_steps=" + std::to_string(steps);
    if (train.epochs() > 0 && train.epochs() * per_epoch < steps)
      text += " train.epochs=" + std::to_string((steps + per_epoch - 1) / per_epoch);
  } else {
    const uint64_t epochs = 2 * uint64_t{train.epochs()};
    text = "train.epochs=" + std::to_string(epochs);
    if (train.max_steps() > 0 && train.max_steps() < epochs * per_epoch)
      text += " train.max_steps=0";
  }
  if (falls_to_the_end(job.schedule()))
    text += " schedule=constant optimizer.lr=" + learning_rate_text(rate_to_go_on_with(job));
  return text;
}

bool is_ended_by_patience(const wire::JobSpec& job, const wire::DataFacts& facts, Step steps) {
  return job.train().patience() > 0 &&
         steps < coordinator::make_options(job, facts, "").total_steps;
}

std::string what_ends(const wire::JobSpec& job, const wire::DataFacts& facts) {
  const uint64_t total = coordinator::make_options(job, facts, "").total_steps;
  return ends_by_max_steps(job, total)
             ? "train.max_steps is " + std::to_string(job.train().max_steps())
             : "train.epochs is " + std::to_string(job.train().epochs());
}

std::string next_commands(const std::string& run_dir) {
  const std::string word = shell_word(run_dir);
  std::string text =
      "Try next:\n  lockstep report " + word + "\n  lockstep ckpt verify " + word + "\n";
  const auto job = read_job_spec(run_dir);
  const auto facts = read_data_facts(run_dir);
  if (!job.is_ok() || !facts.is_ok() || facts->open()) return text;
  const auto summary = read_summary(run_dir);
  text += use_commands(word, *job, summary.is_ok() && has_best(*summary));
  const std::string resume = "  lockstep run --resume --run-dir " + word + " ";
  const Step steps = summary.is_ok() ? summary->value("steps", ~Step{0}) : ~Step{0};
  if (is_ended_by_patience(*job, *facts, steps))
    return text + resume +
           "train.patience=" + std::to_string(2 * uint64_t{job->train().patience()}) +
           "    # go on, with twice the patience\n";
  text += resume + longer_by(*job, *facts) + "    # go on, as long again\n";
  if (falls_to_the_end(job->schedule()))
    text += "The schedule " + job->schedule().name() +
            " has come to its end. With train keys alone it would begin anew for the new length,\n"
            "and the learning rate would jump up; so the command says a constant one.\n";
  return text;
}

std::string rate_change(const wire::JobSpec& before, const wire::JobSpec& wanted,
                        const wire::DataFacts& facts, Step step) {
  constexpr double kWorthAWord = 1.5;
  const auto rate = [&](const wire::JobSpec& job) {
    const uint64_t total = coordinator::make_options(job, facts, "").total_steps;
    const auto schedule = Schedule::create(job.schedule(), job.optimizer().lr());
    return schedule.is_ok() ? schedule->lr(step, total) : 0;
  };
  const double was = rate(before);
  const double is = rate(wanted);
  if (is <= was * kWorthAWord && was <= is * kWorthAWord) return "";
  const std::string advice = falls_to_the_end(wanted.schedule())
                                 ? ". To go on evenly: schedule=constant optimizer.lr=" +
                                       learning_rate_text(rate_to_go_on_with(before))
                                 : "";
  return "the learning rate of step " + std::to_string(step + 1) + " is " + learning_rate_text(is) +
         " (schedule " + wanted.schedule().name() + ", " + what_ends(wanted, facts) +
         "); before this resume it was " + learning_rate_text(was) + advice;
}

std::string rate_change_on_resume(const std::string& run_dir, const wire::JobSpec& wanted,
                                  const wire::DataFacts& facts) {
  if (is_script(wanted.model())) return "";  // its optimizer has the rate
  const auto before = read_job_spec(run_dir);
  const auto checkpoints = list_checkpoints(rundir::file_in(run_dir, rundir::kCheckpoints));
  if (!before.is_ok() || !checkpoints.is_ok() || checkpoints->empty()) return "";
  return rate_change(*before, wanted, facts, checkpoints->back().name.step);
}

}  // namespace lockstep
