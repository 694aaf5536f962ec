#include "data/doctor/ladder.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/base/clock.h"
#include "comm/run/job/graph_rule.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/job_shuffle.h"
#include "data/doctor/cold.h"
#include "data/doctor/machine_limits.h"
#include "data/doctor/sample_pool.h"
#include "data/doctor/windows.h"
#include "data/loader/job_loader.h"
#include "data/loader/loader.h"
#include "data/open/job_sample_cut.h"
#include "data/prefetch/prefetch_policy.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::doctor {
namespace {

constexpr uint32_t kReadsAtOnce = 8;  // of raw reads: as many as keep a disk or a server busy
constexpr double kMostlyCold = 0.75;  // share of bytes out of memory from which on a read is cold
constexpr uint32_t kRungsMeasured = 8;
constexpr uint32_t kWindows = 5;

uint64_t rounded_up(uint64_t number, uint64_t by) {
  return (number + by - 1) / by;
}

class Ladder {
 public:
  Ladder(const wire::JobSpec& job, const data::Dataset& dataset, const LadderOptions& options,
         Measurements& out)
      : job_(job),
        dataset_(dataset),
        options_(options),
        out_(out),
        shape_(share_of_worker(job, data::epoch_units(dataset))),
        end_ns_(clock_.monotonic_ns() + static_cast<int64_t>(options.seconds * 1e9)),
        prefetch_(job.data(), [](const std::string&) {}) {}

  Status measure();

 private:
  enum class Memory { kCold, kWarm };

  Status measure_raw();
  Status measure_making();
  Status measure_loader(Memory memory);
  Result<Rate> rate_of_reads(std::span<const uint64_t> samples, uint32_t threads, Memory memory);
  Result<Rate> rate_of_decoding(uint32_t threads);
  Result<Rate> rate_of_making(uint32_t threads);
  Result<Rate> rate_of_loader(Memory memory);
  Result<std::unique_ptr<data::Loader>> start_loader();
  void add(RungKind kind, const Rate& rate, double limit, const std::string& bound);
  bool is_over() const { return clock_.monotonic_ns() >= end_ns_ || options_.is_cut(); }
  WindowPlan next_plan();

  const wire::JobSpec& job_;
  const data::Dataset& dataset_;
  const LadderOptions& options_;
  Measurements& out_;
  const RunShape shape_;
  const SystemClock clock_;
  const int64_t end_ns_;
  uint32_t rungs_begun_ = 0;
  data::PrefetchPolicy prefetch_;  // as the job's workers read
  SamplePool pool_;
  double copy_rate_ = 0;      // bytes a second
  double making_limit_ = 0;   // samples a second
  std::string making_bound_;  // what that is
};

// The next rung gets its share of the time that is left, so a long rung takes time from the later
// ones. If no time is left, a rung has one short window.
WindowPlan Ladder::next_plan() {
  const uint32_t left = std::max(1u, kRungsMeasured - rungs_begun_);
  ++rungs_begun_;
  const double left_s = static_cast<double>(end_ns_ - clock_.monotonic_ns()) / 1e9;
  return {kWindows, std::max(left_s, 0.0) / left / kWindows, [this] { return is_over(); }};
}

void Ladder::add(RungKind kind, const Rate& rate, double limit, const std::string& bound) {
  out_.rungs.push_back({kind, rate, limit, bound});
}

// Cold: reads every sample once, then evicts the samples from memory again.
Result<Rate> Ladder::rate_of_reads(std::span<const uint64_t> samples, uint32_t threads,
                                   Memory memory) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto team, PoolTeam::start(dataset_, job_, threads));
  Windows windows(clock_, next_plan());
  Walk walk(samples.size());
  if (memory == Memory::kCold) make_cold(dataset_, samples);
  return windows.measure([&]() -> Result<uint64_t> {
    if (memory == Memory::kCold && walk.is_at_end())
      windows.aside([&] { return make_cold(dataset_, samples); });
    const auto part = walk.next(clock_, samples);
    LOCKSTEP_RETURN_IF_ERROR(team->read(part, pool_));
    return static_cast<uint64_t>(part.size());
  });
}

Status Ladder::measure_raw() {
  const Coldness cold = make_cold(dataset_, pool_.samples());
  out_.cold_share = cold.share;
  const bool is_cold = out_.cold_share >= kMostlyCold;
  const bool is_copied = dataset_.far().empty() &&
                         source::is_far(job_.data().train().path(), data::sample_cut(job_).cache);
  if (is_copied)
    out_.notes.push_back("the data are remote; the doctor reads their copy on this machine");
  if (dataset_.is<data::SampleMasks>())
    out_.notes.push_back("the rungs of reading and decoding measure images without their masks");
  if (job_.data().length_classes() > 0)
    out_.notes.push_back(
        "an epoch begins with its shortest documents (data.length_classes), and the doctor "
        "measures only those");
  if (is_cold) {
    options_.progress("reading samples that are not in memory");
    LOCKSTEP_ASSIGN_OR_RETURN(const Rate as_trained,
                              rate_of_reads(pool_.samples(), kReadsAtOnce, Memory::kCold));
    std::vector<uint64_t> sorted(pool_.samples().begin(), pool_.samples().end());
    std::sort(sorted.begin(), sorted.end());
    LOCKSTEP_ASSIGN_OR_RETURN(const Rate in_order,
                              rate_of_reads(sorted, kReadsAtOnce, Memory::kCold));
    add(RungKind::kRawCold, as_trained, in_order.median, "the same samples in stored order");
  } else {
    out_.notes.push_back("cold reads were not measured: " + cold.why_not);
  }
  options_.progress("reading samples");
  const uint32_t threads = out_.setting.data_threads;
  LOCKSTEP_ASSIGN_OR_RETURN(const Rate warm,
                            rate_of_reads(pool_.samples(), threads, Memory::kWarm));
  add(RungKind::kRaw, warm, copy_rate_ * threads / pool_.sample_bytes(),
      "memcpy on " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
  return Status::ok();
}

Result<Rate> Ladder::rate_of_decoding(uint32_t threads) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto team, PoolTeam::start(dataset_, job_, threads));
  Windows windows(clock_, next_plan());
  Walk walk(pool_.in_hand());
  return windows.measure([&]() -> Result<uint64_t> {
    const auto part = walk.next(clock_, pool_.samples());
    LOCKSTEP_RETURN_IF_ERROR(team->decode(part, walk.begun_at(), pool_));
    return static_cast<uint64_t>(part.size());
  });
}

Result<Rate> Ladder::rate_of_making(uint32_t threads) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto team, PoolTeam::start(dataset_, job_, threads));
  Windows windows(clock_, next_plan());
  Walk walk(pool_.in_hand());
  return windows.measure([&]() -> Result<uint64_t> {
    const auto part = walk.next(clock_, pool_.samples());
    LOCKSTEP_RETURN_IF_ERROR(team->make(part, walk.begun_at()));
    return static_cast<uint64_t>(part.size());
  });
}

// Measures the work of the threads. For encoded images it is decoding first, which is as fast as
// there are cores; for stored ones it is copying.
Status Ladder::measure_making() {
  const Setting& setting = out_.setting;
  if (setting.is_encoded) {
    options_.progress("decoding images");
    LOCKSTEP_ASSIGN_OR_RETURN(const Rate one, rate_of_decoding(1));
    LOCKSTEP_ASSIGN_OR_RETURN(const Rate all, rate_of_decoding(setting.data_threads));
    making_limit_ = one.median * setting.cores;
    making_bound_ = std::to_string(setting.cores) + (setting.cores == 1 ? " core" : " cores") +
                    " at the rate of one thread";
    add(RungKind::kDecode, all, making_limit_, making_bound_);
  } else {
    making_limit_ = copy_rate_ / static_cast<double>(pool_.input_bytes());
    making_bound_ = "memcpy of the bytes of a batch";
  }
  options_.progress("making samples");
  LOCKSTEP_ASSIGN_OR_RETURN(const Rate rate, rate_of_making(setting.data_threads));
  add(RungKind::kSamples, rate, making_limit_, making_bound_);
  return Status::ok();
}

Result<std::unique_ptr<data::Loader>> Ladder::start_loader() {
  data::LoaderOptions options = data::job_loader_options(job_, dataset_);
  options.shape = shape_;
  options.end_step = pool_.steps();
  options.slots = {0, shape_.slots};
  options.prefetch_batches = out_.setting.prefetch_batches;
  options.prefetch = &prefetch_;
  options.form = form_of(job_, dataset_);
  options.threads = out_.setting.data_threads;
  return data::Loader::start(dataset_, options);
}

// Takes batches as fast as they come. After the pool's last batch the loader starts again.
Result<Rate> Ladder::rate_of_loader(Memory memory) {
  std::unique_ptr<data::Loader> loader;
  Windows windows(clock_, next_plan());
  const auto restart = [&]() -> Status {
    loader.reset();
    if (memory == Memory::kCold) make_cold(dataset_, pool_.samples());
    LOCKSTEP_ASSIGN_OR_RETURN(loader, start_loader());
    return Status::ok();
  };
  LOCKSTEP_RETURN_IF_ERROR(restart());
  return windows.measure([&]() -> Result<uint64_t> {
    LOCKSTEP_ASSIGN_OR_RETURN(const data::Batch* batch, loader->next());
    if (batch == nullptr) {
      LOCKSTEP_RETURN_IF_ERROR(windows.aside(restart));
      LOCKSTEP_ASSIGN_OR_RETURN(batch, loader->next());
    }
    return uint64_t{batch->samples};
  });
}

Status Ladder::measure_loader(Memory memory) {
  const bool is_cold = memory == Memory::kCold;
  options_.progress(is_cold ? "loading batches that are not in memory" : "loading batches");
  LOCKSTEP_ASSIGN_OR_RETURN(const Rate rate, rate_of_loader(memory));
  double limit = making_limit_;
  std::string bound = making_bound_;
  const Rung* raw = out_.find(RungKind::kRawCold);
  if (is_cold && raw->limit < limit) {
    limit = raw->limit;
    bound = raw->bound;
  }
  add(is_cold ? RungKind::kLoaderCold : RungKind::kLoader, rate, limit, bound);
  return Status::ok();
}

Status Ladder::measure() {
  LOCKSTEP_ASSIGN_OR_RETURN(pool_, SamplePool::choose(dataset_, job_, shape_));
  options_.progress("copying memory");
  copy_rate_ = memory_copy_rate();
  LOCKSTEP_RETURN_IF_ERROR(measure_raw());
  if (!options_.is_cut()) LOCKSTEP_RETURN_IF_ERROR(measure_making());
  if (!options_.is_cut() && out_.find(RungKind::kRawCold) != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(measure_loader(Memory::kCold));
  if (!options_.is_cut()) LOCKSTEP_RETURN_IF_ERROR(measure_loader(Memory::kWarm));
  return dataset_.unchanged(pool_.samples());
}

}  // namespace

RunShape share_of_worker(const wire::JobSpec& job, uint64_t samples) {
  const uint32_t slots = std::max(1u, job.train().slots());
  const uint64_t slot = rounded_up(job.train().global_batch(), slots);
  const uint64_t own = rounded_up(slots, std::max(1u, job.cluster().workers()));
  return {samples, own * slot, static_cast<uint32_t>(own)};
}

Setting setting_of(const wire::JobSpec& job, const data::Dataset& dataset) {
  const uint32_t workers = std::max(1u, job.cluster().workers());
  Setting setting;
  setting.samples = data::epoch_units(dataset);
  setting.global_batch = job.train().global_batch();
  setting.slots = std::max(1u, job.train().slots());
  setting.slot_samples = rounded_up(setting.global_batch, setting.slots);
  setting.workers = workers;
  setting.input_bytes = data::input_bytes(dataset.shape(), form_of(job, dataset)) +
                        dataset.shape().label_words() * sizeof(int64_t);
  setting.data_threads = data::decode_threads(dataset, job.data().threads(), workers);
  setting.cores = std::max(1u, data::usable_processors() / workers);
  setting.prefetch_batches = std::max(1u, job.data().prefetch_batches());
  setting.is_encoded = dataset.is<data::EncodedImages>();
  setting.is_on_gpu = job.cluster().device() == "cuda";
  setting.can_use_graphs = setting.is_on_gpu && why_no_graphs(job).empty();
  setting.uses_graphs = wants_graphs(job) && setting.can_use_graphs;
  setting.precision = job.train().precision();
  setting.can_shuffle_blocks =
      !block_shuffle(job.data()).is_on() && job.data().length_classes() == 0;
  setting.read_ahead_mb = job.data().read_ahead_mb();
  return setting;
}

Status measure_data(const wire::JobSpec& job, const data::Dataset& dataset,
                    const LadderOptions& options, Measurements& out) {
  return Ladder(job, dataset, options, out).measure();
}

}  // namespace lockstep::doctor
