// lockstep-parquet, the program that `lockstep data pack` starts for each Parquet file.
//
//   lockstep-parquet schema FILE OUT DESCRIPTOR
//   lockstep-parquet copy FILE OUT DESCRIPTOR COLUMN...
//   lockstep-parquet text FILE OUT DESCRIPTOR COLUMN...
//
// `schema` writes the types of all columns, without rows, to OUT as an Arrow IPC file. `copy`
// writes the columns of these numbers as one. `text` writes these columns as a table of text with a
// header. The program writes its progress to DESCRIPTOR, as unsigned 64-bit numbers of this
// machine: parts of kWhole. The end of DESCRIPTOR is the end of the work. Exit codes: 0; 65 with a
// line on stderr if FILE is damaged; 70.
//
// It takes at most kMemoryBytes, or half of the machine's memory if that is less. So a file that
// promises more than it has, or is a bomb, is an error here and nowhere else.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/byte_units.h"
#include "data/base/machine_memory.h"
#include "data/parquet/parquet_copy.h"

namespace {

namespace copy = lockstep::parquet_copy;

constexpr rlim_t kMemoryBytes = 16 * lockstep::kGib;  // of addresses, libraries included
constexpr uint64_t kWhole = 1'000'000;

rlim_t memory_bytes() {
  return std::min<rlim_t>(kMemoryBytes, lockstep::data::machine_memory_bytes() / 2);
}

bool parse(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

int usage() {
  std::fputs(
      "lockstep-parquet decodes files for `lockstep data pack`, which starts it:\n"
      "  lockstep-parquet schema FILE OUT DESCRIPTOR\n"
      "  lockstep-parquet copy FILE OUT DESCRIPTOR COLUMN...\n"
      "  lockstep-parquet text FILE OUT DESCRIPTOR COLUMN...\n",
      stderr);
  return 64;
}

arrow::Status run(const std::vector<std::string>& words, int descriptor,
                  const std::vector<int>& columns) {
  if (words[0] == "schema") return copy::write_schema(words[1], words[2]);
  const auto convert = words[0] == "text" ? copy::write_text : copy::copy_columns;
  return convert(words[1], words[2], columns, [&](int64_t done, int64_t rows) {
    const auto all = static_cast<uint64_t>(std::max<int64_t>(rows, 1));
    const uint64_t part = static_cast<uint64_t>(done) * kWhole / all;
    // A reader that no longer listens has ended, and this process ends with it.
    [[maybe_unused]] const ssize_t n = ::write(descriptor, &part, sizeof part);
  });
}

int too_large() {
  std::fprintf(stderr, "decoding it needs more than %llu MiB of memory, the limit for one file\n",
               static_cast<unsigned long long>(memory_bytes() >> 20));
  return 65;
}

int ended(const arrow::Status& status) {
  if (status.ok()) return 0;
  if (status.IsOutOfMemory()) return too_large();
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.IsExecutionError() ? 70 : 65;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  int descriptor = -1;
  std::vector<int> columns;
  if (words.size() < 4 || !parse(words[3], descriptor)) return usage();
  for (size_t i = 4; i < words.size(); ++i)
    if (!parse(words[i], columns.emplace_back())) return usage();
  const bool has_columns = words[0] == "copy" || words[0] == "text";
  if ((!has_columns && words[0] != "schema") || has_columns == columns.empty()) return usage();
  const rlimit limit{memory_bytes(), memory_bytes()};
  ::setrlimit(RLIMIT_AS, &limit);
  try {
    return ended(run(words, descriptor, columns));
  } catch (const std::bad_alloc&) {
    return too_large();
  } catch (const std::exception& error) {  // libparquet throws in places
    std::fprintf(stderr, "%s\n", error.what());
    return 65;
  }
}
