#include "data/loader/sample_team.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "data/dataset/dataset.h"
#include "data/prefetch/sample_buffer.h"

namespace lockstep::data {

namespace {

constexpr uint32_t kMostDecodeThreads = 16;

}  // namespace

uint32_t decode_threads(const Dataset& dataset, uint32_t wanted, uint32_t workers) {
  if (!dataset.is<EncodedImages>()) return 1;
  if (wanted > 0) return wanted;
  return std::clamp(usable_processors() / std::max(workers, 1U), 1U, kMostDecodeThreads);
}

uint32_t most_decode_threads(const Dataset& dataset, uint32_t wanted) {
  if (!dataset.is<EncodedImages>() || wanted > 0) return 0;
  return std::min(usable_processors(), kMostDecodeThreads);
}

Result<std::unique_ptr<SampleTeam>> SampleTeam::start(uint32_t threads,
                                                      const Augmenter& augmenter) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto team, ThreadTeam::start(threads, "decode"));
  return std::unique_ptr<SampleTeam>(new SampleTeam(std::move(team), augmenter));
}

Status SampleTeam::resize(uint32_t threads) {
  Status resized = threads_->resize(threads);
  give_hands();
  return resized;
}

void SampleTeam::give_hands() {
  const size_t had = hands_.size();
  hands_.resize(threads_->threads());
  for (size_t i = had; i < hands_.size(); ++i) hands_[i].augmenter = augmenter_;
}

Status SampleTeam::read(const SampleReader& reader, std::span<const uint64_t> samples,
                        const StreamFn& stream_of, const std::atomic<bool>& stop, std::byte* inputs,
                        int64_t* labels, const BufferedBatch& buffered) {
  std::byte* const records = records_of(reader.shape(), labels, samples.size());
  const uint64_t record_bytes = reader.shape().record_bytes();
  return threads_->run(samples.size(), [&](uint32_t thread, uint64_t i) -> Status {
    if (stop.load(std::memory_order_relaxed)) return {Code::kAborted, "reading was stopped"};
    std::optional<uint64_t> stream;
    if (stream_of) stream = stream_of(i);
    SampleHand& hand = hands_[thread];
    std::optional<SampleBuffer::Held> held;
    if (buffered.buffer != nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(SampleBuffer::Held taken,
                                buffered.buffer->take(buffered.first + i, hand.encoded));
      held.emplace(std::move(taken));
    }
    return reader.read(samples[i], inputs + i * reader.input_bytes(),
                       labels + i * reader.shape().labels(), &hand, stream,
                       held ? held->bytes() : std::span<const uint8_t>(),
                       records == nullptr ? nullptr : records + i * record_bytes);
  });
}

Status SampleTeam::read_range(const SampleReader& reader, uint64_t begin, uint64_t end,
                              std::byte* inputs, int64_t* labels) {
  std::vector<uint64_t> samples(end - begin);
  std::iota(samples.begin(), samples.end(), begin);
  const std::atomic<bool> never{false};
  LOCKSTEP_RETURN_IF_ERROR(read(reader, samples, /*stream_of=*/{}, never, inputs, labels));
  return reader.unchanged(samples);
}

}  // namespace lockstep::data
