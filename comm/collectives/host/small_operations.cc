// broadcast, all_gather and barrier, through the mailboxes, kMailboxBytes at a time.
#include <algorithm>
#include <cstring>

#include "comm/base/check.h"
#include "comm/collectives/host/generation_collective.h"

namespace lockstep::host {

// `expected_of_root`: the bytes that a sender sends. Everyone sends, unless root_only.
Status GenerationCollective::meet_with_mail(const OpDescriptor& op, std::span<const std::byte> mine,
                                            size_t expected_of_root, bool root_only) {
  std::byte* mailbox = peers_->control().mailbox[op.mark & 1];
  if (!mine.empty()) std::memcpy(mailbox, mine.data(), mine.size());
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (peers_->is_self(r) || peers_->link(r).shares_memory()) continue;
    Expected expected;
    expected.payload_bytes = root_only && r != op.root ? 0 : expected_of_root;
    peers_->link(r).exchange(op, {std::span<const std::byte>(mailbox, mine.size())}, expected);
  }
  peers_->announce(op);
  return peers_->meet(op);
}

const std::byte* GenerationCollective::mail_of(uint32_t rank, Mark mark) {
  return peers_->is_self(rank) ? peers_->control().mailbox[mark & 1]
                               : peers_->link(rank).mailbox(mark);
}

Status GenerationCollective::broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) {
  LOCKSTEP_CHECK(root < world_size(), "no such root");
  size_t at = 0;
  do {
    LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
    const std::span<std::byte> part = data.subspan(at, std::min(kMailboxBytes, data.size() - at));
    OpDescriptor op = next_operation(OpKind::kBroadcast, tag, {at, at + part.size()});
    op.root = root;
    const bool sends = rank() == root;
    LOCKSTEP_RETURN_IF_ERROR(
        finish(meet_with_mail(op, sends ? part : part.first(0), part.size(), true)));
    if (!sends && !part.empty()) std::memcpy(part.data(), mail_of(root, op.mark), part.size());
    at += part.size();
  } while (at < data.size());
  return Status::ok();
}

Status GenerationCollective::all_gather(const Tag& tag, std::span<const std::byte> mine,
                                        std::span<std::byte> all) {
  LOCKSTEP_CHECK(all.size() == mine.size() * world_size(), "room for everyone's part");
  size_t at = 0;
  do {
    LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
    const auto part = mine.subspan(at, std::min(kMailboxBytes, mine.size() - at));
    const OpDescriptor op = next_operation(OpKind::kAllGather, tag, {at, at + part.size()});
    LOCKSTEP_RETURN_IF_ERROR(finish(meet_with_mail(op, part, part.size(), false)));
    for (uint32_t r = 0; r < world_size() && !part.empty(); ++r) {
      std::memcpy(all.data() + r * mine.size() + at, mail_of(r, op.mark), part.size());
    }
    at += part.size();
  } while (at < mine.size());
  return Status::ok();
}

Status GenerationCollective::barrier(const Tag& tag) {
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  return finish(meet_with_mail(next_operation(OpKind::kBarrier, tag, {}), {}, 0, false));
}

}  // namespace lockstep::host
