// The safetensors files that model.init names, or that a run wrote: one file, a directory with one,
// or several with the index that Hugging Face writes (model.safetensors.index.json: tensor ->
// file).
//
// Lockstep never opens pickles (.pth, .pt, .bin): opening one runs code from the file. The error
// has the line of Python that converts it.
//
// Errors name the file: kNoInput if it is missing; kBadData if it is damaged; kConfig if it is not
// a safetensors file.
//
// Thread-safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/safetensors_header.h"
#include "data/files/mapped_file.h"

namespace lockstep {

enum class WeightSource : uint8_t {
  kInit,  // model.init
  kRun,   // a checkpoint, or the files of lockstep export model
};

// "model.init names PATH, which", or "PATH": a message goes on with "is ..." or "has ...".
std::string subject(WeightSource source, const std::string& path);

struct FileTensor {
  std::string name;
  const safetensors::Type* type = nullptr;
  std::vector<int64_t> shape;
  const uint8_t* data = nullptr;  // in the mapping, not aligned
};

class WeightFiles {
 public:
  // `path` is local. Maps the files.
  static Result<WeightFiles> open(const std::string& path, WeightSource source);

  const std::vector<FileTensor>& tensors() const { return tensors_; }  // by name
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The hash, in hex: for one file, of its content; for several, of the lines of
  // `sha256sum *.safetensors`. kBadData if a file changed since open().
  Result<std::string> sha256() const;

  // kBadData if a file changed since open(). Ask before you trust values that you read.
  Status unchanged() const;

 private:
  explicit WeightFiles(WeightSource source) : source_(source) {}
  Status add(const std::string& path);
  Status add_indexed(const std::string& path);

  WeightSource source_;
  std::map<std::string, data::MappedFile> files_;  // by name
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// The hash of the files of model.init at `path`, without keeping them mapped.
Result<std::string> hash_weight_files(const std::string& path);

// kUsage if the files of model.init are not those that the run began with. Both hashes in hex.
Status check_weights_hash(const std::string& path, const std::string& wanted,
                          const std::string& found);

}  // namespace lockstep
