#include "comm/collectives/host/shm_link.h"

#include <sys/socket.h>

#include <utility>

#include "comm/link/data_socket.h"

namespace lockstep::host {
namespace {

class ShmLink final : public Link {
 public:
  ShmLink(Descriptor socket, PeerSegments peer)
      : socket_(std::move(socket)),
        peer_(std::move(peer)),
        control_(static_cast<const ControlBlock*>(peer_.control->data())),
        gradient_(peer_.gradient ? static_cast<const std::byte*>(peer_.gradient->data())
                                 : nullptr) {}

  const FlagBlock& flags() const override { return control_->flags; }
  bool hung_up() const override { return link::has_hung_up(socket_.get()); }
  void shut_down() noexcept override {}  // the closed flag tells it at once
  bool shares_memory() const override { return true; }

  void exchange(const OpDescriptor&, std::vector<std::span<const std::byte>>,
                const Expected&) override {}
  void send_result(Mark, std::span<const std::byte>) override {}
  void send_read(Mark) override {}

  const float* partial(uint32_t, uint32_t region, const ElementRange& slice) const override {
    return floats(peer_.offer.geometry.partial_offset(region)) + slice.begin;
  }
  const float* result(uint64_t begin) const override {
    return floats(peer_.offer.geometry.result_offset()) + begin;
  }
  const std::byte* mailbox(Mark mark) const override { return control_->mailbox[mark & 1]; }

 private:
  const float* floats(size_t offset) const {
    return reinterpret_cast<const float*>(gradient_ + offset);
  }

  const Descriptor socket_;
  const PeerSegments peer_;
  const ControlBlock* control_;
  const std::byte* gradient_;
};

}  // namespace

std::shared_ptr<Link> make_shm_link(Descriptor socket, PeerSegments peer) {
  return std::make_shared<ShmLink>(std::move(socket), std::move(peer));
}

}  // namespace lockstep::host
