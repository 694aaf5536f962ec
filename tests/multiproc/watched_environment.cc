// Preloaded into the processes of a run: each change of the environment is a line of the file that
// LOCKSTEP_TEST_ENVIRONMENT names, "NAME THREADS", with the threads that the process has then. A
// change races with what other threads read there.
#include <dirent.h>

#include <cstdio>
#include <cstdlib>

#include "tests/harness/preload.h"

using lockstep::testing::real;

namespace {

int threads() {
  int count = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return -1;
  while (const dirent* entry = ::readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(tasks);
  return count;
}

void note(const char* name) {
  const char* path = std::getenv("LOCKSTEP_TEST_ENVIRONMENT");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s %d\n", name, threads());
  std::fclose(file);
}

}  // namespace

extern "C" int setenv(const char* name, const char* value, int overwrite) noexcept {
  note(name);
  return real<int (*)(const char*, const char*, int)>("setenv")(name, value, overwrite);
}

extern "C" int unsetenv(const char* name) noexcept {
  note(name);
  return real<int (*)(const char*)>("unsetenv")(name);
}
