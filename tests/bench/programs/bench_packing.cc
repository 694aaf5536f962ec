// Packs lengths by best fit, as data.documents: pack does, and says how long that took:
//
//     bench_packing FILE ROOM ROUNDS OUT
//
// FILE: lengths, uint32. OUT, uint32: the number of packs, where each begins among the pieces and
// where the last ends, and the pieces. Prints the least processor time of the rounds, in seconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include "data/files/mapped_file.h"
#include "data/formats/tokens/best_fit.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_packing FILE ROOM ROUNDS OUT\n");
    return 64;
  }
  const auto file = data::MappedFile::open(argv[1]);
  if (!file.is_ok()) {
    std::fprintf(stderr, "bench_packing: %s\n", file.status().message().c_str());
    return 66;
  }
  std::vector<uint32_t> lengths(file->bytes().size() / sizeof(uint32_t));
  std::memcpy(lengths.data(), file->bytes().data(), lengths.size() * sizeof(uint32_t));
  const auto room = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const bool fits = std::all_of(lengths.begin(), lengths.end(),
                                [room](uint32_t length) { return length > 0 && length <= room; });
  if (!fits) {
    std::fprintf(stderr, "bench_packing: a length is 0 or more than the room\n");
    return 65;
  }
  data::Packs packs;
  double least = 0;
  for (long round = std::max(1L, std::strtol(argv[3], nullptr, 10)); round > 0; --round) {
    const std::clock_t begin = std::clock();
    packs = data::best_fit(lengths, room);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    least = least == 0 ? seconds : std::min(least, seconds);
  }
  std::ofstream out(argv[4], std::ios::binary);
  const auto write = [&out](const uint32_t* values, size_t count) {
    out.write(reinterpret_cast<const char*>(values),
              static_cast<std::streamsize>(count * sizeof *values));
  };
  const auto count = static_cast<uint32_t>(packs.size());
  write(&count, 1);
  write(packs.begins.data(), packs.begins.size());
  write(packs.pieces.data(), packs.pieces.size());
  std::printf("%.6f\n", least);
  return out.good() ? 0 : 70;
}
