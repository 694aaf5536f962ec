#include "data/read/loader.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/thread_name.h"
#include "data/index/quiet_signals.h"
#include "data/order/digest.h"
#include "data/read/look_ahead.h"
#include "data/read/sample_team.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kAlignment = 64;  // a cache line, and the widest vector

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeDeleter>;

uint64_t memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Samples lie in random order: asked for two samples ahead, they cost 0.2 us instead of 0.55 (784
// bytes each). The hardware follows by itself after the first few lines of a long one.
constexpr uint64_t kSamplesAhead = 2;
constexpr uint64_t kPrefetchBytes = 4096;

void prefetch(const uint8_t* sample, uint64_t bytes) {
  for (uint64_t i = 0; i < std::min(bytes, kPrefetchBytes); i += kAlignment)
    __builtin_prefetch(sample + i);
}

}  // namespace

struct Loader::Impl {
  Impl(const Dataset& data, LoaderOptions wanted, SampleReader with, Augmenter varied)
      : dataset(data),
        options(std::move(wanted)),
        reader(std::move(with)),
        ahead(dataset, options) {
    hand.augmenter = std::move(varied);
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    breaks_off.store(true);
    space.notify_all();
    if (thread.joinable()) thread.join();
  }

  Status allocate();
  void run();
  bool produce(const StepPlan& plan, Step step, uint32_t slot);
  bool wait_for_space();
  Status fill(Batch& batch, std::byte* memory, const StepPlan& plan, const PositionRange& range);
  template <typename StreamOf>
  Status copy_stored(std::span<const uint64_t> samples, const StreamOf& stream_of,
                     std::byte* inputs, int64_t* labels);
  bool end_with(Status status);

  const Dataset& dataset;
  const LoaderOptions options;
  const SampleReader reader;

  // One more buffer than may be ready: the consumer holds one.
  AlignedBytes memory;
  uint64_t buffer_bytes = 0;
  uint64_t inputs_bytes = 0;
  std::vector<Batch> ring;

  // Producer's own.
  SampleHand hand;
  BatchMixer mixer;
  std::unique_ptr<SampleTeam> team;  // of encoded images
  std::optional<EpochOrder> order;
  std::optional<Epoch> order_epoch;
  std::vector<uint64_t> indices;
  LookAhead ahead;

  mutable std::mutex mutex;
  std::condition_variable space;  // the consumer took enough, or stop
  std::condition_variable ready;  // a batch was produced, or all are
  uint64_t produced = 0;
  uint64_t taken = 0;
  bool all_produced = false;
  Status failure;  // of the batch after the last one that was produced
  bool stop = false;

  std::atomic<bool> breaks_off{false};  // as `stop`, for who is in the middle of a batch
  std::atomic<uint64_t> waited_ns{0};
  std::thread thread;  // last: it uses all of the above
};

Status Loader::Impl::allocate() {
  const uint64_t samples = max_slot_samples(options.shape);
  const uint64_t labels_bytes = dataset.shape().labels() * sizeof(int64_t);
  const uint64_t most = memory_bytes();
  const uint64_t buffers = uint64_t{options.prefetch_batches} + 1;
  const uint64_t sample_bytes = reader.input_bytes() + labels_bytes;
  if (samples > std::numeric_limits<uint32_t>::max() ||
      samples > most / buffers / (sample_bytes + 2 * kAlignment))
    return Status(Code::kConfig,
                  "prefetching " + std::to_string(buffers) + " batches of " +
                      std::to_string(samples) + " samples needs more than the memory of this " +
                      "machine; use a smaller train.global_batch, more slots, or a smaller " +
                      "data.prefetch_batches");
  inputs_bytes = aligned(samples * reader.input_bytes());
  buffer_bytes = inputs_bytes + aligned(samples * labels_bytes);
  memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, buffer_bytes * buffers)));
  if (memory == nullptr)
    return Status(Code::kConfig, "no memory for " + std::to_string(buffer_bytes * buffers) +
                                     " bytes of batches; use a smaller data.prefetch_batches");
  ring.resize(buffers);
  indices.resize(samples);
  return Status::ok();
}

void Loader::Impl::run() {
  for (Step step = options.first_step; step < options.end_step; ++step) {
    const StepPlan plan = plan_step(options.shape, step);
    for (uint32_t slot = options.slots.begin; slot < options.slots.end; ++slot)
      if (!produce(plan, step, slot)) return;
  }
  end_with(Status::ok());
}

// There is nothing behind what was produced. False, for produce().
bool Loader::Impl::end_with(Status status) {
  std::lock_guard lock(mutex);
  failure = std::move(status);
  all_produced = true;
  ready.notify_one();
  return false;
}

// False when the loader is stopping, or has failed.
bool Loader::Impl::produce(const StepPlan& plan, Step step, uint32_t slot) {
  const PositionRange range = slot_positions(plan, slot, options.shape.slots);
  if (range.size() == 0 || options.skips.contains(step, slot)) return true;
  ahead.go_on();
  if (!wait_for_space()) return false;
  const uint64_t index = produced % ring.size();  // only this thread changes `produced`
  Batch& batch = ring[index];
  batch.step = step;
  batch.slot = slot;
  if (options.in_hand != nullptr) options.in_hand->reads(step, slot);
  Status filled = fill(batch, memory.get() + index * buffer_bytes, plan, range);
  if (options.in_hand != nullptr) options.in_hand->has_read();
  if (!filled.is_ok()) return end_with(std::move(filled));
  ahead.has_used_one();
  std::lock_guard lock(mutex);
  ++produced;
  ready.notify_one();
  return !stop;
}

bool Loader::Impl::wait_for_space() {
  std::unique_lock lock(mutex);
  const uint64_t capacity = options.prefetch_batches;
  // Once full, it sleeps until half is gone: one wake-up fills several batches, and the worker on
  // the same core is interrupted less often.
  if (produced - taken >= capacity)
    space.wait(lock, [&] { return stop || produced - taken <= capacity / 2; });
  return !stop;
}

Status Loader::Impl::fill(Batch& batch, std::byte* buffer, const StepPlan& plan,
                          const PositionRange& range) {
  if (order_epoch != plan.epoch) {
    order.emplace(options.order, plan.epoch);
    order_epoch = plan.epoch;
  }
  batch.samples = static_cast<uint32_t>(range.size());
  batch.shape = dataset.shape();
  auto* labels = reinterpret_cast<int64_t*>(buffer + inputs_bytes);
  if (batch.shape.is_sequence())
    batch.tokens = reinterpret_cast<const int64_t*>(buffer);
  else if (options.form == ImageForm::kStored && !batch.shape.is_row)
    batch.stored = reinterpret_cast<const uint8_t*>(buffer);
  else
    batch.images = reinterpret_cast<const float*>(buffer);
  batch.labels = labels;
  // All indices first: their computations overlap, and the digest is of what is read below.
  for (uint64_t i = 0; i < batch.samples; ++i) indices[i] = order->at(range.begin + i);
  SampleDigest digest(0, plan.epoch);
  for (uint64_t i = 0; i < batch.samples; ++i) digest.add(range.begin + i, indices[i]);
  batch.digest = digest.value();
  const auto samples = std::span(indices).first(batch.samples);
  const auto stream_of = [&](uint64_t i) {
    return Augmenter::stream_of(options.order.seed, plan.epoch, range.begin + i);
  };
  if (team != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(team->read(reader, samples, stream_of, breaks_off, buffer, labels));
  else
    LOCKSTEP_RETURN_IF_ERROR(copy_stored(samples, stream_of, buffer, labels));
  batch.shares = mixer.mix(stream_of(0), batch.samples, buffer);
  return reader.unchanged(samples);
}

template <typename StreamOf>
Status Loader::Impl::copy_stored(std::span<const uint64_t> samples, const StreamOf& stream_of,
                                 std::byte* inputs, int64_t* labels) {
  for (uint64_t i = 0; i < samples.size(); ++i) {
    if (i + kSamplesAhead < samples.size())
      prefetch(dataset.sample(samples[i + kSamplesAhead]), dataset.shape().stored_bytes());
    LOCKSTEP_RETURN_IF_ERROR(reader.read(samples[i], inputs + i * reader.input_bytes(),
                                         labels + i * dataset.shape().labels(), &hand,
                                         stream_of(i)));
  }
  return Status::ok();
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::start(const Dataset& dataset,
                                              const LoaderOptions& options) {
  LOCKSTEP_CHECK(options.shape.samples == dataset.samples(), "run made for another dataset");
  LOCKSTEP_CHECK(options.order.samples == dataset.samples(), "order made for another dataset");
  LOCKSTEP_CHECK(
      options.slots.begin <= options.slots.end && options.slots.end <= options.shape.slots,
      "slots of this rank beyond those of the run");
  if (options.prefetch_batches == 0 || options.prefetch_batches > limits::kPrefetchBatches)
    return Status(Code::kUsage, "data.prefetch_batches is " +
                                    std::to_string(options.prefetch_batches) + "; use 1 to " +
                                    std::to_string(limits::kPrefetchBatches));
  const auto& statistics = options.statistics.empty() ? dataset.statistics() : options.statistics;
  LOCKSTEP_ASSIGN_OR_RETURN(SampleReader reader, SampleReader::create(dataset, options.transforms,
                                                                      statistics, options.form));
  LOCKSTEP_ASSIGN_OR_RETURN(TransformList transforms, parse_transforms(options.transforms));
  LOCKSTEP_ASSIGN_OR_RETURN(Augmenter augmenter, Augmenter::create(std::move(transforms.augment),
                                                                   dataset.shape(), statistics));
  auto impl = std::make_unique<Impl>(dataset, options, std::move(reader), std::move(augmenter));
  impl->mixer = BatchMixer(transforms.mix, dataset.shape(), impl->reader.input_bytes());
  LOCKSTEP_RETURN_IF_ERROR(impl->allocate());
  if (dataset.encoded_form() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(impl->team, SampleTeam::start(options.threads, impl->hand.augmenter));
  }
  try {
    const QuietSignals quiet;
    impl->thread = std::thread([raw = impl.get()] {
      name_this_thread("loader");
      raw->run();
    });
  } catch (const std::system_error& error) {
    return Status(Code::kInternal, std::string("cannot start the loader's thread: ") +
                                       error.what() + "; is a process limit (ulimit -u) reached?");
  }
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
}

Result<const Batch*> Loader::next() {
  Impl& loader = *impl_;
  std::unique_lock lock(loader.mutex);
  const auto available = [&] { return loader.produced > loader.taken || loader.all_produced; };
  if (!available()) {
    const auto begin = std::chrono::steady_clock::now();
    loader.ready.wait(lock, available);
    loader.waited_ns += static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  }
  if (loader.produced == loader.taken) {
    LOCKSTEP_RETURN_IF_ERROR(loader.failure);
    return static_cast<const Batch*>(nullptr);
  }
  const Batch* batch = &loader.ring[loader.taken % loader.ring.size()];
  ++loader.taken;
  if (loader.produced - loader.taken <= loader.options.prefetch_batches / 2)
    loader.space.notify_one();
  return batch;
}

uint64_t Loader::wait_ns() const {
  return impl_->waited_ns;
}

uint32_t Loader::ready_batches() const {
  std::lock_guard lock(impl_->mutex);
  return static_cast<uint32_t>(impl_->produced - impl_->taken);
}

}  // namespace lockstep::data
