#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "comm/link/shared_segment.h"

namespace lockstep::link {
namespace {

TEST(Segment, APeerSeesWhatTheOwnerWritesAndCannotWriteItself) {
  auto owner = Segment::create("test", 8192);
  ASSERT_TRUE(owner.is_ok()) << owner.status().message();
  auto peer = Segment::map_peer(Descriptor(dup((*owner)->fd())), 8192);
  ASSERT_TRUE(peer.is_ok()) << peer.status().message();
  std::memcpy((*owner)->data(), "hello", 6);
  EXPECT_STREQ(static_cast<const char*>((*peer)->data()), "hello");
  EXPECT_EQ(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, (*owner)->fd(), 0), MAP_FAILED);
  EXPECT_NE(mprotect((*peer)->data(), 8192, PROT_READ | PROT_WRITE), 0);
  EXPECT_NE(ftruncate((*owner)->fd(), 4096), 0);
  EXPECT_LT(write((*owner)->fd(), "x", 1), 0);
}

TEST(Segment, AnUnsealedSegmentIsRefused) {
  Descriptor fd(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  EXPECT_EQ(Segment::map_peer(std::move(fd), 4096).status().code(), Code::kRefused);
}

TEST(Segment, AnotherSizeThanAnnouncedIsRefused) {
  auto owner = Segment::create("test", 4096);
  ASSERT_TRUE(owner.is_ok());
  EXPECT_EQ(Segment::map_peer(Descriptor(dup((*owner)->fd())), 8192).status().code(),
            Code::kRefused);
}

}  // namespace
}  // namespace lockstep::link
