#include "data/loader/job_loader.h"

#include <algorithm>

#include "data/loader/job_order.h"
#include "data/loader/sample_team.h"

namespace lockstep::data {
namespace {

uint32_t batches_ahead(const wire::JobSpec& job) {
  return std::max(1u, job.data().prefetch_batches());
}

}  // namespace

uint32_t job_decode_threads(const wire::JobSpec& job, const Dataset& dataset) {
  return decode_threads(dataset, job.data().threads(), job.cluster().workers());
}

LoaderOptions job_loader_options(const wire::JobSpec& job, const Dataset& train) {
  LoaderOptions options;
  options.shape = {epoch_units(train), job.train().global_batch(), job.train().slots()};
  options.order = job_order(job, train);
  options.prefetch_batches = batches_ahead(job);
  options.transforms = {job.data().transforms().begin(), job.data().transforms().end()};
  options.threads = job_decode_threads(job, train);
  return options;
}

std::unique_ptr<LoaderTuning> make_job_tuning(const wire::JobSpec& job, const Dataset& train) {
  if (job.data().tune() != "auto") return nullptr;
  return std::make_unique<LoaderTuning>(
      LoaderSetting{.threads = job_decode_threads(job, train), .ahead = batches_ahead(job)},
      most_decode_threads(train, job.data().threads()));
}

}  // namespace lockstep::data
