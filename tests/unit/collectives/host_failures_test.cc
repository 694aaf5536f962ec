// Tests how a HostContext answers strangers, late members and closed generations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <future>
#include <new>

#include "comm/collectives/host/flags.h"
#include "comm/collectives/host/rank_handshake.h"
#include "comm/link/acceptor.h"
#include "comm/link/handshake.h"
#include "comm/link/shared_segment.h"
#include "tests/support/fails_with.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

using host::kBetweenRanks;
using link::Deadline;
using link::Hello;
using testing::kConnectMs;

constexpr BufferLayout kLayout = {64, 64, 80};
constexpr MemberId kMember0 = 100;
constexpr MemberId kMember1 = 101;

std::unique_ptr<HostContext> make_context(const std::string& token = "secret") {
  auto context = HostContext::create({.token = token});
  EXPECT_TRUE(context.is_ok());
  return std::move(*context);
}

struct Pair {
  std::unique_ptr<HostContext> first = make_context();
  std::unique_ptr<HostContext> second = make_context();
  std::vector<PeerAddress> peers = {{kMember0, first->address()}, {kMember1, second->address()}};

  std::future<Result<std::unique_ptr<Collective>>> connect(uint32_t rank, Generation generation,
                                                           int deadline_ms = kConnectMs) {
    return std::async(std::launch::async, [this, rank, generation, deadline_ms] {
      HostContext& context = rank == 0 ? *first : *second;
      return context.connect(generation, rank, peers[rank].member, peers, deadline_ms);
    });
  }
};

Hello hello_of(Generation generation) {
  Hello hello = link::new_hello(kBetweenRanks);
  hello.generation = generation;
  hello.from_member = kMember1;
  hello.to_member = kMember0;
  hello.from_rank = 1;
  return hello;
}

TEST(HostContext, AMemberOfAnOlderGenerationIsRefusedAtOnce) {
  Pair pair;
  auto a = pair.connect(0, 5);
  auto b = pair.connect(1, 5);
  auto first = a.get();
  auto second = b.get();
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  auto fd = link::connect_unix(pair.first->address().unix_name);
  ASSERT_TRUE(fd.is_ok());
  link::Stream stream(std::move(*fd));
  const Status status =
      link::introduce(stream, kBetweenRanks, "secret", hello_of(4), Deadline::after(kConnectMs));
  EXPECT_EQ(status.code(), Code::kRefused) << status.message();
  EXPECT_TRUE((*first)->world_size() == 2);
}

TEST(HostContext, AMemberOfANewerGenerationWaitsForUs) {
  Pair pair;
  auto ahead = pair.connect(1, 7);
  EXPECT_EQ(ahead.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  auto behind = pair.connect(0, 7);
  EXPECT_TRUE(behind.get().is_ok());
  EXPECT_TRUE(ahead.get().is_ok());
}

TEST(HostContext, AMissingPeerIsATimeoutThatNamesItsRank) {
  Pair pair;
  const Status status = pair.connect(0, 1, 50).get().status();
  EXPECT_THAT(status, FailsWith(Code::kTimeout, Names("ranks 1")));
}

TEST(HostContext, APeerThatIsGoneOrTooLateIsNamedByItsRank) {
  Pair pair;
  EXPECT_EQ(pair.connect(1, 1, 50).get().status().code(), Code::kTimeout);
  EXPECT_EQ(pair.second->unreachable_rank(), 0);
  EXPECT_EQ(pair.connect(0, 2, 50).get().status().code(), Code::kTimeout);
  EXPECT_EQ(pair.first->unreachable_rank(), 1);
  pair.first.reset();
  EXPECT_EQ(pair.connect(1, 3).get().status().code(), Code::kUnavailable);
  EXPECT_EQ(pair.second->unreachable_rank(), 0);
}

TEST(HostContext, CloseEndsAConnectThatWaitsForCallers) {
  Pair pair;
  auto blocked = pair.connect(0, 3);
  EXPECT_EQ(blocked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  pair.first->close(3);
  EXPECT_EQ(blocked.get().status().code(), Code::kAborted);
  EXPECT_EQ(pair.connect(0, 3).get().status().code(), Code::kAborted);
}

TEST(HostContext, ClosingEveryGenerationEndsAConnectThatWaitsForCallers) {
  Pair pair;
  auto blocked = pair.connect(0, 3);
  EXPECT_EQ(blocked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  pair.first->close(~Generation{0});
  EXPECT_EQ(blocked.get().status().code(), Code::kAborted);
}

TEST(HostContext, CloseEndsAConnectThatWaitsForAnAnswer) {
  Pair pair;
  auto blocked = pair.connect(1, 3);
  EXPECT_EQ(blocked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  pair.second->close(3);
  EXPECT_EQ(blocked.get().status().code(), Code::kAborted);
}

TEST(HostContext, CloseAbortsTheCollectivesOfThatGeneration) {
  Pair pair;
  auto a = pair.connect(0, 3);
  auto b = pair.connect(1, 3);
  auto first = a.get();
  auto second = b.get();
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  auto blocked = std::async(std::launch::async, [&] {
    return (*first)->barrier({3, 0, Phase::kTrain, 0, 0});
  });
  pair.first->close(2);
  EXPECT_EQ(blocked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  pair.first->close(3);
  EXPECT_EQ(blocked.get().code(), Code::kAborted);
}

TEST(HostContext, AWrongTokenIsRefusedOnBothSides) {
  auto ours = make_context();
  auto stranger = make_context("guess");
  const std::vector<PeerAddress> peers = {{kMember0, ours->address()},
                                          {kMember1, stranger->address()}};
  auto waiting =
      std::async(std::launch::async, [&] { return ours->connect(1, 0, kMember0, peers, 200); });
  EXPECT_EQ(stranger->connect(1, 1, kMember1, peers, kConnectMs).status().code(), Code::kRefused);
  EXPECT_EQ(waiting.get().status().code(), Code::kTimeout);
}

TEST(HostContext, GarbageAndSilenceHarmNobody) {
  Pair pair;
  std::vector<Descriptor> strangers;
  const Deadline deadline = Deadline::after(kConnectMs);
  for (int i = 0; i < 100; ++i) {
    auto fd = link::connect_tcp(pair.first->address().tcp, deadline);
    ASSERT_TRUE(fd.is_ok());
    const std::string garbage(i, 'x');
    if (i > 0) (void)!send(fd->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    strangers.push_back(std::move(*fd));
  }
  auto a = pair.connect(0, 1);
  auto b = pair.connect(1, 1);
  EXPECT_TRUE(a.get().is_ok());
  EXPECT_TRUE(b.get().is_ok());
}

TEST(HostContext, BuffersOfDifferentLayoutAreRefusedBeforeAnyStep) {
  Pair pair;
  auto one = pair.first->make_buffer(kLayout, 1);
  auto two = pair.second->make_buffer({128, 128, 144}, 1);
  auto a = pair.connect(0, 1, 500);
  auto b = pair.connect(1, 1, 500);
  EXPECT_EQ(a.get().status().code(), Code::kConfig);
  EXPECT_EQ(b.get().status().code(), Code::kConfig);
}

TEST(HostContext, BuffersWithDifferentRegionsAreRefusedBeforeAnyStep) {
  Pair pair;
  auto one = pair.first->make_buffer(kLayout, 1);
  auto two = pair.second->make_buffer(kLayout, 2);
  auto a = pair.connect(0, 1, 500);
  auto b = pair.connect(1, 1, 500);
  EXPECT_EQ(a.get().status().code(), Code::kConfig);
  EXPECT_EQ(b.get().status().code(), Code::kConfig);
}

TEST(HostContext, ALayoutWithoutTheMemoryForItIsRefused) {
  Pair pair;
  auto buffer = pair.first->make_buffer(kLayout, 1);
  auto waiting = pair.connect(0, 1);
  const Deadline deadline = Deadline::after(kConnectMs);
  auto fd = link::connect_unix(pair.first->address().unix_name);
  auto control = link::Segment::create("test", sizeof(host::ControlBlock));
  ASSERT_TRUE(fd.is_ok() && control.is_ok());
  new ((*control)->data()) host::ControlBlock;
  link::Stream stream(std::move(*fd));
  ASSERT_TRUE(link::introduce(stream, kBetweenRanks, "secret", hello_of(1), deadline).is_ok());
  const host::Offer offer = {sizeof(host::ControlBlock), 0, {kLayout, 1}};
  ASSERT_TRUE(
      link::send_with_fds(stream.fd(), &offer, sizeof offer, {(*control)->fd()}, deadline).is_ok());
  EXPECT_EQ(waiting.get().status().code(), Code::kConfig);
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// accept() fails as without descriptors, which a test cannot take away: sanitizers need some.
TEST(Acceptor, AListenerWhoseCallersCannotBeTakenBurnsNoCoreAndTheOtherIsServed) {
  std::string tcp;
  auto listener = link::listen_tcp("127.0.0.1", &tcp);
  ASSERT_TRUE(listener.is_ok());
  // Always readable, and accept() always fails.
  link::Acceptor acceptor(kBetweenRanks, "secret", nullptr, Descriptor(eventfd(1, EFD_NONBLOCK)),
                          std::move(*listener), Descriptor(eventfd(0, EFD_NONBLOCK)));
  const double before = cpu_seconds();
  EXPECT_EQ(acceptor.wait_for(1, Deadline::after(400)).status().code(), Code::kTimeout);
  // A loop that never waits takes all of 0.4 s; a sanitizer's own threads take a little.
  EXPECT_LT(cpu_seconds() - before, 0.2);
  const Deadline deadline = Deadline::after(kConnectMs);
  auto caller = link::connect_tcp(tcp, deadline);
  ASSERT_TRUE(caller.is_ok());
  const Hello hello = hello_of(1);
  link::Challenge challenge;
  EXPECT_TRUE(link::send_all(caller->get(), &hello, sizeof hello, deadline).is_ok());
  EXPECT_TRUE(link::receive_all(caller->get(), &challenge, sizeof challenge, deadline).is_ok());
}

TEST(Acceptor, AProofForOnePurposeOpensNoConnectionOfAnother) {
  std::string tcp;
  auto listener = link::listen_tcp("127.0.0.1", &tcp);
  ASSERT_TRUE(listener.is_ok());
  link::Acceptor acceptor(kBetweenRanks, "secret", nullptr, Descriptor(), std::move(*listener),
                          Descriptor(eventfd(0, EFD_NONBLOCK)));
  const Deadline deadline = Deadline::after(kConnectMs);
  const auto call = [&](const link::Purpose& purpose, MemberId from) {
    auto fd = link::connect_tcp(tcp, deadline);
    EXPECT_TRUE(fd.is_ok());
    link::Stream stream(std::move(*fd));
    Hello hello = link::new_hello(purpose);
    hello.generation = 1;
    hello.from_member = from;
    hello.to_member = kMember0;
    return link::introduce(stream, purpose, "secret", hello, deadline).code();
  };
  link::Purpose other = kBetweenRanks;
  other.magic += 1;
  EXPECT_EQ(call(other, 1), Code::kUnavailable);
  other = kBetweenRanks;
  other.version += 1;
  EXPECT_EQ(call(other, 2), Code::kUnavailable);
  other = kBetweenRanks;
  other.acceptor_role = "another acceptor";
  EXPECT_EQ(call(other, 3), Code::kRefused);
  other = kBetweenRanks;
  other.initiator_role = "another initiator";
  EXPECT_EQ(call(other, 4), Code::kUnavailable);
  auto right = std::async(std::launch::async, [&] { return call(kBetweenRanks, kMember1); });
  auto arrival = acceptor.wait_for(1, deadline);
  ASSERT_TRUE(arrival.is_ok());
  EXPECT_EQ(arrival->hello.from_member, kMember1);
  const link::Verdict verdict = {link::Welcome::kYes, 0, kMember0, 1};
  EXPECT_TRUE(arrival->stream.send(&verdict, sizeof verdict, deadline).is_ok());
  EXPECT_EQ(right.get(), Code::kOk);
}

TEST(HostContext, TheWrongWorkerAtAnAddressIsRefused) {
  Pair pair;
  auto a = pair.connect(0, 1, 300);
  std::vector<PeerAddress> wrong = {{555, pair.first->address()}, pair.peers[1]};
  EXPECT_EQ(pair.second->connect(1, 1, kMember1, wrong, kConnectMs).status().code(),
            Code::kRefused);
  EXPECT_EQ(a.get().status().code(), Code::kTimeout);
}

TEST(HostContext, AForeignGenerationInATagIsAnError) {
  Pair pair;
  auto a = pair.connect(0, 2);
  auto b = pair.connect(1, 2);
  auto first = a.get();
  auto second = b.get();
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_EQ((*first)->barrier({1, 0, Phase::kTrain, 0, 0}).code(), Code::kInternal);
}

}  // namespace
}  // namespace lockstep
