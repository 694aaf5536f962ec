#include "deploy/agent/gpu_places.h"

#include <utility>

#include "deploy/agent/agent_messages.h"

namespace lockstep {

GpuPlaces::GpuPlaces(Options options, WorkerSlots& workers, Logger& logger,
                     std::function<void(uint32_t place)> start,
                     std::function<void(const wire::Envelope& notice)> send)
    : acts_(options.acts),
      workers_(workers),
      logger_(logger),
      start_(std::move(start)),
      send_(std::move(send)),
      watch_(options.nvml_library, std::move(options.gpu_of_number), options.is_alone) {}

void GpuPlaces::look(int64_t wait_ms) {
  watch_.look(workers_.gpu_places(), wait_ms);
  if (!watch_.status().is_ok() && !std::exchange(has_told_of_nvml_, true))
    logger_.warn("gpu_health_unknown",
                 "nobody looks whether the GPUs here are fit: " + watch_.status().message());
  tell();
}

void GpuPlaces::tell() {
  for (const GpuNews& news : watch_.news(workers_.gpu_places())) on_news(news);
}

void GpuPlaces::repeat() const {
  for (const auto& [local_rank, notice] : notices_) send_(notice);
}

void GpuPlaces::start_held(const google::protobuf::RepeatedField<uint32_t>& local_ranks) {
  for (const uint32_t local_rank : local_ranks) {
    const auto place = workers_.release_unfit(local_rank);
    if (!place) continue;
    logger_.warn("unfit_called", "worker " + std::to_string(local_rank) +
                                     " starts on a GPU that is not fit: too few others are left");
    start_(*place);
  }
}

void GpuPlaces::on_news(const GpuNews& news) {
  const std::string where = "the GPU of worker " + std::to_string(news.place.local_rank);
  const bool is_unfit = news.now.fitness == Fitness::kLeave;
  const bool was_unfit = news.before.fitness == Fitness::kLeave;
  if (news.now.fitness == Fitness::kWatch)
    logger_.warn("gpu_watched", where + ": " + news.now.reason);
  if (!is_unfit && !was_unfit) return;
  const wire::Envelope notice = notice_message(news);
  send_(notice);
  if (is_unfit) {
    logger_.error("gpu_unfit", where + " is not fit to train on: " + news.now.reason);
    notices_[news.place.local_rank] = notice;
    if (acts_) workers_.set_unfit(news.place.place);
  } else {
    logger_.info("gpu_fit", where + " is fit to train on again");
    notices_.erase(news.place.local_rank);
    if (acts_ && workers_.set_fit(news.place.place)) start_(news.place.place);
  }
}

}  // namespace lockstep
