// Tests what a failing disk or server does to every reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "comm/base/limits.h"
#include "data/io/file_system.h"
#include "data/io/page_cache_reader.h"
#include "data/io/pread_reader.h"
#include "tests/support/fails_with.h"
#include "tests/unit/io/failing_mount.h"
#include "tests/unit/io/files.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kFarTooOften = 1'000;

class FailingDisk : public FilesToRead, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    content_ = some_bytes(9'000);
    std::filesystem::create_directory(path("mount"));
    mount_.emplace(path("mount"), content_, /*is_cached=*/GetParam() == "page_cache");
    if (!mount_->is_mounted()) GTEST_SKIP() << "no FUSE here, or no right to mount";
    file_ = std::string("mount/") + FailingMount::kName;
    if (GetParam() == "pread") reader_ = std::move(make_pread_reader(2)).value();
    if (GetParam() == "page_cache") reader_ = make_page_cache_reader();
  }
  void TearDown() override {
    reader_.reset();
    mount_.reset();
  }

  std::string read(uint64_t offset, uint64_t bytes) {
    std::string out(bytes, '\0');
    const Read one{extent(file_, offset, bytes), reinterpret_cast<uint8_t*>(out.data()), 0};
    const Status status = read_all(*reader_, std::span(&one, 1));
    return status.is_ok() ? out : status.message();
  }

  std::string content_;
  std::string file_;
  std::optional<FailingMount> mount_;
  std::unique_ptr<Reader> reader_;
};

INSTANTIATE_TEST_SUITE_P(, FailingDisk, testing::Values("pread", "page_cache"),
                         [](const auto& param) { return param.param; });

TEST_P(FailingDisk, ThatRecoversIsReadAsIfNothingHadHappened) {
  mount_->fail_next(limits::kReadAttempts - 1);
  EXPECT_EQ(read(5'000, 100), content_.substr(5'000, 100));
}

TEST_P(FailingDisk, ThatDoesNotIsNamedWithThePlaceAfterSoManyAttempts) {
  const uint32_t before = mount_->reads();
  mount_->fail_next(kFarTooOften);
  EXPECT_THAT(read(5'000, 100),
              AllOf(Names(path(file_), "byte 5000"), Says("errno 5"), Advises("disk")));
  if (GetParam() != "page_cache") {  // whose pages the kernel may ask for again by itself
    EXPECT_EQ(mount_->reads() - before, limits::kReadAttempts);
  }
  mount_->fail_next(0);
  EXPECT_EQ(read(0, 9'000), content_) << "and goes on when it can be read again";
}

TEST_P(FailingDisk, OfAnotherProcessIsTakenForRemote) {
  EXPECT_TRUE(is_on_remote_file_system(path(file_)));
  EXPECT_FALSE(is_on_remote_file_system("/proc/self/exe"));
}

}  // namespace
}  // namespace lockstep::data
