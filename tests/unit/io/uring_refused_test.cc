// io_uring as a sandbox forbids it: a process of its own whose kernel says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "comm/base/file.h"
#include "data/io/uring_reader.h"
#include "tests/unit/io/files.h"

namespace lockstep::data {
namespace {

// From here on this process gets `error` for that call.
bool forbid(uint32_t call, int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class UringRefused : public FilesToRead, public testing::WithParamInterface<int> {};

TEST_P(UringRefused, IsSaidWithTheKernelsReason) {
  write("data", "abc");
  const FileExtent first = extent("data", 0, 3);
  const std::string expected = "io_uring_setup: " + errno_text(GetParam());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!forbid(SYS_io_uring_setup, GetParam())) ::_exit(77);
    const auto reader = make_uring_reader(first);
    std::fprintf(stderr, "%s\n", reader.status().message().c_str());
    ::_exit(reader.status().code() == Code::kConfig && reader.status().message() == expected ? 0
                                                                                             : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(, UringRefused, testing::Values(EPERM, ENOSYS, ENOMEM));

TEST_F(FilesToRead, UringThatCannotReadTheDataIsRefusedToo) {
  write("data", "abc");
  FileExtent gone = extent("data", 0, 3);
  gone.path += "-gone";
  const auto reader = make_uring_reader(gone);
  EXPECT_EQ(reader.status().code(), Code::kConfig);
}

}  // namespace
}  // namespace lockstep::data
