#include "comm/http/redirect_rule.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

TEST(RedirectRule, EveryAddressHasItsNetwork) {
  for (const char* address : {"8.8.8.8", "172.32.0.1", "11.0.0.1", "2606:4700::1111"})
    EXPECT_EQ(kind_of(address), AddressKind::kPublic) << address;
  for (const char* address : {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.7.7",
                              "100.64.0.1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"})
    EXPECT_EQ(kind_of(address), AddressKind::kPrivate) << address;
  for (const char* address : {"169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254"})
    EXPECT_EQ(kind_of(address), AddressKind::kLinkLocal) << address;
  for (const char* address :
       {"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "", "localhost"})
    EXPECT_EQ(kind_of(address), AddressKind::kLoopback) << address;
}

TEST(RedirectRule, NobodyLeadsInsideOfAnotherNetwork) {
  using enum AddressKind;
  for (const AddressKind from : {kPublic, kPrivate, kLinkLocal, kLoopback}) {
    EXPECT_TRUE(may_redirect(from, kPublic));
    EXPECT_EQ(may_redirect(from, kPrivate), from != kPublic);
    EXPECT_EQ(may_redirect(from, kLinkLocal), from == kLinkLocal);
    EXPECT_EQ(may_redirect(from, kLoopback), from == kLoopback);
  }
}

}  // namespace
}  // namespace lockstep::http
