#include "deploy/cli/run/supervised_child.h"

#include "deploy/agent/exit_decision.h"

namespace lockstep {

Status SupervisedChild::start(std::vector<std::string> argv, int64_t now_ms, bool leaves_words) {
  waits_ = false;
  started_ms_ = now_ms;
  words_.reset();
  if (leaves_words) words_.emplace();
  const int words = words_ ? words_->descriptor() : -1;
  if (words >= 0) argv.insert(argv.end(), {"--last-words-fd", std::to_string(words)});
  LOCKSTEP_ASSIGN_OR_RETURN(pid_, start_process({std::move(argv), output_path_, SIGTERM, words}));
  has_ended_ = false;
  return Status::ok();
}

void SupervisedChild::ended(const ProcessEnd& end) {
  has_ended_ = true;
  end_ = end;
}

std::optional<int64_t> SupervisedChild::take_restart(int64_t now_ms) {
  quick_deaths_ = now_ms - started_ms_ < limits::kQuickDeathMs ? quick_deaths_ + 1 : 0;
  if (end_.cannot_run() || quick_deaths_ >= limits::kQuickDeaths) return std::nullopt;
  if (budget_.left(now_ms) == 0) return std::nullopt;
  budget_.spend(now_ms);
  waits_ = true;
  return restart_pause_ms(quick_deaths_);
}

bool SupervisedChild::died() const {
  return has_ended_ && end_.is_death();
}

std::string SupervisedChild::last_words() const {
  return words_ && !died() && is_failure(end_.exit_code) ? words_->text() : "";
}

void SupervisedChild::send(int signal) const {
  if (is_running()) ::kill(pid_, signal);
}

std::string SupervisedChild::death_text() const {
  return "the " + name_ + " (pid " + std::to_string(pid_) + ") " + end_.text();
}

}  // namespace lockstep
