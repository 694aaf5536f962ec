// How fast the loader makes batches, alone, and how soon it is in the middle of an epoch.
// tests/bench/loader.py compares it with peers.
//
//     bench_loader epochs --data DIR [--format cifar10] [--form stored] [--epochs 3] [--batch 128]
//                  [--targets masks]
//     bench_loader cold --data DIR --records N [--reader auto] [--read-ahead-mb 64] [--seed 1]
//     bench_loader resume [--samples 10000000000] [--rounds 200]
//
// epochs: one rank takes all batches of some epochs and does nothing with them. The first epoch
// warms the page cache. For each later epoch prints one JSON line: samples, wall_s, cpu_s (of the
// process, all threads), wait_s (of the consumer), copy_s (the same bytes by memcpy, sample by
// sample in order), and copy_shuffled_s (in an epoch's order); both copies are 0 for encoded
// images.
// cold: the first batches of an epoch, with about so many samples, once all files are put out of
// the page cache; tests/bench/cold_reads.py compares it with fio and dd. One JSON line: bytes,
// wall_s, cpu_s.
// resume: from the call of Loader::start() to the first batch, in the middle of an epoch of so many
// samples of 3 KB (which share 16 MiB of memory). Microseconds, and the growth of the process.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/clock.h"
#include "comm/base/prng.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/doctor/cold.h"
#include "data/loader/loader.h"
#include "data/loader/loader_tuning.h"
#include "data/loader/sample_team.h"
#include "data/open/open_dataset.h"
#include "data/prefetch/prefetch_policy.h"
#include "data/transform/transform_list.h"

namespace lockstep::bench {
namespace {

struct Arguments {
  std::string data;
  std::string format = "auto";
  std::string form = "stored";
  std::string reader = "auto";
  std::string tune = "off";
  uint64_t read_ahead_mb = 64;
  std::vector<std::string> transforms = {"normalize"};
  std::vector<std::string> targets = {};
  uint32_t epochs = 3;
  uint32_t threads = 1;
  uint64_t batch = 128;
  uint64_t records = 1'000;
  uint64_t seed = 11;
  uint32_t block = 1024;
  uint32_t rounds = 200;
  uint64_t samples = 10'000'000'000;
};

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

int64_t peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

template <typename T>
T checked(Result<T> result) {
  if (!result.is_ok()) {
    std::fprintf(stderr, "bench_loader: %s\n", result.status().message().c_str());
    std::exit(exit_code(result.status()));
  }
  return std::move(result).value();
}

// ---- epochs ----

// Copies every sample once, in stored order or in an epoch's, into the memory of one batch.
double copy_seconds(const data::Dataset& dataset, uint64_t batch,
                    const EpochOrder* order = nullptr) {
  const auto stored = dataset.as<data::StoredSamples>();
  if (!stored) return 0;
  std::vector<uint64_t> samples(dataset.samples());
  for (uint64_t i = 0; i < samples.size(); ++i) samples[i] = order == nullptr ? i : order->at(i);
  const uint64_t bytes = dataset.shape().stored_bytes();
  std::vector<uint8_t> room(bytes * batch);
  const SystemClock clock;
  const int64_t begin = clock.monotonic_ns();
  for (uint64_t i = 0; i < samples.size(); ++i) {
    const auto [from, number] = stored->at(samples[i]);
    std::memcpy(room.data() + i % batch * bytes, from.sample(number), bytes);
  }
  return seconds(clock.monotonic_ns() - begin);
}

// The options of one rank that takes every sample.
data::LoaderOptions options_of(const data::Dataset& dataset, const Arguments& arguments,
                               data::PrefetchPolicy& reading) {
  data::LoaderOptions options;
  options.prefetch = &reading;
  options.shape = {dataset.samples(), arguments.batch, 1};
  options.order = {arguments.seed, dataset.fingerprint(), dataset.samples()};
  options.slots = {0, 1};
  options.transforms = arguments.transforms;
  options.threads = arguments.threads;
  if (dataset.shape().is_sequence()) options.transforms.clear();
  options.form = arguments.form == "stored" ? data::ImageForm::kStored : data::ImageForm::kFloats;
  return options;
}

struct Taken {
  uint64_t samples = 0;
  double wall_s = 0;
  double cpu_s = 0;
  double wait_s = 0;
};

Taken take_all(const data::Dataset& dataset, const data::LoaderOptions& options) {
  Taken taken;
  const SystemClock clock;
  const double cpu = cpu_seconds();
  const int64_t begin = clock.monotonic_ns();
  const auto loader = checked(data::Loader::start(dataset, options));
  while (const data::Batch* batch = checked(loader->next())) taken.samples += batch->samples;
  taken.wall_s = seconds(clock.monotonic_ns() - begin);
  taken.cpu_s = cpu_seconds() - cpu;
  taken.wait_s = seconds(static_cast<int64_t>(loader->wait_ns()));
  return taken;
}

void measure_epoch(const data::Dataset& dataset, const Arguments& arguments,
                   data::PrefetchPolicy& reading, data::LoaderTuning* tuning, Epoch epoch) {
  data::LoaderOptions options = options_of(dataset, arguments, reading);
  options.tuning = tuning;
  const uint64_t steps = steps_per_epoch(options.shape);
  options.first_step = epoch * steps;
  options.end_step = options.first_step + steps;
  const Taken taken = take_all(dataset, options);
  LOCKSTEP_CHECK(taken.samples == dataset.samples(), "every sample once");
  if (epoch == 0) return;
  const EpochOrder order(options.order, epoch);
  std::printf(
      "{\"samples\": %lu, \"sample_bytes\": %lu, \"wall_s\": %.4f, \"cpu_s\": %.4f, "
      "\"wait_s\": %.4f, \"copy_s\": %.4f, \"copy_shuffled_s\": %.4f}\n",
      taken.samples, dataset.shape().stored_bytes(), taken.wall_s, taken.cpu_s, taken.wait_s,
      copy_seconds(dataset, arguments.batch), copy_seconds(dataset, arguments.batch, &order));
  std::fflush(stdout);
}

std::unique_ptr<data::Dataset> open(const Arguments& arguments) {
  wire::DatasetSpec spec;
  spec.set_path(arguments.data);
  spec.set_format(arguments.format);
  const auto cache = std::filesystem::temp_directory_path() / "lockstep-bench-loader";
  const auto transforms = checked(data::parse_transforms(arguments.transforms));
  data::SampleCut cut{.block = arguments.block, .vocab = 0, .frame = transforms.frame};
  cut.columns.targets = arguments.targets;
  return checked(data::open_dataset(spec, data::Split::kTrain, cache.string(), {}, cut));
}

data::PrefetchPolicy reading_of(const Arguments& arguments) {
  wire::DataSpec how;
  how.set_reader(arguments.reader);
  how.set_read_ahead_mb(arguments.read_ahead_mb);
  return {how, [](const std::string& note) { std::fprintf(stderr, "%s\n", note.c_str()); }};
}

void measure_epochs(const Arguments& arguments) {
  const auto dataset = open(arguments);
  data::PrefetchPolicy reading = reading_of(arguments);
  data::LoaderTuning tuning({arguments.threads, data::LoaderOptions().prefetch_batches},
                            data::most_decode_threads(*dataset, 0));
  for (Epoch epoch = 0; epoch < arguments.epochs + 1; ++epoch)
    measure_epoch(*dataset, arguments, reading, arguments.tune == "auto" ? &tuning : nullptr,
                  epoch);
  if (tuning.is_done()) std::fprintf(stderr, "%s\n", tuning.result()->text().c_str());
}

// ---- cold ----

void measure_cold(const Arguments& arguments) {
  const auto dataset = open(arguments);
  data::PrefetchPolicy reading = reading_of(arguments);
  data::LoaderOptions options = options_of(*dataset, arguments, reading);
  options.end_step = std::min(steps_per_epoch(options.shape),
                              (arguments.records + arguments.batch - 1) / arguments.batch);
  std::vector<uint64_t> samples(dataset->samples());
  std::iota(samples.begin(), samples.end(), uint64_t{0});
  const doctor::Coldness cold = doctor::make_cold(*dataset, samples);
  if (cold.share < 0.99) std::fprintf(stderr, "bench_loader: %s\n", cold.why_not.c_str());
  LOCKSTEP_CHECK(cold.share >= 0.99, "samples that are out of the page cache");
  const Taken taken = take_all(*dataset, options);
  // The encoded samples of this benchmark are all about as large.
  const auto extent = dataset->extent(0);
  LOCKSTEP_CHECK(extent.has_value(), "samples that lie in files");
  std::printf("{\"bytes\": %lu, \"wall_s\": %.4f, \"cpu_s\": %.4f}\n",
              taken.samples * extent->bytes, taken.wall_s, taken.cpu_s);
}

// ---- resume ----

// Any number of samples in 16 MiB.
class HugeSamples final : public data::StoredSamples, public data::Labels {
 public:
  const uint8_t* sample(uint64_t i) const override {
    return memory_.data() + i % (memory_.size() / kBytes) * kBytes;
  }
  uint32_t label(uint64_t i) const override { return static_cast<uint32_t>(i % 10); }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  static constexpr uint64_t kBytes = 3072;
  const std::vector<uint8_t> memory_ = std::vector<uint8_t>(16 << 20, 1);
};

void measure_resume(const Arguments& arguments) {
  const data::Dataset dataset({.samples = arguments.samples,
                               .shape = {3, 32, 32, 0, 0, false},
                               .classes = 10,
                               .format = "memory",
                               .fingerprint = "0123456789abcdef0123456789abcdef",
                               .statistics = {3, {0.5, 0.25}}},
                              std::make_shared<const HugeSamples>());
  data::LoaderOptions options;
  options.shape = {arguments.samples, arguments.batch, 1};
  options.slots = {0, 1};
  options.form = data::ImageForm::kStored;
  options.end_step = steps_per_epoch(options.shape);
  const SystemClock clock;
  Prng prng(7);
  std::vector<double> us;
  const int64_t before_kib = peak_kib();
  for (uint32_t round = 0; round < arguments.rounds; ++round) {
    options.order = {round, dataset.fingerprint(), dataset.samples()};
    options.first_step = prng.below(options.end_step);
    const int64_t begin = clock.monotonic_ns();
    const auto loader = checked(data::Loader::start(dataset, options));
    LOCKSTEP_CHECK(checked(loader->next()) != nullptr, "a batch");
    us.push_back(static_cast<double>(clock.monotonic_ns() - begin) / 1e3);
  }
  std::sort(us.begin(), us.end());
  std::printf(
      "{\"samples\": %lu, \"batch\": %lu, \"median_us\": %.1f, \"least_us\": %.1f, "
      "\"most_us\": %.1f, \"growth_kib\": %ld}\n",
      arguments.samples, arguments.batch, us[us.size() / 2], us.front(), us.back(),
      peak_kib() - before_kib);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Measures the loader; see the top of bench_loader.cc.", "bench_loader");
  app.require_subcommand(1);
  auto* epochs = app.add_subcommand("epochs", "Batches of whole epochs");
  epochs->add_option("--epochs", arguments.epochs);
  auto* cold = app.add_subcommand("cold", "First batches of what is not in memory");
  cold->add_option("--records", arguments.records)->check(CLI::PositiveNumber);
  cold->add_option("--seed", arguments.seed, "of the order");
  for (CLI::App* of_files : {epochs, cold}) {
    of_files->add_option("--data", arguments.data)->required();
    of_files->add_option("--format", arguments.format);
    of_files->add_option("--form", arguments.form, "stored: bytes; floats: transformed")
        ->check(CLI::IsMember({"stored", "floats"}));
    of_files->add_option("--reader", arguments.reader, "data.reader")
        ->check(CLI::IsMember({"auto", "mmap", "pread"}));
    of_files->add_option("--read-ahead-mb", arguments.read_ahead_mb, "data.read_ahead_mb");
    of_files->add_option("--transforms", arguments.transforms);
    of_files->add_option("--targets", arguments.targets, "data.targets");
    of_files->add_option("--threads", arguments.threads, "that decode images");
    of_files->add_option("--tune", arguments.tune, "data.tune, beginning with --threads")
        ->check(CLI::IsMember({"auto", "off"}));
    of_files->add_option("--block", arguments.block, "tokens of a sequence");
    of_files->add_option("--batch", arguments.batch)->check(CLI::PositiveNumber);
  }
  auto* resume = app.add_subcommand("resume", "The first batch in the middle of an epoch");
  resume->add_option("--samples", arguments.samples);
  resume->add_option("--rounds", arguments.rounds);
  resume->add_option("--batch", arguments.batch);
  CLI11_PARSE(app, argc, argv);
  if (epochs->parsed())
    measure_epochs(arguments);
  else if (cold->parsed())
    measure_cold(arguments);
  else
    measure_resume(arguments);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(argc, argv);
}
