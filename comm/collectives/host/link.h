// One peer, as the algorithms see it: its flags, and the place of its data. Over shared memory the
// place is the peer's own memory. Over TCP it is memory of this process, into which an I/O thread
// receives.
//
// Thread-safety: hung_up() and shut_down() from any thread, the rest from the thread that runs the
// operations.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/collectives/host/flags.h"

namespace lockstep::host {

// The bytes that this rank receives from a peer in one operation, if they come by message.
struct Expected {
  size_t payload_bytes = 0;  // comes with the announcement: partials or mailbox
  float* result = nullptr;   // the place for the peer's slice of the sum
  size_t result_bytes = 0;
};

class Link {
 public:
  virtual ~Link() = default;

  // The peer's flags.
  virtual const FlagBlock& flags() const = 0;

  // True if the peer is gone for good. Data that it has published stay valid.
  virtual bool hung_up() const = 0;
  virtual const char* why_gone() const { return nullptr; }  // null: there is nothing to add
  virtual void shut_down() noexcept = 0;

  // Messages; no-ops over shared memory. `parts` stay unchanged until the peer has read them.
  virtual void exchange(const OpDescriptor& op, std::vector<std::span<const std::byte>> parts,
                        const Expected& expected) = 0;
  virtual void send_result(Mark mark, std::span<const std::byte> slice) = 0;
  virtual void send_read(Mark mark) = 0;
  virtual bool shares_memory() const = 0;

  // After the peer has published: its partial number `index`, in its region `region`, from element
  // `slice.begin` on. After its result: its result from `begin` on, or null if it already lies at
  // its expected place. Its mailbox for operation `mark`.
  virtual const float* partial(uint32_t index, uint32_t region,
                               const ElementRange& slice) const = 0;
  virtual const float* result(uint64_t begin) const = 0;
  virtual const std::byte* mailbox(Mark mark) const = 0;
};

}  // namespace lockstep::host
