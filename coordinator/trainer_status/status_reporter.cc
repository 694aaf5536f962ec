#include "coordinator/trainer_status/status_reporter.h"

#include <algorithm>
#include <utility>

namespace lockstep::trainer {

StatusReporter::StatusReporter(Parts parts) : parts_(std::move(parts)) {}

StatusReporter::~StatusReporter() {
  parts_.loop.cancel(timer_);
  parts_.loop.cancel(deadline_timer_);
}

void StatusReporter::start() {
  timer_ = parts_.loop.call_after(kLookMs, [this] {
    look();
    if (!is_over_) start();
  });
}

void StatusReporter::look() {
  if (is_sending_ || is_over_) return;
  auto progress = parts_.progress();
  if (progress && is_due(*progress)) report(std::move(*progress));
}

bool StatusReporter::is_due(const RunProgress& progress) const {
  if (delivered_ == progress) return false;
  if (progress.is_ended && !has_tried_end_) return true;
  return !last_ms_ || parts_.loop.now_ms() - *last_ms_ >= kEveryMs;
}

void StatusReporter::report(RunProgress progress) {
  const int64_t now_ms = parts_.loop.now_ms();
  const int64_t left_ms = on_finished_ ? finish_by_ms_ - now_ms : kTimeoutMs;
  is_sending_ = true;
  last_ms_ = now_ms;
  has_tried_end_ = has_tried_end_ || progress.is_ended;
  std::string body = body_of(progress, parts_.clock.wall_ms());
  parts_.send(std::move(body), std::clamp<int64_t>(left_ms, 1, kTimeoutMs),
              [this, told = std::move(progress)](const Status& status) { on_done(told, status); });
}

void StatusReporter::on_done(const RunProgress& told, const Status& status) {
  is_sending_ = false;
  if (status.is_ok()) delivered_ = told;
  note(status);
  if (!on_finished_) return;
  if (told.is_ended) return finished();
  tell_the_end();
}

void StatusReporter::note(const Status& status) {
  if (status.is_ok()) {
    if (is_complaint_open_)
      parts_.logger.info("trainer_status_sent", "reporting progress to Kubeflow Trainer again",
                         {{"failures", failures_}});
    is_complaint_open_ = false;
    failures_ = 0;
    return;
  }
  ++failures_;
  const int64_t now_ms = parts_.loop.now_ms();
  if (complained_ms_ && now_ms - *complained_ms_ < kRepeatMs) return;
  complained_ms_ = now_ms;
  is_complaint_open_ = true;
  parts_.logger.warn(
      "trainer_status_not_sent",
      "cannot report progress to Kubeflow Trainer; the run goes on: " + status.message(),
      {{"failures", failures_}});
}

void StatusReporter::finish(std::function<void()> on_finished) {
  on_finished_ = std::move(on_finished);
  finish_by_ms_ = parts_.loop.now_ms() + kFinishMs;
  deadline_timer_ = parts_.loop.call_after(kFinishMs, [this] { finished(); });
  if (!is_sending_) tell_the_end();
}

void StatusReporter::tell_the_end() {
  auto progress = is_over_ ? std::nullopt : parts_.progress();
  if (!progress || delivered_ == progress) return finished();
  report(std::move(*progress));
}

void StatusReporter::finished() {
  is_over_ = true;
  parts_.loop.cancel(timer_);
  parts_.loop.cancel(deadline_timer_);
  if (auto call = std::exchange(on_finished_, nullptr)) call();
}

}  // namespace lockstep::trainer
