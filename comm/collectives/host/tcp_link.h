// A peer without shared memory. Its flags and data come as messages, and an I/O thread
// (comm/link/tcp_io.h) copies them into a mirror here. The algorithms see no difference.
//
//     message = WireHeader, payload_bytes of payload, the CRC-32C of a payload that is not empty
//     kOperation   the descriptor; payload: the sender's partials over the receiver's slice, one
//                  after the other, or its mailbox
//     kResult      payload: the sender's slice of the sum
//     kRead        no payload
//     kClosed      no payload: this side has closed the generation and leaves. The end of a stream
//                  without it is a loss
//
// INVARIANTS
//  T1 Nothing is received before this rank's own operation has given the place for it: a peer that
//     is one operation ahead waits in the socket (parked).
//  T2 A message counts only if both checksums are right: the header's before anything is done with
//     it, the payload's before a flag shows the message. Else the link is broken, and says why.
//     TCP's own checksum has 16 bits, and machines on the way compute it again.
//  T3 Sends never wait: the I/O thread sends the bytes that the socket does not take.
//
// Thread-safety: exchange(), send_*() from the operations' thread; receive(), flush() and wants_*()
// from the I/O thread; a mutex guards what both touch.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/collectives/host/link.h"
#include "comm/link/stream.h"
#include "comm/link/tcp_io.h"

namespace lockstep::host {

enum class MessageKind : uint32_t { kOperation = 1, kResult = 2, kRead = 3, kClosed = 4 };

struct WireHeader {
  uint32_t magic = 0x3270746cU;
  MessageKind kind = MessageKind::kRead;
  Mark mark = 0;
  uint64_t payload_bytes = 0;
  uint32_t checksum = 0;  // checksum_of()
  uint32_t unused = 0;
  OpDescriptor op;  // of kOperation
};
using PayloadChecksum = uint32_t;

// CRC-32C of the header with a checksum of 0.
uint32_t checksum_of(WireHeader header);

class TcpLink final : public Link, public link::ServedConnection {
 public:
  // `waiter`: the flags of this rank, which show whether anyone sleeps here. `notify` wakes the I/O
  // thread.
  TcpLink(link::Stream stream, Generation generation, const FlagBlock* waiter,
          std::function<void()> notify);

  const FlagBlock& flags() const override { return mirror_; }
  bool hung_up() const override { return broken_.load(); }
  const char* why_gone() const override;
  void shut_down() noexcept override;
  bool shares_memory() const override { return false; }

  void exchange(const OpDescriptor& op, std::vector<std::span<const std::byte>> parts,
                const Expected& expected) override;
  void send_result(Mark mark, std::span<const std::byte> slice) override;
  void send_read(Mark mark) override;

  const float* partial(uint32_t index, uint32_t region, const ElementRange& slice) const override;
  const float* result(uint64_t) const override { return nullptr; }
  const std::byte* mailbox(Mark) const override {
    return reinterpret_cast<const std::byte*>(payload_.data());
  }

  // For the I/O thread.
  int fd() const override { return stream_.fd(); }
  bool wants_input() override;
  bool wants_output() override;
  void receive() override;
  void resume() override;  // the operation of a parked message may be there
  void flush() override;
  bool is_drained() override;

 private:
  struct Outgoing {
    WireHeader header;
    std::vector<std::span<const std::byte>> parts;
    size_t sent = 0;    // bytes of the whole message
    size_t hashed = 0;  // bytes of the payload that `checksum` covers
    PayloadChecksum checksum = 0;
  };

  void send(Outgoing message);
  void mark_broken();
  void flush_locked();
  bool send_front_locked();
  static void hash_ahead(Outgoing* message);
  size_t read_some(std::byte* at, size_t bytes);
  bool read_header();
  bool read_payload();
  bool start_message();
  void commit();
  void raise(Flag flag, Mark mark);

  link::Stream stream_;
  const Generation generation_;
  const FlagBlock* waiter_;
  const std::function<void()> notify_;
  FlagBlock mirror_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> damaged_{false};  // why it broke

  std::mutex mutex_;
  std::deque<Outgoing> outgoing_;
  Mark armed_ = 0;
  OpDescriptor armed_op_;
  Expected expected_;
  bool parked_ = false;
  std::vector<float> payload_;  // resized while armed, filled by the I/O thread

  // Receiving state; only the I/O thread uses it.
  WireHeader header_;
  size_t header_received_ = 0;
  bool in_payload_ = false;
  std::byte* destination_ = nullptr;
  size_t remaining_ = 0;
  PayloadChecksum computed_ = 0;  // of the payload so far
  PayloadChecksum told_ = 0;      // at its end
  size_t told_received_ = 0;
};

}  // namespace lockstep::host
