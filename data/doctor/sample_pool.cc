#include "data/doctor/sample_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/run/plan/epoch_order.h"
#include "data/loader/job_order.h"
#include "data/transform/augment.h"
#include "data/transform/transform_list.h"

namespace lockstep::doctor {
namespace {

constexpr uint64_t kPoolBytes = 64 * kMib;
constexpr uint64_t kPoolSamples = 65'536;
constexpr uint64_t kEncodedSamples = 1'024;  // they are larger than what is made of them
constexpr int64_t kPartNs = 5'000'000;  // much more than a thread wake-up, much less than a window

std::vector<std::string> transforms_of(const wire::JobSpec& job) {
  return {job.data().transforms().begin(), job.data().transforms().end()};
}

}  // namespace

data::ImageForm form_of(const wire::JobSpec& job, const data::Dataset& dataset) {
  const data::SampleShape shape = dataset.shape();
  const bool is_stored = job.cluster().device() == "cuda" && shape.has_bytes();
  return is_stored ? data::ImageForm::kStored : data::ImageForm::kFloats;
}

Result<SamplePool> SamplePool::choose(const data::Dataset& dataset, const wire::JobSpec& job,
                                      const RunShape& shape) {
  SamplePool pool;
  const EpochOrder order(data::job_order(job, dataset), /*epoch=*/0);
  const uint64_t epoch_steps = steps_per_epoch(shape);
  pool.stored_bytes_ = dataset.shape().stored_bytes();
  pool.is_encoded_ = dataset.is<data::EncodedImages>();
  const uint64_t most =
      pool.is_encoded_ ? kEncodedSamples : std::min(kPoolSamples, kPoolBytes / pool.stored_bytes_);
  while (pool.steps_ < epoch_steps && (pool.steps_ == 0 || pool.samples_.size() < most)) {
    const StepPlan plan = plan_step(shape, pool.steps_++);
    for (uint64_t i = 0; i < plan.samples; ++i) pool.samples_.push_back(order.at(plan.begin + i));
  }
  if (pool.is_encoded_) pool.encoded_.resize(pool.samples_.size());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto reader, data::SampleReader::create(dataset, transforms_of(job),
                                                    dataset.statistics(), form_of(job, dataset)));
  pool.input_bytes_ = reader.input_bytes();
  return pool;
}

double SamplePool::sample_bytes() const {
  const uint64_t count = in_hand();
  if (!is_encoded_ || count == 0) return static_cast<double>(stored_bytes_);
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) bytes += encoded_[i].size();
  return static_cast<double>(bytes) / static_cast<double>(count);
}

uint64_t SamplePool::in_hand() const {
  if (!is_encoded_) return samples_.size();
  const auto gap = std::find_if(encoded_.begin(), encoded_.end(),
                                [](const auto& sample) { return sample.empty(); });
  return static_cast<uint64_t>(gap - encoded_.begin());
}

std::span<const uint64_t> Walk::next(const Clock& clock, std::span<const uint64_t> samples) {
  const int64_t now_ns = clock.monotonic_ns();
  if (last_ns_ > 0 && now_ns - last_ns_ < kPartNs) part_ = std::min(2 * part_, places_);
  last_ns_ = now_ns;
  if (at_ == places_) at_ = 0;
  begun_at_ = at_;
  const uint64_t count = std::min(part_, places_ - at_);
  at_ += count;
  return samples.subspan(begun_at_, count);
}

Result<std::unique_ptr<PoolTeam>> PoolTeam::start(const data::Dataset& dataset,
                                                  const wire::JobSpec& job, uint32_t threads) {
  const auto& statistics = dataset.statistics();
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto reader,
      data::SampleReader::create(dataset, transforms_of(job), statistics, form_of(job, dataset)));
  LOCKSTEP_ASSIGN_OR_RETURN(data::TransformList list, data::parse_transforms(transforms_of(job)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const data::Augmenter augmenter,
      data::Augmenter::create(std::move(list.augment), dataset.shape(), statistics));
  LOCKSTEP_ASSIGN_OR_RETURN(auto team, data::ThreadTeam::start(threads, "doctor"));
  std::unique_ptr<PoolTeam> pool(new PoolTeam(dataset, job, std::move(reader), std::move(team)));
  for (Room& room : pool->rooms_) {
    room.hand.augmenter = augmenter;
    room.stored.resize(dataset.shape().stored_bytes());
    room.input.resize(pool->reader_.input_bytes());
    room.labels.resize(dataset.shape().label_words());
  }
  return pool;
}

uint64_t PoolTeam::stream_of(uint64_t place) const {
  return data::Augmenter::stream_of(seed_, /*epoch=*/0, place);
}

Status PoolTeam::read(std::span<const uint64_t> samples, SamplePool& pool) {
  // The pool keeps the bytes of its own samples, but not of others, such as the same in another
  // order.
  const auto all = pool.samples();
  const bool is_of_pool = !samples.empty() && samples.data() >= all.data() &&
                          samples.data() + samples.size() <= all.data() + all.size();
  const auto first = static_cast<uint64_t>(is_of_pool ? samples.data() - all.data() : 0);
  return threads_->run(samples.size(), [&](uint32_t thread, uint64_t i) -> Status {
    Room& room = rooms_[thread];
    const data::SamplePlace place = dataset_.place_of(samples[i]);
    if (encoded_) {
      const auto [from, number] = encoded_->at(place);
      return from.read_encoded(number, is_of_pool ? pool.encoded_[first + i] : room.hand.encoded);
    }
    if (stored_) {
      const auto [from, number] = stored_->at(place);
      std::memcpy(room.stored.data(), from.sample(number), room.stored.size());
      return Status::ok();
    }
    const auto [from, number] = sequences_->at(place);
    from.make_sequence(number, reinterpret_cast<int64_t*>(room.input.data()), room.labels.data());
    return Status::ok();
  });
}

Status PoolTeam::decode(std::span<const uint64_t> samples, uint64_t first, const SamplePool& pool) {
  return threads_->run(samples.size(), [&](uint32_t thread, uint64_t i) -> Status {
    Room& room = rooms_[thread];
    const auto [from, number] = encoded_->at(samples[i]);
    room.hand.decoded.resize(dataset_.shape().elements());
    return room.hand.decoder
        .decode(pool.encoded(first + i), from.wanted(), stream_of(first + i),
                room.hand.decoded.data())
        .with_context(from.name_of(number));
  });
}

Status PoolTeam::make(std::span<const uint64_t> samples, uint64_t first) {
  return threads_->run(samples.size(), [&](uint32_t thread, uint64_t i) -> Status {
    Room& room = rooms_[thread];
    return reader_.read(samples[i], room.input.data(), room.labels.data(), &room.hand,
                        stream_of(first + i), {},
                        records_of(reader_.shape(), room.labels.data(), 1));
  });
}

}  // namespace lockstep::doctor
