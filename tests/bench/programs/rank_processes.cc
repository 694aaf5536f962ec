#include "tests/bench/programs/rank_processes.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "comm/base/file.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/collectives/loopback/loopback.h"

namespace lockstep::bench {
namespace {

constexpr int kConnectDeadlineMs = 60'000;

Result<TrainReport> run_alone(const TrainOptions& options, DeviceModule* gpu) {
  std::vector<std::unique_ptr<Collective>> collectives;
  return train_rank(options, {.make_buffer =
                                  [](const BufferLayout& layout, uint32_t regions) {
                                    return Result<std::unique_ptr<GradientBuffer>>(
                                        make_plain_buffer(layout, regions));
                                  },
                              .connect =
                                  [&](GradientBuffer& buffer) {
                                    collectives = make_loopback(1, {&buffer});
                                    return Result<Collective*>(collectives[0].get());
                                  },
                              .gpu = gpu});
}

// Tells all addresses to all ranks: children write theirs to rank 0, which answers with all.
// Messages are short, and a SOCK_SEQPACKET keeps them whole.
class AddressExchange {
 public:
  // Sockets to the other ranks for rank 0, one socket to rank 0 for the others.
  explicit AddressExchange(std::vector<int> sockets) : sockets_(std::move(sockets)) {}

  Result<std::vector<PeerAddress>> exchange(uint32_t rank, const HostAddress& mine) {
    const std::string line = mine.host_id + "\n" + mine.unix_name + "\n" + mine.tcp + "\n";
    std::string all = line;
    if (rank == 0) {
      for (const int socket : sockets_) {
        LOCKSTEP_ASSIGN_OR_RETURN(const std::string other, receive(socket));
        all += other;
      }
      for (const int socket : sockets_) LOCKSTEP_RETURN_IF_ERROR(send_text(socket, all));
    } else {
      LOCKSTEP_RETURN_IF_ERROR(send_text(sockets_[0], line));
      LOCKSTEP_ASSIGN_OR_RETURN(all, receive(sockets_[0]));
    }
    std::istringstream in(all);
    std::vector<PeerAddress> peers;
    for (PeerAddress p; std::getline(in, p.address.host_id);) {
      std::getline(in, p.address.unix_name);
      std::getline(in, p.address.tcp);
      p.member = peers.size() + 1;
      peers.push_back(p);
    }
    return peers;
  }

 private:
  static Status send_text(int socket, const std::string& text) {
    if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()))
      return Status::ok();
    return Status(Code::kInternal, "another rank of the bench is gone: " + errno_text(errno));
  }

  static Result<std::string> receive(int socket) {
    char text[64 * 1024];
    const ssize_t n = ::recv(socket, text, sizeof text, 0);
    if (n > 0) return std::string(text, static_cast<size_t>(n));
    return Status(Code::kInternal, "another rank of the bench is gone");
  }

  std::vector<int> sockets_;
};

Result<TrainReport> run_connected(const TrainOptions& options, uint32_t rank,
                                  std::vector<int> sockets) {
  AddressExchange exchange(std::move(sockets));
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<HostContext> context,
                            HostContext::create({.token = "bench"}));
  std::unique_ptr<Collective> collective;
  return train_rank(
      options,
      {.make_buffer = [&](const BufferLayout& layout,
                          uint32_t regions) { return context->make_buffer(layout, regions); },
       .connect = [&](GradientBuffer&) -> Result<Collective*> {
         LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<PeerAddress> peers,
                                   exchange.exchange(rank, context->address()));
         LOCKSTEP_ASSIGN_OR_RETURN(collective,
                                   context->connect(1, rank, rank + 1, peers, kConnectDeadlineMs));
         return collective.get();
       }});
}

}  // namespace

Result<TrainReport> run_ranks(const TrainOptions& options, DeviceModule* gpu) {
  if (options.ranks == 1) return run_alone(options, gpu);
  std::vector<int> sockets;
  for (uint32_t rank = 1; rank < options.ranks; ++rank) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      return Status(Code::kInternal, "socketpair: " + errno_text(errno));
    const pid_t child = ::fork();  // before any thread exists
    if (child < 0) return Status(Code::kInternal, "fork: " + errno_text(errno));
    if (child == 0) {
      const Status status = run_connected(options, rank, {pair[1]}).status();
      if (!status.is_ok()) std::fprintf(stderr, "rank %u: %s\n", rank, status.message().c_str());
      std::_Exit(exit_code(status));
    }
    ::close(pair[1]);
    sockets.push_back(pair[0]);
  }
  auto report = run_connected(options, 0, std::move(sockets));
  while (::wait(nullptr) > 0) {
  }
  return report;
}

}  // namespace lockstep::bench
