#include "deploy/agent/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Allocator : public testing::Test {
 protected:
  const TemporaryDirectory here_;
  const std::vector<std::string> directories_{"/nowhere", here_.path()};
};

TEST_F(Allocator, OfTheSystemNeedsNothing) {
  for (const char* name : {"system", ""}) {
    const auto library = allocator_library(name, {});
    ASSERT_TRUE(library.is_ok());
    EXPECT_EQ(*library, "");
  }
}

TEST_F(Allocator, OneThatIsNotThereIsRefusedWithItsPackage) {
  EXPECT_THAT(allocator_library("jemalloc", directories_),
              FailsWith(Code::kConfig, Names("libjemalloc.so.2"),
                        Advises("libjemalloc2", "cluster.malloc=system")));
  EXPECT_THAT(allocator_library("tcmalloc", directories_),
              FailsWith(Code::kConfig, Names("tcmalloc"), Advises("libtcmalloc-minimal4")));
  EXPECT_THAT(installed_allocators(directories_), IsEmpty());
}

TEST_F(Allocator, IsFoundUnderAnyOfItsNames) {
  write_file(here_.path("libtcmalloc.so.4"), "");
  EXPECT_EQ(*allocator_library("tcmalloc", directories_), here_.path("libtcmalloc.so.4"));
  write_file(here_.path("libtcmalloc_minimal.so.4"), "");
  EXPECT_EQ(*allocator_library("tcmalloc", directories_), here_.path("libtcmalloc_minimal.so.4"));
  EXPECT_THAT(installed_allocators(directories_), ElementsAre("tcmalloc"));
}

// A list of LD_PRELOAD cannot hold the path, and a relative one means another place for each.
TEST_F(Allocator, PathsThatCannotBePreloadedAreLeftOut) {
  ::setenv("LD_LIBRARY_PATH", "/a b:relative::/opt/lib", 1);
  const auto directories = library_directories();
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(directories.front(), "/opt/lib");
  for (const std::string& directory : directories)
    EXPECT_EQ(directory.find(' '), std::string::npos);
}

}  // namespace
}  // namespace lockstep
