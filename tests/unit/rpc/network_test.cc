#include "comm/net/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep::rpc {
namespace {

using ::testing::HasSubstr;

const std::vector<InterfaceAddress> kAddresses = {
    {"lo", "127.0.0.1"}, {"lo", "::1"},        {"eth0", "192.168.7.2"}, {"eth0", "fe80::1"},
    {"ib0", "fe80::2"},  {"ib0", "fd00:1::9"}, {"ib0", "10.2.3.4"},     {"eth1", "10.2.200.1"},
};

std::string chosen(std::string_view network) {
  const auto parsed = parse_network(network);
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().message();
  const auto address = choose_address(*parsed, kAddresses);
  return address.is_ok() ? *address : "none";
}

TEST(Network, IsLoopbackUnlessItIsAskedFor) {
  for (const char* text : {"", "loopback"}) {
    EXPECT_TRUE(parse_network(text)->is_loopback());
    EXPECT_EQ(chosen(text), "127.0.0.1");
  }
  for (const char* text : {"eth0", "10.2.0.0/16", "lo", "fd00::/8"})
    EXPECT_FALSE(parse_network(text)->is_loopback()) << text;
}

TEST(Network, IsOfOneMachineHoweverThatIsSaid) {
  for (const char* text : {"", "loopback", "lo", "127.0.0.0/8", "127.0.0.1/32", "::1/128"})
    EXPECT_TRUE(is_of_one_machine(text)) << text;
  for (const char* text : {"eth0", "10.2.0.0/16", "127.0.0.1", "126.0.0.0/7", "fd00::/8", "::/64"})
    EXPECT_FALSE(is_of_one_machine(text)) << text;
}

TEST(Network, OfAPrefixIsTheAddressThatHasItToTheLastBit) {
  EXPECT_EQ(chosen("10.2.0.0/16"), "10.2.3.4");
  EXPECT_EQ(chosen("10.2.192.0/18"), "10.2.200.1");
  EXPECT_EQ(chosen("10.2.3.4/32"), "10.2.3.4");
  EXPECT_EQ(chosen("10.2.3.5/32"), "none");
  EXPECT_EQ(chosen("192.168.6.0/23"), "192.168.7.2");
  EXPECT_EQ(chosen("192.168.6.0/24"), "none");
  EXPECT_EQ(chosen("fd00:1::/64"), "fd00:1::9");
  EXPECT_EQ(chosen("fd00:1:0:1::/64"), "none");
}

TEST(Network, OfAnInterfaceIsItsFirstAddressIPv4BeforeIPv6) {
  EXPECT_EQ(chosen("ib0"), "10.2.3.4");
  EXPECT_EQ(chosen("eth1"), "10.2.200.1");
  EXPECT_EQ(chosen("eth2"), "none");
}

TEST(Network, AnAddressThatMeansSomethingOnOneLinkOnlyIsNeverChosen) {
  EXPECT_EQ(chosen("fe80::/10"), "none");
  const auto network = parse_network("ib0");
  EXPECT_FALSE(choose_address(*network, {{"ib0", "fe80::2"}}).is_ok());
}

TEST(Network, WhoHasNoAddressThereIsToldWhatThereIs) {
  const auto none = choose_address(*parse_network("172.16.0.0/12"), kAddresses).status();
  EXPECT_EQ(none.code(), Code::kConfig);
  EXPECT_THAT(none.message(), HasSubstr("172.16.0.0/12"));
  EXPECT_THAT(none.message(), HasSubstr("eth0 192.168.7.2"));
}

TEST(Network, WhatIsNoneIsRefusedWithItsText) {
  for (const char* text :
       {"10.0.0.1", "::1", "10.0.0.0/33", "10.0.0.0/0", "10.0.0.0/", "/8", "10.0.0/8", "fd00::/129",
        "10.0.0.0/8x", "10.0.0.0/-1", "eth 0", "a-name-that-is-too-long", "eth0;reboot"}) {
    const auto network = parse_network(text);
    ASSERT_FALSE(network.is_ok()) << text;
    EXPECT_EQ(network.status().code(), Code::kUsage);
    EXPECT_THAT(network.status().message(), HasSubstr(text));
  }
}

TEST(Network, OpenDataStaysOnLoopbackUntilTheNetworkIsTrusted) {
  EXPECT_EQ(*open_data_interface("10.2.0.0/16", /*is_trusted=*/false, kAddresses), "lo");
  EXPECT_EQ(*open_data_interface("loopback", /*is_trusted=*/true, kAddresses), "lo");
  EXPECT_EQ(*open_data_interface("10.2.0.0/16", /*is_trusted=*/true, kAddresses), "ib0");
  EXPECT_EQ(*open_data_interface("eth1", /*is_trusted=*/true, kAddresses), "eth1");
  EXPECT_EQ(*open_data_interface("10.3.0.0/16", true, {{"eth0:1", "10.3.0.1"}}), "eth0");
}

// On loopback it would wait for peers on other machines until the deadline.
TEST(Network, OpenDataWithoutAnInterfaceInATrustedNetworkIsAnError) {
  const auto missing = open_data_interface("172.16.0.0/12", /*is_trusted=*/true, kAddresses);
  EXPECT_THAT(missing.status(), FailsWith(Code::kConfig, Names("172.16.0.0/12")));
  EXPECT_EQ(open_data_interface("10.0.0.1", true, kAddresses).status().code(), Code::kUsage);
}

TEST(Network, ThisMachineIsOnItsLoopback) {
  EXPECT_EQ(*own_address_in("127.0.0.0/8"), "127.0.0.1");
  EXPECT_EQ(*own_address_in("loopback"), "127.0.0.1");
}

}  // namespace
}  // namespace lockstep::rpc
