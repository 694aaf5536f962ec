#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/file.h"
#include "comm/base/host_name.h"
#include "comm/collectives/host/generation_collective.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/collectives/host/rank_handshake.h"
#include "comm/collectives/host/shm_link.h"
#include "comm/collectives/host/tcp_link.h"
#include "comm/link/acceptor.h"
#include "comm/link/shared_segment.h"
#include "comm/link/tcp_io.h"

namespace lockstep {
namespace {

using namespace lockstep::host;  // NOLINT: this file is that namespace's public face
using link::Acceptor;
using link::Deadline;
using link::Hello;
using link::Segment;
using link::Stream;
using link::TcpIo;
using link::Verdict;
using link::Welcome;

Result<Descriptor> open_event() {
  Descriptor fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.is_open()) return Status(Code::kInternal, "eventfd: " + errno_text(errno));
  return fd;
}

// The kernel's boot id. Hosts with different ids share no memory. Only a trial shows whether hosts
// with equal ids do (containers).
std::string find_host_id() {
  const std::string id = boot_id();
  return id.empty() ? "unknown" : id;
}

class Context final : public HostContext {
 public:
  Context(HostOptions options, HostAddress address, std::shared_ptr<Segment> control,
          Descriptor cancel, std::unique_ptr<Acceptor> acceptor)
      : options_(std::move(options)),
        address_(std::move(address)),
        control_(std::move(control)),
        cancel_(std::move(cancel)),
        acceptor_(std::move(acceptor)) {}

  HostAddress address() const override { return address_; }

  Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                      uint32_t regions) override {
    LOCKSTEP_CHECK(gradient_ == nullptr, "the gradient buffer is made once");
    LOCKSTEP_CHECK(layout.gradients <= layout.statistics && layout.statistics <= layout.elements &&
                       layout.elements > 0 && layout.gradients % kCutElements == 0 &&
                       layout.statistics % kCutElements == 0 && layout.elements % kCutElements == 0,
                   "sections end at multiples of kCutElements");
    LOCKSTEP_CHECK(regions > 0, "at least one region");
    const GradientGeometry geometry = {layout, regions};
    LOCKSTEP_ASSIGN_OR_RETURN(gradient_,
                              Segment::create("lockstep-gradients", geometry.segment_bytes()));
    geometry_ = geometry;
    return make_segment_buffer(gradient_, geometry_);
  }

  Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t rank, MemberId member,
                                              const std::vector<PeerAddress>& peers,
                                              int deadline_ms) override;
  int64_t unreachable_rank() const override { return unreachable_rank_; }
  void close(Generation through) noexcept override;

 private:
  // A connection whose two ends have introduced themselves.
  struct Met {
    Stream stream;
    bool over_unix = false;
  };

  Result<Met> call(const Hello& hello, const PeerAddress& peer, const Deadline& deadline);
  Status answer_callers(Generation generation, uint32_t rank, MemberId member,
                        const std::vector<PeerAddress>& peers, const Deadline& deadline, TcpIo* io,
                        std::vector<std::shared_ptr<Link>>* links);
  Result<std::shared_ptr<Link>> make_link(Met met, Generation generation, const Deadline& deadline,
                                          TcpIo* io);

  const HostOptions options_;
  const HostAddress address_;
  const std::shared_ptr<Segment> control_;
  const Descriptor cancel_;  // eventfd, readable if connect() has to give up
  std::shared_ptr<Segment> gradient_;
  GradientGeometry geometry_;
  const std::unique_ptr<Acceptor> acceptor_;
  int64_t unreachable_rank_ = -1;  // used by the connecting thread

  std::mutex mutex_;
  Generation connecting_ = 0;  // 0: none
  Generation closed_through_ = 0;
  std::weak_ptr<Peers> current_;  // the newest Collective's
};

// After the deadline a late peer counts as gone: a link that swallows everything gives no other
// sign. If no member were named, the same members would try again and again.
bool is_out_of_reach(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout;
}

Result<std::unique_ptr<Collective>> Context::connect(Generation generation, uint32_t rank,
                                                     MemberId member,
                                                     const std::vector<PeerAddress>& peers,
                                                     int deadline_ms) {
  LOCKSTEP_CHECK(generation > 0 && generation <= kMostGenerations, "generation out of range");
  LOCKSTEP_CHECK(rank < peers.size(), "our rank is not among the peers");
  {
    std::lock_guard lock(mutex_);
    if (generation <= closed_through_) {
      return Status(Code::kAborted,
                    "generation " + std::to_string(generation) + " is closed already");
    }
    eventfd_t drained = 0;
    eventfd_read(cancel_.get(), &drained);
    connecting_ = generation;
  }
  unreachable_rank_ = -1;
  acceptor_->refuse_below(generation);
  const Deadline deadline = Deadline::after(deadline_ms, cancel_.get());
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<TcpIo> io, TcpIo::create());
  std::vector<std::shared_ptr<Link>> links(peers.size());
  // Higher ranks call lower ones, so everyone who waits for an answer waits for a lower rank.
  for (uint32_t r = 0; r < rank; ++r) {
    Hello hello = link::new_hello(kBetweenRanks);
    hello.generation = generation;
    hello.from_member = member;
    hello.to_member = peers[r].member;
    hello.from_rank = rank;
    const std::string who = "connecting to rank " + std::to_string(r);
    auto met = call(hello, peers[r], deadline);
    if (!met.is_ok()) {
      if (is_out_of_reach(met.status().code())) unreachable_rank_ = r;
      return met.status().with_context(who);
    }
    auto link = make_link(std::move(*met), generation, deadline, io.get());
    if (!link.is_ok()) return link.status().with_context(who);
    links[r] = std::move(*link);
  }
  LOCKSTEP_RETURN_IF_ERROR(
      answer_callers(generation, rank, member, peers, deadline, io.get(), &links));

  io->start();
  auto all = std::make_shared<Peers>(generation, rank, control_, std::move(links));
  std::unique_ptr<Collective> collective =
      std::make_unique<GenerationCollective>(all, gradient_, geometry_, std::move(io));
  std::lock_guard lock(mutex_);
  connecting_ = 0;
  if (generation <= closed_through_) all->abort();
  current_ = all;
  return collective;
}

// Connects to a lower rank: over the Unix socket if that reaches it, else over TCP.
Result<Context::Met> Context::call(const Hello& hello, const PeerAddress& peer,
                                   const Deadline& deadline) {
  Met met;
  const bool try_unix = !options_.force_tcp && !peer.address.unix_name.empty() &&
                        peer.address.host_id == address_.host_id;
  if (try_unix) {
    auto fd = link::connect_unix(peer.address.unix_name);
    met.over_unix = fd.is_ok() && link::peer_is_same_user(fd->get());
    if (met.over_unix) met.stream = Stream(std::move(*fd));
  }
  if (!met.over_unix) {
    LOCKSTEP_ASSIGN_OR_RETURN(Descriptor fd, link::connect_tcp(peer.address.tcp, deadline));
    met.stream =
        Stream::called(std::move(fd), options_.tls == nullptr ? nullptr : options_.tls->context());
  }
  LOCKSTEP_RETURN_IF_ERROR(
      link::introduce(met.stream, kBetweenRanks, options_.token, hello, deadline));
  return met;
}

// Accepts the connections of all higher ranks.
Status Context::answer_callers(Generation generation, uint32_t rank, MemberId member,
                               const std::vector<PeerAddress>& peers, const Deadline& deadline,
                               TcpIo* io, std::vector<std::shared_ptr<Link>>* links) {
  for (;;) {
    std::string missing;
    int64_t first_missing = -1;
    for (uint32_t r = rank + 1; r < peers.size(); ++r) {
      if ((*links)[r] != nullptr) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(r);
      if (first_missing < 0) first_missing = r;
    }
    if (missing.empty()) return Status::ok();
    auto arrival = acceptor_->wait_for(generation, deadline);
    if (!arrival.is_ok()) {
      if (is_out_of_reach(arrival.status().code())) unreachable_rank_ = first_missing;
      return arrival.status().with_context("waiting for ranks " + missing);
    }
    const Hello& hello = arrival->hello;
    const uint32_t from = hello.from_rank;
    if (hello.to_member != member || from <= rank || from >= peers.size() ||
        peers[from].member != hello.from_member) {
      Acceptor::turn_away(*arrival, Welcome::kWrongMember, generation);
      continue;
    }
    const Verdict verdict = {Welcome::kYes, rank, member, generation};
    Status status = arrival->stream.send(&verdict, sizeof verdict, deadline);
    if (status.is_ok()) {
      auto link =
          make_link({std::move(arrival->stream), arrival->over_unix}, generation, deadline, io);
      status = link.status();
      if (link.is_ok()) (*links)[from] = std::move(*link);
    }
    // A caller that has given up may call again. Any other error is final.
    if (status.is_ok() || status.code() == Code::kUnavailable) continue;
    return status.with_context("answering rank " + std::to_string(from));
  }
}

Result<std::shared_ptr<Link>> Context::make_link(Met met, Generation generation,
                                                 const Deadline& deadline, TcpIo* io) {
  LOCKSTEP_ASSIGN_OR_RETURN(PeerSegments peer,
                            exchange_segments(met.stream, met.over_unix, *control_, gradient_.get(),
                                              geometry_, deadline));
  const BufferLayout& mine = geometry_.layout;
  const BufferLayout& theirs = peer.offer.geometry.layout;
  if (mine.elements != theirs.elements || mine.gradients != theirs.gradients ||
      mine.statistics != theirs.statistics) {
    return Status(Code::kConfig,
                  "the gradient buffers have different layouts: " + std::to_string(mine.elements) +
                      " elements here, " + std::to_string(theirs.elements) +
                      " there; both must run the same model");
  }
  // Links point into the peer's memory by our own geometry, and nowhere if we have none.
  const uint64_t my_bytes = gradient_ != nullptr ? gradient_->bytes() : 0;
  if (peer.offer.gradient_bytes != my_bytes || peer.offer.geometry.regions != geometry_.regions) {
    return Status(Code::kConfig,
                  "the gradient buffers have different sizes: " + std::to_string(my_bytes) +
                      " bytes in " + std::to_string(geometry_.regions) + " regions here, " +
                      std::to_string(peer.offer.gradient_bytes) + " bytes in " +
                      std::to_string(peer.offer.geometry.regions) +
                      " there; both must run the same job");
  }
  if (met.over_unix) return make_shm_link(std::move(met.stream).release(), std::move(peer));
  const auto* flags = &static_cast<const ControlBlock*>(control_->data())->flags;
  auto link =
      std::make_shared<TcpLink>(std::move(met.stream), generation, flags, [io] { io->notify(); });
  io->add(link);
  return std::shared_ptr<Link>(std::move(link));
}

void Context::close(Generation through) noexcept {
  std::shared_ptr<Peers> current;
  {
    std::lock_guard lock(mutex_);
    closed_through_ = std::max(closed_through_, through);
    if (connecting_ != 0 && connecting_ <= through) eventfd_write(cancel_.get(), 1);
    current = current_.lock();
  }
  // First of all the thread that sleeps in a collective: nothing may delay it.
  if (current != nullptr && current->generation() <= through) current->abort();
  constexpr Generation kLast = std::numeric_limits<Generation>::max();
  acceptor_->refuse_below(through < kLast ? through + 1 : kLast);
}

}  // namespace

Result<std::unique_ptr<HostContext>> HostContext::create(HostOptions options) {
  if (options.token.empty()) return Status(Code::kUsage, "the data plane needs the run's token");
  HostAddress address;
  address.host_id = find_host_id();
  // Listening costs nothing if no peer calls. With force_tcp no peer learns the name.
  const std::string suffix = random_bytes(16);
  const std::string name =
      "lockstep-" + to_hex({reinterpret_cast<const uint8_t*>(suffix.data()), suffix.size()});
  if (!options.force_tcp) address.unix_name = name;
  LOCKSTEP_ASSIGN_OR_RETURN(Descriptor unix_listener, link::listen_unix(name));
  LOCKSTEP_ASSIGN_OR_RETURN(Descriptor tcp_listener,
                            link::listen_tcp(options.tcp_host, &address.tcp));
  LOCKSTEP_ASSIGN_OR_RETURN(Descriptor cancel, open_event());
  LOCKSTEP_ASSIGN_OR_RETURN(Descriptor wake, open_event());
  LOCKSTEP_ASSIGN_OR_RETURN(auto control,
                            Segment::create("lockstep-control", sizeof(ControlBlock)));
  new (control->data()) ControlBlock;
  auto acceptor = std::make_unique<Acceptor>(kBetweenRanks, options.token, options.tls,
                                             std::move(unix_listener), std::move(tcp_listener),
                                             std::move(wake));
  return std::unique_ptr<HostContext>(
      std::make_unique<Context>(std::move(options), std::move(address), std::move(control),
                                std::move(cancel), std::move(acceptor)));
}

}  // namespace lockstep
