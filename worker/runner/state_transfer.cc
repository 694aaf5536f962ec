#include "worker/runner/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/run/checkpoint/state_table.h"

namespace lockstep {
namespace {

constexpr size_t kHashBytes = 32;  // hex digits of an XXH3-128

struct TransferHeader {
  uint64_t step = 0;
  uint64_t phase = 0;
  uint64_t table_bytes = 0;  // state_table()
  uint64_t proof_bytes = 0;  // StepProof::to_bytes()
  EvalTrack track;
  char table_hash[kHashBytes] = {};
  char hash[kHashBytes] = {};
  char resumed_from[limits::kCheckpointNameBytes] = {};
};

// The limit of a table. A state that can be written has a table shorter than this, the limit of its
// file's header.
constexpr uint64_t kTableLimit = limits::kSafetensorsHeaderBytes;

std::string xxh3_of(std::string_view bytes) {
  Xxh3 hash;
  hash.update(bytes);
  return hash.hex();
}

// Covers the description of the bytes, and the bytes.
std::string hash_of(const TransferHeader& header, std::string_view table, std::string_view proof,
                    std::span<const StateTensor> state) {
  Xxh3 hash;
  hash.update(&header.step, sizeof header.step);
  hash.update(&header.phase, sizeof header.phase);
  for (const EvalMark* mark : {&header.track.best, &header.track.last, &header.track.kept}) {
    hash.update(&mark->step, sizeof mark->step);
    hash.update(&mark->loss, sizeof mark->loss);
    hash.update(&mark->correct, sizeof mark->correct);
    hash.update(&mark->samples, sizeof mark->samples);
  }
  hash.update(&header.track.since, sizeof header.track.since);
  hash.update(header.resumed_from, sizeof header.resumed_from);
  hash.update(proof);
  hash.update(table);
  for (const StateTensor& tensor : state) hash.update(tensor.data, tensor.bytes);
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

  // Broadcasts data of any length.
  Status pieces(std::span<std::byte> data) {
    for (size_t at = 0; at < data.size(); at += limits::kTransferChunkBytes)
      LOCKSTEP_RETURN_IF_ERROR(
          chunk(data.subspan(at, std::min(limits::kTransferChunkBytes, data.size() - at))));
    return Status::ok();
  }

  // Receives the beginning of a state, in a member that does not send it.
  Status receive_beginning() {
    LOCKSTEP_RETURN_IF_ERROR(chunk(std::as_writable_bytes(std::span(&header, 1))));
    header.resumed_from[sizeof header.resumed_from - 1] = '\0';
    if (header.table_bytes > kTableLimit || header.proof_bytes > limits::kTransferChunkBytes)
      return damaged("its header asks for more memory than a table or a proof needs");
    table.assign(header.table_bytes, '\0');
    LOCKSTEP_RETURN_IF_ERROR(pieces(std::as_writable_bytes(std::span(table))));
    if (xxh3_of(table) != std::string_view(header.table_hash, kHashBytes))
      return damaged("the hash of its table differs");
    proof.assign(header.proof_bytes, '\0');
    LOCKSTEP_RETURN_IF_ERROR(chunk(std::as_writable_bytes(std::span(proof))));
    auto parsed = parse_state_table(table);
    if (!parsed.is_ok()) return damaged(parsed.status().message());
    tensors = std::move(parsed->tensors);
    return Status::ok();
  }

  Status damaged(const std::string& what) const {
    return Status(Code::kInternal, "the state that rank " + std::to_string(root_) +
                                       " sent arrived damaged (" + what +
                                       "), or the two run different versions of Lockstep");
  }

  TransferHeader header;
  std::string table;
  std::string proof;
  std::vector<StateTensor> tensors;  // as the table says

 private:
  Collective& collective_;
  const Generation generation_;
  const uint32_t root_;
  uint32_t number_ = 0;
};

}  // namespace

Status send_state(Collective& collective, Generation generation, const StateOrigin& origin,
                  std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string table, state_table(state));
  if (table.size() > kTableLimit)
    return Status(Code::kUsage, "the names of the state's tensors need " +
                                    std::to_string(table.size()) + " bytes, more than the " +
                                    std::to_string(kTableLimit) + " that a transfer may have");
  TransferHeader header;
  header.step = origin.at.step;
  header.phase = static_cast<uint64_t>(origin.at.phase);
  header.track = origin.track;
  LOCKSTEP_CHECK(origin.resumed_from.size() < sizeof header.resumed_from,
                 "names of checkpoints are short");
  std::memcpy(header.resumed_from, origin.resumed_from.data(), origin.resumed_from.size());
  std::string proof = origin.proof.to_bytes();
  if (proof.size() > limits::kTransferChunkBytes) proof = StepProof::unknown().to_bytes();
  header.proof_bytes = proof.size();
  header.table_bytes = table.size();
  std::memcpy(header.table_hash, xxh3_of(table).data(), kHashBytes);
  std::memcpy(header.hash, hash_of(header, table, proof, state).data(), kHashBytes);

  Stream stream(collective, generation, collective.rank());
  LOCKSTEP_RETURN_IF_ERROR(stream.chunk(std::as_writable_bytes(std::span(&header, 1))));
  LOCKSTEP_RETURN_IF_ERROR(stream.pieces(std::as_writable_bytes(std::span(table))));
  LOCKSTEP_RETURN_IF_ERROR(stream.chunk(std::as_writable_bytes(std::span(proof))));
  for (const StateTensor& tensor : state)
    LOCKSTEP_RETURN_IF_ERROR(stream.pieces({tensor.data, tensor.bytes}));
  return Status::ok();
}

Result<ReceivedState> receive_state(Collective& collective, Generation generation, uint32_t root) {
  Stream stream(collective, generation, root);
  LOCKSTEP_RETURN_IF_ERROR(stream.receive_beginning());
  const TransferHeader& header = stream.header;
  ReceivedState received;
  received.origin = {
      {header.step, static_cast<Phase>(header.phase)}, header.resumed_from, {}, header.track};
  for (const StateTensor& tensor : stream.tensors) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::span<std::byte> bytes,
        received.state.add(tensor.section, tensor.name, tensor.dtype, tensor.shape));
    LOCKSTEP_RETURN_IF_ERROR(stream.pieces(bytes));
  }
  if (hash_of(header, stream.table, stream.proof, received.state.tensors()) !=
      std::string_view(header.hash, kHashBytes))
    return stream.damaged("its hash differs");
  LOCKSTEP_ASSIGN_OR_RETURN(received.origin.proof, StepProof::from_bytes(stream.proof));
  return received;
}

Status pass_state(Collective& collective, Generation generation, uint32_t root) {
  Stream stream(collective, generation, root);
  LOCKSTEP_RETURN_IF_ERROR(stream.receive_beginning());
  std::vector<std::byte> scratch(limits::kTransferChunkBytes);
  for (const StateTensor& tensor : stream.tensors)
    for (size_t left = tensor.bytes; left > 0; left -= std::min(left, scratch.size()))
      LOCKSTEP_RETURN_IF_ERROR(
          stream.chunk(std::span(scratch).first(std::min(left, scratch.size()))));
  return Status::ok();
}

}  // namespace lockstep
