#include "data/loader/loader.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/thread_name.h"
#include "comm/base/work_in_hand.h"
#include "comm/environment/process_limit.h"
#include "comm/run/plan/batch_sequence.h"
#include "comm/run/plan/digest.h"
#include "data/base/quiet_signals.h"
#include "data/dataset/dataset.h"
#include "data/loader/batch_memory.h"
#include "data/loader/batch_ring.h"
#include "data/loader/cut_padding.h"
#include "data/loader/sample_reader.h"
#include "data/loader/sample_team.h"
#include "data/loader/tuning_link.h"
#include "data/prefetch/make_prefetcher.h"
#include "data/prefetch/prefetcher.h"
#include "data/prefetch/sample_buffer.h"

namespace lockstep::data {
namespace {

// Samples lie in random order: asked for two samples ahead, they cost 0.2 us instead of 0.55 (784
// bytes each). The hardware follows by itself after the first few lines of a long one.
constexpr uint64_t kSamplesAhead = 2;
constexpr uint64_t kPrefetchBytes = 4096;

BatchSequenceOptions sequence_of(const LoaderOptions& options) {
  return {options.shape,    options.order, options.first_step,
          options.end_step, options.slots, options.skips};
}

}  // namespace

struct Loader::Impl {
  Impl(const Dataset& data, LoaderOptions wanted, SampleReader with, Augmenter varied)
      : dataset(data),
        stored(data.as<StoredSamples>()),
        sequences(data.as<Sequences>()),
        options(std::move(wanted)),
        reader(std::move(with)),
        sequence(sequence_of(options)) {
    hand.augmenter = std::move(varied);
  }

  ~Impl() {
    if (ring != nullptr) ring->stop();
    breaks_off.store(true);
    if (prefetcher != nullptr) prefetcher->stop();
    if (thread.joinable()) thread.join();
  }

  Status allocate();
  void run();
  bool produce(const PlannedBatch& planned);
  Status fill(Batch& batch, std::byte* inputs, int64_t* labels, const PlannedBatch& planned);
  template <typename StreamOf>
  Status copy_mapped(std::span<const uint64_t> samples, const StreamOf& stream_of,
                     std::byte* inputs, int64_t* labels);
  template <typename StreamOf>
  Status copy_read(const BufferedBatch& buffered, std::span<const uint64_t> samples,
                   const StreamOf& stream_of, std::byte* inputs, int64_t* labels);
  bool end_with(Status status);

  const Dataset& dataset;
  const std::optional<As<StoredSamples>> stored;
  const std::optional<As<Sequences>> sequences;
  const LoaderOptions options;
  const SampleReader reader;

  std::unique_ptr<BatchRing> ring;
  std::unique_ptr<TuningLink> tuning;

  // Producer's own.
  SampleHand hand;
  BatchMixer mixer;
  std::unique_ptr<SampleTeam> team;  // of encoded images
  BatchSequence sequence;
  std::vector<uint64_t> indices;
  std::unique_ptr<Prefetcher> prefetcher;

  std::atomic<bool> breaks_off{false};  // the ring's stop, for threads in the middle of a batch
  std::thread thread;                   // last: it uses all of the above
};

Status Loader::Impl::allocate() {
  const uint64_t samples = max_slot_samples(options.shape);
  const uint64_t labels_bytes = dataset.shape().label_words() * sizeof(int64_t);
  LOCKSTEP_ASSIGN_OR_RETURN(ring, BatchRing::make({samples, reader.input_bytes(), labels_bytes},
                                                  options.prefetch_batches));
  tuning = std::make_unique<TuningLink>(options.tuning, options.threads, *ring);
  indices.resize(samples);
  return Status::ok();
}

void Loader::Impl::run() {
  while (const auto planned = sequence.next())
    if (!produce(*planned)) return;
  end_with(Status::ok());
}

// No batch follows the produced ones. Returns false, for produce().
bool Loader::Impl::end_with(Status status) {
  ring->end_with(std::move(status));
  return false;
}

// False when the loader is stopping, or has failed.
bool Loader::Impl::produce(const PlannedBatch& planned) {
  BatchRing::Place* const place = ring->wait_for_place();
  if (place == nullptr) return false;
  tuning->begin_batch(team.get());
  Batch& batch = place->batch;
  batch.step = planned.step;
  batch.slot = planned.slot;
  if (options.in_hand != nullptr) options.in_hand->reads(planned.step, planned.slot);
  prefetcher->before(planned);
  Status filled = fill(batch, place->inputs, place->labels, planned);
  if (options.in_hand != nullptr) options.in_hand->has_read();
  if (!filled.is_ok()) return end_with(std::move(filled));
  tuning->end_batch(*place);
  const bool goes_on = ring->made();
  prefetcher->after(planned);
  return goes_on;
}

Status Loader::Impl::fill(Batch& batch, std::byte* inputs, int64_t* labels,
                          const PlannedBatch& planned) {
  const PositionRange& range = planned.range;
  batch.samples = static_cast<uint32_t>(range.size());
  batch.shape = dataset.shape();
  if (batch.shape.is_sequence() || batch.shape.has_ids())
    batch.tokens = reinterpret_cast<const int64_t*>(inputs);
  else if (options.form == ImageForm::kStored && batch.shape.has_bytes())
    batch.stored = reinterpret_cast<const uint8_t*>(inputs);
  else
    batch.images = reinterpret_cast<const float*>(inputs);
  batch.labels = labels;
  // All indices first: their computations overlap, and the digest covers what is read below.
  const EpochOrder& order = sequence.order_of(planned.epoch);
  for (uint64_t i = 0; i < batch.samples; ++i) indices[i] = order.at(range.begin + i);
  const auto samples = std::span(indices).first(batch.samples);
  batch.digest = delivered_digest(order, planned.epoch, range.begin, samples);
  const auto stream_of = [&](uint64_t i) {
    return Augmenter::stream_of(options.order.seed, planned.epoch, range.begin + i);
  };
  const BufferedBatch buffered = prefetcher->buffered();
  if (team != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(
        team->read(reader, samples, stream_of, breaks_off, inputs, labels, buffered));
  else if (buffered.buffer != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(copy_read(buffered, samples, stream_of, inputs, labels));
  else
    LOCKSTEP_RETURN_IF_ERROR(copy_mapped(samples, stream_of, inputs, labels));
  if (batch.shape.is_padded && !options.keeps_padding)
    cut_padding(*sequences, samples, inputs, labels, &batch.shape);
  batch.shares = mixer.mix(stream_of(0), batch.samples, inputs);
  return reader.unchanged(samples);
}

// A sample takes half a microsecond, so this loop does nothing for reading ahead.
template <typename StreamOf>
Status Loader::Impl::copy_mapped(std::span<const uint64_t> samples, const StreamOf& stream_of,
                                 std::byte* inputs, int64_t* labels) {
  const uint64_t prefetched = std::min(dataset.shape().stored_bytes(), kPrefetchBytes);
  std::byte* record = records_of(dataset.shape(), labels, samples.size());
  for (uint64_t i = 0; i < samples.size(); ++i) {
    if (stored && i + kSamplesAhead < samples.size()) {
      const auto [from, number] = stored->at(samples[i + kSamplesAhead]);
      const uint8_t* const next = from.sample(number);
      for (uint64_t at = 0; at < prefetched; at += BatchMemory::kAlignment)
        __builtin_prefetch(next + at);
    }
    LOCKSTEP_RETURN_IF_ERROR(reader.read(samples[i], inputs + i * reader.input_bytes(),
                                         labels + i * dataset.shape().labels(), &hand, stream_of(i),
                                         {}, record));
    if (record != nullptr) record += dataset.shape().record_bytes();
  }
  return Status::ok();
}

template <typename StreamOf>
Status Loader::Impl::copy_read(const BufferedBatch& buffered, std::span<const uint64_t> samples,
                               const StreamOf& stream_of, std::byte* inputs, int64_t* labels) {
  std::byte* record = records_of(dataset.shape(), labels, samples.size());
  for (uint64_t i = 0; i < samples.size(); ++i) {
    const auto held = buffered.buffer->take(buffered.first + i, hand.encoded);
    if (!held.is_ok()) {
      LOCKSTEP_RETURN_IF_ERROR(reader.unchanged(samples));  // which says more
      return held.status();
    }
    LOCKSTEP_RETURN_IF_ERROR(reader.read(samples[i], inputs + i * reader.input_bytes(),
                                         labels + i * dataset.shape().labels(), &hand, stream_of(i),
                                         held->bytes(), record));
    if (record != nullptr) record += dataset.shape().record_bytes();
  }
  return Status::ok();
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::start(const Dataset& dataset,
                                              const LoaderOptions& options) {
  const uint64_t units = epoch_units(dataset);
  LOCKSTEP_CHECK(options.shape.samples == units, "run made for another dataset");
  LOCKSTEP_CHECK(options.order.samples == units, "order made for another dataset");
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
  if (dataset.is<EncodedImages>()) {
    LOCKSTEP_ASSIGN_OR_RETURN(impl->team, SampleTeam::start(options.threads, impl->hand.augmenter));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(impl->prefetcher,
                            make_prefetcher(dataset, sequence_of(options), options.prefetch));
  try {
    const QuietSignals quiet;
    impl->thread = std::thread([raw = impl.get()] {
      name_this_thread("loader");
      raw->run();
    });
  } catch (const std::system_error& error) {
    return Status(Code::kInternal, std::string("cannot start the loader's thread: ") +
                                       error.what() + "; " + kRaiseProcessLimit);
  }
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
}

Result<const Batch*> Loader::next() {
  Impl& loader = *impl_;
  loader.tuning->asks();
  LOCKSTEP_ASSIGN_OR_RETURN(const BatchRing::Place* const place, loader.ring->take());
  if (place == nullptr) return static_cast<const Batch*>(nullptr);
  loader.tuning->got(*place);
  return &place->batch;
}

Result<std::shared_ptr<const Batch>> Loader::take() {
  LOCKSTEP_ASSIGN_OR_RETURN(const Batch* const batch, next());
  return batch == nullptr ? nullptr : impl_->ring->share();
}

uint64_t Loader::wait_ns() const {
  return impl_->ring->wait_ns();
}

uint32_t Loader::ready_batches() const {
  return impl_->ring->ready();
}

}  // namespace lockstep::data
