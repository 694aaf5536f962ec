#include "comm/net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep::rpc {
namespace {

TEST(Address, SurvivesTheWayThroughText) {
  for (const char* text : {"127.0.0.1:4100", "localhost:0", "[::1]:65535", "node-1.rack_2:80"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.is_ok()) << text;
    EXPECT_EQ(to_string(*address), text);
  }
  EXPECT_EQ(parse_address("[::1]:7")->host, "::1");
}

TEST(Address, WhatIsNoAddressIsRefusedWithItsText) {
  for (const char* text :
       {"", ":", "host", "host:", ":80", "host:65536", "host:-1", "host:8 0", "::1:80", "[::1]",
        "[::1", "[]:80", "[::1]x:80", "[localhost]:80", "a b:80", "host:80x"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.is_ok()) << text;
    EXPECT_THAT(address, FailsWith(Code::kUsage, Names(text)));
  }
}

TEST(Address, ANameIsNotInNumbersButForLocalhost) {
  EXPECT_EQ(numeric_address({"localhost", 5})->host, "127.0.0.1");
  for (const char* host : {"10.0.0.1", "::1", "fd00::2"})
    EXPECT_EQ(numeric_address({host, 5})->host, host);
  for (const char* host : {"example.org", "127.0.0.1.evil", "10.0.0"})
    EXPECT_EQ(numeric_address({host, 5}).status().code(), Code::kConfig) << host;
}

TEST(Address, WhatOthersCanReachIsNotLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.0.1", "::1"})
    EXPECT_TRUE(check_loopback({host, 5}).is_ok()) << host;
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "example.org", "127.0.0.1.evil"})
    EXPECT_EQ(check_loopback({host, 5}).code(), Code::kConfig) << host;
}

}  // namespace
}  // namespace lockstep::rpc
