#include "data/formats/arrays/cifar_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "data/files/list_files.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr CifarFormat kCifar10{"cifar10", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", 1, 0,
                               10};
constexpr CifarFormat kCifar100{"cifar100", "cifar-100-binary", "cifar-100-binary.tar.gz", 2, 1,
                                100,        "fine_label"};

// Lies beside the files of CIFAR-100 only.
constexpr char kFineNames[] = "fine_label_names.txt";

std::vector<std::string> names_of(const CifarFormat& format, Split split) {
  if (std::string_view(format.name) == kCifar100.name)
    return {split == Split::kTrain ? "train.bin" : "test.bin"};
  if (split == Split::kEval) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int batch = 1; batch <= 5; ++batch)
    names.push_back("data_batch_" + std::to_string(batch) + ".bin");
  return names;
}

bool has_any(const std::string& directory, const CifarFormat& format) {
  const auto is_there = [&](const std::string& name) {
    std::error_code error;
    return fs::is_regular_file(fs::path(directory) / name, error);
  };
  for (const Split split : {Split::kTrain, Split::kEval}) {
    const auto names = names_of(format, split);
    if (std::any_of(names.begin(), names.end(), is_there)) return true;
  }
  return false;
}

bool has_whole_records(const fs::path& file, const CifarFormat& format) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  return !error && bytes > 0 && bytes % format.record_bytes() == 0;
}

bool is_cifar100(const std::string& directory) {
  std::error_code error;
  const fs::path path(directory);
  if (fs::exists(path / kFineNames, error)) return has_any(directory, kCifar100);
  return has_whole_records(path / "train.bin", kCifar100) &&
         has_whole_records(path / "test.bin", kCifar100);
}

Result<const CifarFormat*> one_of(const std::string& directory, bool is_10, bool is_100) {
  if (is_10 && is_100)
    return Status(Code::kUsage, "data directory " + directory +
                                    " holds both CIFAR-10 and CIFAR-100; set data.train.format to "
                                    "cifar10 or cifar100");
  if (is_10) return &kCifar10;
  return is_100 ? &kCifar100 : nullptr;
}

}  // namespace

const CifarFormat* cifar_format(const std::string& name) {
  if (name == kCifar10.name) return &kCifar10;
  return name == kCifar100.name ? &kCifar100 : nullptr;
}

Result<CifarFormat> with_label(const CifarFormat& format, const ColumnNames& columns,
                               const std::string& path) {
  constexpr uint32_t kCoarseClasses = 20;
  const std::string& name = columns.label;
  if (name.empty() || name == "fine_label" || name == "fine_labels") return format;
  if (name != "coarse_label" && name != "coarse_labels")
    return Status(Code::kUsage, "data.label is " + name + ", but " + path + " is of format " +
                                    format.name +
                                    ", which has fine_label and coarse_label; take one of these");
  CifarFormat coarse = format;
  coarse.label_at = 0;
  coarse.classes = kCoarseClasses;
  coarse.label = "coarse_label";
  return coarse;
}

Result<const CifarFormat*> cifar_in(const std::string& directory) {
  return one_of(directory, has_any(directory, kCifar10), is_cifar100(directory));
}

Result<const CifarFormat*> cifar_below(const std::string& directory) {
  const auto is_below = [&](const CifarFormat& format) {
    return has_any((fs::path(directory) / format.directory).string(), format);
  };
  return one_of(directory, is_below(kCifar10), is_below(kCifar100));
}

Result<std::vector<std::string>> find_cifar_files(const std::string& directory,
                                                  const CifarFormat& format, Split split) {
  LOCKSTEP_RETURN_IF_ERROR(list_data_files(directory).status());  // fails without a directory
  fs::path place(directory);
  const std::string below = (place / format.directory).string();
  if (!has_any(directory, format) && has_any(below, format)) place = below;
  std::vector<std::string> paths;
  for (const std::string& name : names_of(format, split)) {
    std::error_code error;
    if (!fs::is_regular_file(place / name, error))
      return Status(Code::kNoInput, "data directory " + place.string() + " lacks " + name +
                                        "; unpack " + format.archive + " there again");
    paths.push_back((place / name).string());
  }
  return paths;
}

}  // namespace lockstep::data
