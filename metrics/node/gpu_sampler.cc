#include "metrics/node/gpu_sampler.h"

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/base/thread_name.h"
#include "comm/environment/blocked_signals.h"

namespace lockstep {

// The place of questions and answers. The thread also holds it, because it may outlive the sampler.
struct GpuSampler::Desk {
  std::mutex mutex;
  std::condition_variable changed;
  SystemClock clock;
  Status status;         // why there is no NVML
  bool is_over = true;   // the thread has ended, or never was
  bool is_told = false;  // the thread has to end
  bool is_asked = false;
  int64_t asked_ns = 0;
  int64_t read_ns = 0;  // 0: never read
  bool is_available = false;
  std::vector<GpuSample> gpus;

  void run(const nvml::NvmlApi& api, GpuReader::Detail detail);
  void answer_questions(GpuReader& reader);
  void leave(Status why);
};

void GpuSampler::Desk::run(const nvml::NvmlApi& api, GpuReader::Detail detail) {
  {
    Result<GpuReader> reader = GpuReader::start(api, detail);
    if (!reader.is_ok()) return leave(reader.status());
    answer_questions(*reader);
  }
  leave(Status::ok());
}

void GpuSampler::Desk::answer_questions(GpuReader& reader) {
  std::unique_lock lock(mutex);
  is_available = true;
  while (true) {
    changed.wait(lock, [this] { return is_asked || is_told; });
    if (is_told) return;
    lock.unlock();
    const int64_t now_ns = clock.monotonic_ns();
    std::vector<GpuSample> read = reader.read();
    lock.lock();
    gpus = std::move(read);
    read_ns = now_ns;
    is_asked = false;
    changed.notify_all();
  }
}

void GpuSampler::Desk::leave(Status why) {
  const std::lock_guard lock(mutex);
  status = std::move(why);
  is_over = true;
  is_available = false;
  changed.notify_all();
}

GpuSampler::GpuSampler(const std::string& nvml_library, GpuReader::Detail detail)
    : desk_(std::make_shared<Desk>()) {
  const Result<nvml::NvmlApi> api = nvml::open_nvml(nvml_library);
  desk_->status = api.status();
  if (!api.is_ok()) return;
  const BlockedSignals inherited;
  try {
    desk_->is_over = false;
    std::thread([desk = desk_, api = *api, detail] {
      name_this_thread("gpu metrics");
      desk->run(api, detail);
    }).detach();
  } catch (const std::system_error& error) {
    desk_->leave(
        Status(Code::kUnavailable, "no thread to ask NVML on: " + std::string(error.what())));
  }
}

GpuSampler::~GpuSampler() {
  std::unique_lock lock(desk_->mutex);
  desk_->is_told = true;
  desk_->changed.notify_all();
  desk_->changed.wait_for(lock, std::chrono::milliseconds(limits::kGpuLeaveWaitMs),
                          [this] { return desk_->is_over; });
}

GpuSamples GpuSampler::sample(int64_t wait_ms) {
  std::unique_lock lock(desk_->mutex);
  if (!desk_->is_over && !desk_->is_asked) {
    desk_->is_asked = true;
    desk_->asked_ns = desk_->clock.monotonic_ns();
    desk_->changed.notify_all();
    desk_->changed.wait_for(lock, std::chrono::milliseconds(wait_ms),
                            [this] { return !desk_->is_asked || desk_->is_over; });
  }
  GpuSamples samples{
      .is_available = desk_->is_available, .is_answered = !desk_->is_asked, .gpus = desk_->gpus};
  const int64_t since_ns = desk_->read_ns > 0 ? desk_->read_ns : desk_->asked_ns;
  if (!desk_->is_over)
    samples.age_seconds = static_cast<double>(desk_->clock.monotonic_ns() - since_ns) * 1e-9;
  return samples;
}

Status GpuSampler::status() const {
  const std::lock_guard lock(desk_->mutex);
  return desk_->status;
}

}  // namespace lockstep
