#include "comm/collectives/host/tcp_link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "comm/base/crc32c.h"
#include "comm/collectives/host/futex.h"

namespace lockstep::host {
namespace {

constexpr size_t kPartsPerSend = 16;
// How much of a payload is hashed before it is offered to the socket, and read before it is hashed:
// as much as stays in the processor's cache between the two.
constexpr size_t kHashedAtOnce = 256 << 10;

std::string_view text_of(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

bool is_over(const rpc::IoResult& result) {
  return result.state == rpc::IoResult::State::kEnd ||
         result.state == rpc::IoResult::State::kBroken;
}

}  // namespace

uint32_t checksum_of(WireHeader header) {
  header.checksum = 0;
  return crc32c(text_of(&header, sizeof header));
}

TcpLink::TcpLink(link::Stream stream, Generation generation, const FlagBlock* waiter,
                 std::function<void()> notify)
    : stream_(std::move(stream)),
      generation_(generation),
      waiter_(waiter),
      notify_(std::move(notify)) {}

// The goodbye fits only between two messages. If one is stuck half-way, the peer sees a loss.
void TcpLink::shut_down() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (!broken_.exchange(true) && outgoing_.empty()) {
      WireHeader goodbye;
      goodbye.kind = MessageKind::kClosed;
      goodbye.mark = make_mark(generation_, 0);
      goodbye.checksum = checksum_of(goodbye);
      (void)stream_.try_send(&goodbye, sizeof goodbye);
    }
  }
  shutdown(fd(), SHUT_RDWR);
}

// ---- operations' thread --------------------------------------------------------------------

void TcpLink::exchange(const OpDescriptor& op, std::vector<std::span<const std::byte>> parts,
                       const Expected& expected) {
  Outgoing message;
  message.header.kind = MessageKind::kOperation;
  message.header.mark = op.mark;
  message.header.op = op;
  message.parts = std::move(parts);
  bool was_parked = false;
  {
    std::lock_guard lock(mutex_);
    armed_ = op.mark;
    armed_op_ = op;
    expected_ = expected;
    const size_t floats = (expected.payload_bytes + sizeof(float) - 1) / sizeof(float);
    if (payload_.size() < floats) payload_.resize(floats);
    was_parked = std::exchange(parked_, false);
  }
  send(std::move(message));
  if (was_parked) notify_();
}

void TcpLink::send_result(Mark mark, std::span<const std::byte> slice) {
  Outgoing message;
  message.header.kind = MessageKind::kResult;
  message.header.mark = mark;
  message.parts = {slice};
  send(std::move(message));
}

void TcpLink::send_read(Mark mark) {
  Outgoing message;
  message.header.kind = MessageKind::kRead;
  message.header.mark = mark;
  send(std::move(message));
}

const float* TcpLink::partial(uint32_t index, uint32_t, const ElementRange& slice) const {
  return payload_.data() + index * slice.size();
}

void TcpLink::send(Outgoing message) {
  for (const auto& part : message.parts) message.header.payload_bytes += part.size();
  message.header.checksum = checksum_of(message.header);
  bool left_over = false;
  {
    std::lock_guard lock(mutex_);
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) flush_locked();
    left_over = !outgoing_.empty();
  }
  if (left_over) notify_();
}

// ---- both ----------------------------------------------------------------------------------

void TcpLink::flush_locked() {
  while (!outgoing_.empty() && send_front_locked()) outgoing_.pop_front();
}

// Hashes the piece that send_front_locked() offers next, which follows the bytes that are sent.
void TcpLink::hash_ahead(Outgoing* message) {
  const size_t sent = message->sent - std::min(message->sent, sizeof message->header);
  const size_t until = std::min<size_t>(message->header.payload_bytes, sent + kHashedAtOnce);
  size_t begin = 0;  // of the part
  for (const auto& part : message->parts) {
    const size_t from = std::max(begin, message->hashed);
    const size_t to = std::min(begin + part.size(), until);
    if (from < to) {
      const std::string_view piece = text_of(part.data() + (from - begin), to - from);
      message->checksum = extend_crc32c(message->checksum, piece);
      message->hashed = to;
    }
    begin += part.size();
  }
}

// True if the first message has left.
bool TcpLink::send_front_locked() {
  Outgoing& message = outgoing_.front();
  for (;;) {
    hash_ahead(&message);
    iovec parts[kPartsPerSend];
    size_t count = 0;
    size_t skip = message.sent;
    const auto add = [&](const void* data, size_t bytes) {
      if (skip >= bytes) {
        skip -= bytes;
      } else if (count < kPartsPerSend) {
        parts[count++] = {const_cast<char*>(static_cast<const char*>(data)) + skip, bytes - skip};
        skip = 0;
      }
    };
    add(&message.header, sizeof message.header);
    size_t offered = message.hashed;
    for (const auto& part : message.parts) {
      add(part.data(), std::min(part.size(), offered));
      offered -= std::min(part.size(), offered);
    }
    const bool is_whole = message.hashed == message.header.payload_bytes;
    if (is_whole && message.hashed > 0) add(&message.checksum, sizeof message.checksum);
    if (count == 0) return true;
    const rpc::IoResult sent = stream_.try_send(parts, count);
    if (is_over(sent)) mark_broken();
    if (sent.bytes == 0) return false;
    message.sent += sent.bytes;
  }
}

const char* TcpLink::why_gone() const {
  return damaged_.load()
             ? "is cut off: its bytes did not match their checksum, so the network or a "
               "machine on the way damages data"
             : nullptr;
}

void TcpLink::mark_broken() {
  broken_.store(true);
  mirror_.doorbell.fetch_add(1);
  futex_wake(mirror_.doorbell);
}

// ---- I/O thread ----------------------------------------------------------------------------

bool TcpLink::wants_input() {
  std::lock_guard lock(mutex_);
  return !parked_ && !broken_.load();
}

bool TcpLink::wants_output() {
  std::lock_guard lock(mutex_);
  return !outgoing_.empty() && !broken_.load();
}

void TcpLink::flush() {
  std::lock_guard lock(mutex_);
  flush_locked();
}

bool TcpLink::is_drained() {
  std::lock_guard lock(mutex_);
  int unsent = 0;
  if (broken_.load()) return true;
  if (!outgoing_.empty()) return false;
  return ioctl(fd(), SIOCOUTQ, &unsent) != 0 || unsent == 0;
}

// Reads message by message, until the socket is empty or the link is parked. A broken link takes
// nothing more: the operations' thread already sees why.
void TcpLink::receive() {
  if (broken_.load()) return;
  for (;;) {
    if (!in_payload_ && !(read_header() && start_message())) return;
    if (!read_payload()) return;
    commit();
  }
}

// False if there is nothing to read now, or the link is broken.
bool TcpLink::read_header() {
  auto* const begin = reinterpret_cast<std::byte*>(&header_);
  while (header_received_ < sizeof header_) {
    const size_t got = read_some(begin + header_received_, sizeof header_ - header_received_);
    if (got == 0) return false;
    header_received_ += got;
  }
  if (header_.checksum == checksum_of(header_)) return true;
  damaged_.store(true);
  mark_broken();
  return false;
}

bool TcpLink::read_payload() {
  while (remaining_ > 0) {
    const size_t got = read_some(destination_, std::min(remaining_, kHashedAtOnce));
    if (got == 0) return false;
    computed_ = extend_crc32c(computed_, text_of(destination_, got));
    destination_ += got;
    remaining_ -= got;
  }
  if (header_.payload_bytes == 0) return true;
  auto* const told = reinterpret_cast<std::byte*>(&told_);
  while (told_received_ < sizeof told_) {
    const size_t got = read_some(told + told_received_, sizeof told_ - told_received_);
    if (got == 0) return false;
    told_received_ += got;
  }
  if (told_ == computed_) return true;
  damaged_.store(true);
  mark_broken();
  return false;
}

// The header of a parked message is read already. If the message has no payload, the socket has
// nothing more, and poll() alone would never come back to it.
void TcpLink::resume() {
  if (!in_payload_ && header_received_ == sizeof header_ && wants_input()) receive();
}

// Reads at most `bytes`, and returns how many came. 0 if there is nothing to read now.
size_t TcpLink::read_some(std::byte* at, size_t bytes) {
  const rpc::IoResult received = stream_.try_receive(at, bytes);
  if (is_over(received)) mark_broken();
  return received.bytes;
}

// Decides where the payload goes. False if the message is parked, or not credible.
bool TcpLink::start_message() {
  const WireHeader expected_magic;
  bool valid = header_.magic == expected_magic.magic && generation_of(header_.mark) == generation_;
  std::lock_guard lock(mutex_);
  switch (header_.kind) {
    case MessageKind::kOperation:
      if (valid && armed_ < header_.mark) {
        parked_ = true;
        return false;
      }
      if (valid && header_.op == armed_op_) {
        destination_ = reinterpret_cast<std::byte*>(payload_.data());
        valid = header_.payload_bytes == expected_.payload_bytes;
      } else if (valid) {
        // The algorithm compares the descriptors and fails. The payload is useless now.
        mirror_.ops[header_.mark % kOpRing] = header_.op;
        raise(&FlagBlock::published, header_.mark);
        valid = false;
      }
      break;
    case MessageKind::kResult:
      destination_ = reinterpret_cast<std::byte*>(expected_.result);
      valid = valid && header_.mark == armed_ && header_.payload_bytes == expected_.result_bytes;
      break;
    case MessageKind::kRead:
    case MessageKind::kClosed:
      valid = valid && header_.payload_bytes == 0;
      break;
    default:
      valid = false;
  }
  if (!valid) {
    mark_broken();
    return false;
  }
  in_payload_ = true;
  remaining_ = header_.payload_bytes;
  computed_ = 0;
  told_received_ = 0;
  return true;
}

// The message is complete: shows it in the mirror.
void TcpLink::commit() {
  switch (header_.kind) {
    case MessageKind::kOperation:
      mirror_.ops[header_.mark % kOpRing] = header_.op;
      raise(&FlagBlock::published, header_.mark);
      break;
    case MessageKind::kResult:
      raise(&FlagBlock::result, header_.mark);
      break;
    case MessageKind::kRead:
      raise(&FlagBlock::read, header_.mark);
      break;
    case MessageKind::kClosed:
      raise(&FlagBlock::closed, generation_);
      break;
  }
  in_payload_ = false;
  header_received_ = 0;
}

void TcpLink::raise(Flag flag, Mark mark) {
  (mirror_.*flag).store(mark);
  mirror_.doorbell.fetch_add(1);
  if (waiter_->sleeping.load() != 0) futex_wake(mirror_.doorbell);
}

}  // namespace lockstep::host
