#include "worker/runner/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

constexpr size_t kHashBytes = 32;  // hex digits of an XXH3-128

struct TransferHeader {
  uint64_t step = 0;
  uint64_t phase = 0;
  uint64_t bytes = 0;        // of the tensors
  uint64_t proof_bytes = 0;  // StepProof::to_bytes()
  data::EvalTrack track;
  char hash[kHashBytes] = {};
  char resumed_from[limits::kCheckpointNameBytes] = {};
};

uint64_t total_bytes(std::span<const StateTensor> state) {
  uint64_t bytes = 0;
  for (const StateTensor& tensor : state) bytes += tensor.bytes;
  return bytes;
}

// Over what the bytes mean and the bytes; `data(i)` is tensor i's.
std::string hash_of(const TransferHeader& header, std::string_view proof,
                    std::span<const StateTensor> state,
                    const std::function<const std::byte*(size_t)>& data) {
  Xxh3 hash;
  hash.update(&header.step, sizeof header.step);
  hash.update(&header.phase, sizeof header.phase);
  for (const data::EvalMark* mark : {&header.track.best, &header.track.last, &header.track.kept}) {
    hash.update(&mark->step, sizeof mark->step);
    hash.update(&mark->loss, sizeof mark->loss);
    hash.update(&mark->correct, sizeof mark->correct);
    hash.update(&mark->samples, sizeof mark->samples);
  }
  hash.update(&header.track.since, sizeof header.track.since);
  hash.update(header.resumed_from, sizeof header.resumed_from);
  hash.update(proof);
  for (size_t i = 0; i < state.size(); ++i) {
    const StateTensor& tensor = state[i];
    hash.update(tensor.name.data(), tensor.name.size() + 1);  // with its end
    hash.update(&tensor.dtype, sizeof tensor.dtype);
    hash.update(tensor.shape.data(), tensor.shape.size() * sizeof(int64_t));
    hash.update(data(i), tensor.bytes);
  }
  return hash.hex();
}

// Broadcasts one after another, each with a tag of its own.
class Stream {
 public:
  Stream(Collective& collective, Generation generation, uint32_t root)
      : collective_(collective), generation_(generation), root_(root) {}

  Status chunk(std::span<std::byte> data) {
    const Tag tag{generation_, 0, Phase::kTrain, ++number_, data.size()};
    return collective_.broadcast(tag, data, root_);
  }

  // `place(offset, bytes)` says where the chunk lies or goes.
  Status tensor(size_t bytes, const std::function<std::byte*(size_t, size_t)>& place) {
    for (size_t at = 0; at < bytes; at += limits::kTransferChunkBytes) {
      const size_t part = std::min(limits::kTransferChunkBytes, bytes - at);
      LOCKSTEP_RETURN_IF_ERROR(chunk({place(at, part), part}));
    }
    return Status::ok();
  }

  Result<TransferHeader> header(std::span<const StateTensor> state) {
    TransferHeader header;
    LOCKSTEP_RETURN_IF_ERROR(chunk(std::as_writable_bytes(std::span(&header, 1))));
    header.resumed_from[sizeof header.resumed_from - 1] = '\0';
    const bool is_sane = header.proof_bytes <= limits::kTransferChunkBytes;
    if (header.bytes == total_bytes(state) && is_sane) return header;
    return Status(Code::kInternal, "rank " + std::to_string(root_) + " sends a state of " +
                                       std::to_string(header.bytes) + " bytes, here it has " +
                                       std::to_string(total_bytes(state)) +
                                       "; both must run the same job");
  }

 private:
  Collective& collective_;
  const Generation generation_;
  const uint32_t root_;
  uint32_t number_ = 0;
};

}  // namespace

Status send_state(Collective& collective, Generation generation, const StateOrigin& origin,
                  std::span<const StateTensor> state) {
  TransferHeader header;
  header.step = origin.at.step;
  header.phase = static_cast<uint64_t>(origin.at.phase);
  header.track = origin.track;
  header.bytes = total_bytes(state);
  LOCKSTEP_CHECK(origin.resumed_from.size() < sizeof header.resumed_from,
                 "names of checkpoints are short");
  std::memcpy(header.resumed_from, origin.resumed_from.data(), origin.resumed_from.size());
  std::string proof = origin.proof.to_bytes();
  if (proof.size() > limits::kTransferChunkBytes) proof = StepProof::unknown().to_bytes();
  header.proof_bytes = proof.size();
  const std::string hash = hash_of(header, proof, state, [&](size_t i) { return state[i].data; });
  std::memcpy(header.hash, hash.data(), kHashBytes);

  Stream stream(collective, generation, collective.rank());
  LOCKSTEP_RETURN_IF_ERROR(stream.chunk(std::as_writable_bytes(std::span(&header, 1))));
  LOCKSTEP_RETURN_IF_ERROR(stream.chunk(std::as_writable_bytes(std::span(proof))));
  for (const StateTensor& tensor : state)
    LOCKSTEP_RETURN_IF_ERROR(
        stream.tensor(tensor.bytes, [&](size_t at, size_t) { return tensor.data + at; }));
  return Status::ok();
}

Result<ReceivedState> receive_state(Collective& collective, Generation generation, uint32_t root,
                                    std::span<const StateTensor> state) {
  Stream stream(collective, generation, root);
  LOCKSTEP_ASSIGN_OR_RETURN(const TransferHeader header, stream.header(state));
  std::string proof(header.proof_bytes, '\0');
  LOCKSTEP_RETURN_IF_ERROR(stream.chunk(std::as_writable_bytes(std::span(proof))));
  ReceivedState received;
  received.origin = {
      {header.step, static_cast<Phase>(header.phase)}, header.resumed_from, {}, header.track};
  for (const StateTensor& tensor : state) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::span<std::byte> bytes,
        received.state.add(tensor.section, tensor.name, tensor.dtype, tensor.shape));
    LOCKSTEP_RETURN_IF_ERROR(
        stream.tensor(tensor.bytes, [&](size_t at, size_t) { return bytes.data() + at; }));
  }
  const auto data = [&](size_t i) { return received.state.tensors()[i].data; };
  if (hash_of(header, proof, state, data) != std::string_view(header.hash, kHashBytes))
    return Status(Code::kInternal, "the state that rank " + std::to_string(root) +
                                       " sent arrived damaged (its hash differs), or the "
                                       "two run different jobs");
  LOCKSTEP_ASSIGN_OR_RETURN(received.origin.proof, StepProof::from_bytes(proof));
  return received;
}

Status pass_state(Collective& collective, Generation generation, uint32_t root,
                  std::span<const StateTensor> state) {
  Stream stream(collective, generation, root);
  LOCKSTEP_ASSIGN_OR_RETURN(const TransferHeader header, stream.header(state));
  std::vector<std::byte> scratch(
      std::min<uint64_t>(limits::kTransferChunkBytes, std::max(header.bytes, header.proof_bytes)));
  LOCKSTEP_RETURN_IF_ERROR(stream.chunk(std::span(scratch).first(header.proof_bytes)));
  for (const StateTensor& tensor : state)
    LOCKSTEP_RETURN_IF_ERROR(
        stream.tensor(tensor.bytes, [&](size_t, size_t) { return scratch.data(); }));
  return Status::ok();
}

}  // namespace lockstep
