#include "data/formats/tables/parquet_files.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "comm/base/text/lower_case.h"
#include "comm/base/text/shell_word.h"
#include "data/dataset/weigh_files.h"
#include "data/formats/format_rows.h"

namespace lockstep::data {

namespace fs = std::filesystem;

bool is_parquet_name(const std::string& path) {
  return ends_like(path, ".parquet");
}

bool is_parquet_file(const std::string& path) {
  if (is_parquet_name(path)) return true;
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), 4) == "PAR1";
}

Result<Shards> find_parquet_shards(const std::string& path, Split split) {
  return find_shards(path, split, "Parquet files (*.parquet)", is_parquet_name);
}

bool is_parquet(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return is_parquet_file(path);
  for (const Split split : {Split::kTrain, Split::kEval})
    if (find_parquet_shards(path, split).is_ok()) return true;
  return false;
}

Status pack_it_first(const std::string& path) {
  return {Code::kUsage,
          path +
              " holds Parquet, from which Lockstep cannot read single samples; convert it with "
              "lockstep data pack " +
              shell_word(path) +
              " DIRECTORY (download it first if it is at a URL), and name that directory"};
}

namespace {

Result<std::string> parquet_in(const Listing& directory) {
  return named_if(is_parquet(directory.path), "parquet");
}
Result<std::string> parquet_at(const FileLook& file) {
  if (is_parquet_file(file.path)) return pack_it_first(file.path);
  return std::string();
}

}  // namespace

// Without a name, since nothing reads Parquet in place: detect_format() says what to do.
constinit const DataFormat kParquetFormat{
    .name = "",
    .in_directory = {{{DirectoryStep::kLast, parquet_in, weight_of<is_parquet_name>,
                       /*has_tables_beside=*/true}}},
    .of_file = {{{FileStep::kMixed, parquet_at}}}};

}  // namespace lockstep::data
