#include "data/io/file_system.h"

#include <gtest/gtest.h>
#include <linux/magic.h>

#include <filesystem>

namespace lockstep::data {
namespace {

TEST(FileSystem, OfANetworkOrAnotherProcessIsRemoteAndOfADiskIsNot) {
  for (const uint64_t magic : {NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC,
                               CEPH_SUPER_MAGIC, AFS_FS_MAGIC, CODA_SUPER_MAGIC})
    EXPECT_TRUE(is_remote_file_system(magic)) << magic;
  for (const uint64_t magic :
       {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, static_cast<int>(BTRFS_SUPER_MAGIC), TMPFS_MAGIC,
        OVERLAYFS_SUPER_MAGIC})
    EXPECT_FALSE(is_remote_file_system(magic)) << magic;
}

TEST(FileSystem, OfAFileThatIsNotThereIsTakenForLocal) {
  EXPECT_FALSE(is_on_remote_file_system("/nowhere/at/all"));
}

}  // namespace
}  // namespace lockstep::data
