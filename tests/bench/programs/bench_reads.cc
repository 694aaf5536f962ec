// How fast a reader of data/io gets records from a file. tests/bench/cold_reads.py compares it with
// fio and dd.
//
//     bench_reads --file PATH --reader pread|page-cache|one-by-one
//                 --record BYTES --records N [--order permuted|sequential] [--seed 1]
//
// posix_fadvise puts the file out of the page cache first, so it must not be in use or unwritten.
// One JSON line: bytes, wall_s, and cpu_s of all threads of the process, with the kernel's work in
// it. one-by-one: pread in a loop, as a loader without any of these readers would.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/descriptors.h"
#include "comm/base/prng.h"
#include "data/base/modified_ns.h"
#include "data/io/page_cache_reader.h"
#include "data/io/pread_reader.h"

namespace lockstep::bench {
namespace {

struct Arguments {
  std::string file;
  std::string reader = "pread";
  std::string order = "permuted";
  uint64_t record = 100'000;
  uint64_t records = 1'000;
  uint64_t seed = 1;
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

[[noreturn]] void fail(const Status& status) {
  std::fprintf(stderr, "bench_reads: %s\n", status.message().c_str());
  std::exit(exit_code(status));
}

std::unique_ptr<data::Reader> make_reader(const std::string& name) {
  if (name == "page-cache") return data::make_page_cache_reader();
  auto made = data::make_pread_reader(8);
  if (!made.is_ok()) fail(made.status());
  return std::move(*made);
}

// Numbers of records, none twice.
std::vector<uint64_t> places(const Arguments& arguments, uint64_t file_bytes) {
  std::vector<uint64_t> all(file_bytes / arguments.record);
  std::iota(all.begin(), all.end(), uint64_t{0});
  Prng prng(arguments.seed);
  if (arguments.order == "permuted")
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[prng.below(i)]);
  all.resize(std::min<uint64_t>(all.size(), arguments.records));
  return all;
}

Status read_one_by_one(const std::vector<data::Read>& reads) {
  for (const data::Read& read : reads)
    LOCKSTEP_RETURN_IF_ERROR(data::read_extent(read.extent, read.out));
  return Status::ok();
}

int run(const Arguments& arguments) {
  const Descriptor fd(data::open_to_read(arguments.file));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    fail({Code::kNoInput, "cannot open " + arguments.file});
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  const std::vector<uint64_t> order = places(arguments, file_bytes);
  // Uses as many destinations as a loader has ahead of it, in turn.
  constexpr uint64_t kRoomBytes = 64'000'000;
  const uint64_t rooms = std::clamp<uint64_t>(kRoomBytes / arguments.record, 64, order.size() + 64);
  std::vector<uint8_t> room(rooms * arguments.record, 1);
  std::vector<data::Read> reads;
  for (size_t i = 0; i < order.size(); ++i)
    reads.push_back({{fd.get(), arguments.file, order[i] * arguments.record, arguments.record,
                      file_bytes, data::modified_ns(info)},
                     room.data() + i % rooms * arguments.record,
                     0});
  if (reads.empty()) fail({Code::kUsage, "the file is smaller than one record"});
  std::unique_ptr<data::Reader> reader;
  if (arguments.reader != "one-by-one") reader = make_reader(arguments.reader);
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const SystemClock clock;
  const double cpu = cpu_seconds();
  const int64_t begin = clock.monotonic_ns();
  const Status status = reader ? data::read_all(*reader, reads) : read_one_by_one(reads);
  const double wall = static_cast<double>(clock.monotonic_ns() - begin) / 1e9;
  if (!status.is_ok()) fail(status);
  std::printf("{\"bytes\": %lu, \"wall_s\": %.4f, \"cpu_s\": %.4f}\n",
              reads.size() * arguments.record, wall, cpu_seconds() - cpu);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Arguments arguments;
  CLI::App app("reads records of a file that is not in memory");
  app.add_option("--file", arguments.file)->required();
  app.add_option("--reader", arguments.reader)
      ->check(CLI::IsMember({"pread", "page-cache", "one-by-one"}));
  app.add_option("--order", arguments.order)->check(CLI::IsMember({"permuted", "sequential"}));
  app.add_option("--record", arguments.record)->check(CLI::PositiveNumber);
  app.add_option("--records", arguments.records)->check(CLI::PositiveNumber);
  app.add_option("--seed", arguments.seed);
  CLI11_PARSE(app, argc, argv);
  return lockstep::bench::run(arguments);
}
