// Tests which connection makes room among too many that have not proven themselves.
#include "comm/net/crowd.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Crowd, TheOldestOfTheLargestSourceGoesFirst) {
  Crowd crowd;
  crowd.add(1, "10.0.0.1", 0);
  for (Crowd::Id id = 2; id < 5; ++id) crowd.add(id, "10.0.0.2", 0);
  crowd.add(5, "10.0.0.3", 0);
  EXPECT_EQ(crowd.first_to_go(), 2u);
  crowd.remove(2);
  crowd.remove(3);
  crowd.add(6, "10.0.0.3", 0);
  EXPECT_EQ(crowd.first_to_go(), 5u);
}

TEST(Crowd, AddressesOfWhoHasProvenHimselfGoLast) {
  Crowd crowd;
  crowd.add(1, "10.0.0.1", 0);
  crowd.remove(1, /*is_proven=*/true);
  for (Crowd::Id id = 2; id < 5; ++id) crowd.add(id, "10.0.0.1", 0);
  crowd.add(9, "10.0.0.2", 0);
  EXPECT_EQ(crowd.first_to_go(), 9u);
  for (Crowd::Id id = 10; id < 20; ++id) crowd.add(id, "10.0.0.1", 0);
  EXPECT_EQ(crowd.first_to_go(), 2u) << "unless it is the one that floods";
}

TEST(Crowd, NobodyIsOverdueWhoIsPromptAndFair) {
  Crowd crowd;
  for (Crowd::Id id = 1; id <= 4; ++id) crowd.add(id, id % 2 == 0 ? "a" : "b", 100);
  EXPECT_EQ(crowd.overdue(2, 100), std::nullopt);
  EXPECT_EQ(crowd.overdue(1, 100), 2u) << "more than is fair";
  EXPECT_EQ(crowd.overdue(2, 101), 1u) << "too slow";
  crowd.add(5, "c", 200);
  crowd.remove(1);
  crowd.remove(2);
  crowd.add(6, "c", 200);
  crowd.add(7, "c", 200);
  EXPECT_EQ(crowd.overdue(3, 150), 3u) << "the oldest, though another address has sent more";
}

TEST(Crowd, ASourceIsAnAddressWithoutItsPort) {
  EXPECT_EQ(host_of("127.0.0.1:51234"), "127.0.0.1");
  EXPECT_EQ(host_of("[::1]:51234"), "[::1]");
  EXPECT_EQ(host_of("client"), "client");
}

}  // namespace
}  // namespace lockstep
