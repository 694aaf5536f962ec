// Tests where TCP of the data plane listens, and that peers find each other there.
#include <gtest/gtest.h>

#include "comm/net/network.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

using testing::kConnectMs;
using testing::run_ranks;

std::unique_ptr<HostContext> context_at(const std::string& host) {
  auto context = HostContext::create({.token = "secret", .force_tcp = true, .tcp_host = host});
  EXPECT_TRUE(context.is_ok()) << context.status().message();
  return context.is_ok() ? std::move(*context) : nullptr;
}

// Two ranks, each listening on an address of its own, meet and leave a barrier.
void expect_to_meet(const std::array<std::string, 2>& hosts) {
  std::array<std::unique_ptr<HostContext>, 2> contexts;
  std::vector<PeerAddress> peers;
  for (size_t r = 0; r < 2; ++r) {
    contexts[r] = context_at(hosts[r]);
    ASSERT_NE(contexts[r], nullptr);
    peers.push_back({100 + r, contexts[r]->address()});
  }
  run_ranks(2, [&](uint32_t r) {
    auto collective = contexts[r]->connect(1, r, 100 + r, peers, kConnectMs);
    ASSERT_TRUE(collective.is_ok()) << collective.status().message();
    const Status met = (*collective)->barrier({.generation = 1, .step = 0, .phase = Phase::kTrain});
    EXPECT_TRUE(met.is_ok()) << met.message();
  });
}

bool has_ipv6_loopback() {
  for (const rpc::InterfaceAddress& own : rpc::own_addresses())
    if (own.address == "::1") return true;
  return false;
}

TEST(HostNetwork, PeersMeetOnTheAddressesThatTheyTell) {
  expect_to_meet({"127.0.0.1", "127.0.0.2"});
  EXPECT_EQ(context_at("127.0.0.3")->address().tcp.rfind("127.0.0.3:", 0), 0u);
}

TEST(HostNetwork, PeersMeetOverIPv6) {
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this machine has no IPv6";
  expect_to_meet({"::1", "::1"});
}

TEST(HostNetwork, AnAddressThatIsNotOursCannotBeListenedOn) {
  const auto context = HostContext::create({.token = "secret", .tcp_host = "192.0.2.1"});
  EXPECT_EQ(context.status().code(), Code::kConfig);
}

}  // namespace
}  // namespace lockstep
