// One peer, as the algorithms see it: its flags, and where its data lies. Over shared memory that
// is the peer's own memory; over TCP it is memory here into which an I/O thread receives.
//
// Thread-safety: all but hung_up() and shut_down() from the thread that runs the operations; these
// two from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/collectives/host/flags.h"

namespace lockstep::host {

// What this rank will receive of a peer in one operation, if it comes by message.
struct Expected {
  size_t payload_bytes = 0;  // with the announcement: partials or mailbox
  float* result = nullptr;   // where the peer's slice of the sum goes
  size_t result_bytes = 0;
};

class Link {
 public:
  virtual ~Link() = default;

  // The peer's flags.
  virtual const FlagBlock& flags() const = 0;

  // True when the peer is gone for good. What it had published before stays valid.
  virtual bool hung_up() const = 0;
  virtual void shut_down() noexcept = 0;

  // Messages; nothing to do over shared memory. `parts` stay unchanged until the peer has read.
  virtual void exchange(const OpDescriptor& op, std::vector<std::span<const std::byte>> parts,
                        const Expected& expected) = 0;
  virtual void send_result(Mark mark, std::span<const std::byte> slice) = 0;
  virtual void send_read(Mark mark) = 0;
  virtual bool shares_memory() const = 0;

  // After the peer has published: its partial number `index`, in its region `region`, from element
  // `slice.begin` on. After its result: its result from `begin` on, or null if it already lies
  // where it was expected. Its mailbox for operation `mark`.
  virtual const float* partial(uint32_t index, uint32_t region,
                               const ElementRange& slice) const = 0;
  virtual const float* result(uint64_t begin) const = 0;
  virtual const std::byte* mailbox(Mark mark) const = 0;
};

}  // namespace lockstep::host
