// Names the adapter that lost its link, from a sysfs of the test's own.
#include "comm/collectives/nccl/adapter_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/planted_adapters.h"

namespace lockstep::nccl {
namespace {

using ::testing::HasSubstr;
using testing::PlantedAdapters;

constexpr char kNearTo5[] = "0000:30:00.0";

class AdapterLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    adapters_.plant_gpu("pci0000:00/0000:00:01.0/0000:30:00.0");
    adapters_.plant("mlx5_0", "pci0000:80/0000:80:01.0/0000:90:00.0");
    adapters_.plant("mlx5_5", "pci0000:00/0000:00:01.0/0000:31:00.0");
    links_.begin();
  }
  std::string trouble() const {
    const auto found = links_.trouble();
    return found ? found->what : "";
  }

  const PlantedAdapters adapters_;
  AdapterLinks links_{kNearTo5, adapters_.path()};
};

TEST_F(AdapterLinksTest, AMachineWithoutAnyOrWithAllAsTheyWereHasNoTrouble) {
  EXPECT_EQ(trouble(), "");
  AdapterLinks none("", "/nowhere");
  none.begin();
  EXPECT_FALSE(none.trouble());
}

TEST_F(AdapterLinksTest, APortThatIsDownIsNamedUntilItIsUp) {
  adapters_.set("mlx5_0", "1: DOWN", 0);
  EXPECT_THAT(trouble(), HasSubstr("port 1 of mlx5_0 is not active (1: DOWN)"));
  EXPECT_FALSE(links_.trouble()->is_near);
  links_.begin();  // another connection: it is still down
  EXPECT_NE(trouble(), "");
  adapters_.set("mlx5_0", "4: ACTIVE", 0);
  EXPECT_EQ(trouble(), "");
}

TEST_F(AdapterLinksTest, ALinkThatCameBackIsNamedUntilTheNextConnection) {
  adapters_.set("mlx5_5", "4: ACTIVE", 3);
  EXPECT_THAT(trouble(), HasSubstr("port 1 of mlx5_5 has lost its link"));
  EXPECT_TRUE(links_.trouble()->is_near);
  links_.begin();
  EXPECT_EQ(trouble(), "");
}

TEST_F(AdapterLinksTest, ACounterThatWasUnreadableBeforeIsNoLostLink) {
  std::filesystem::remove(adapters_.path() +
                          "/class/infiniband/mlx5_5/ports/1/counters/link_downed");
  links_.begin();
  adapters_.set("mlx5_5", "4: ACTIVE", 3);
  EXPECT_EQ(trouble(), "");
}

TEST_F(AdapterLinksTest, OfTwoTheNearOneIsNamed) {
  adapters_.set("mlx5_0", "1: DOWN", 0);
  adapters_.set("mlx5_5", "4: ACTIVE", 1);
  EXPECT_THAT(trouble(), HasSubstr("mlx5_5"));
}

TEST_F(AdapterLinksTest, APortThatWasNeverActiveIsNoTrouble) {
  const PlantedAdapters others;
  others.plant("mlx5_7", "pci0000:00/0000:32:00.0");
  others.set("mlx5_7", "1: DOWN", 0);
  AdapterLinks links("", others.path());
  links.begin();
  EXPECT_FALSE(links.trouble());
}

}  // namespace
}  // namespace lockstep::nccl
