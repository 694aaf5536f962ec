// Reads the file of an exported program (model.name: exported), which torch.export.save() wrote.
// The reader assumes that every byte is hostile.
//
// PyTorch does not verify the checksums of the archive. Lockstep does, of everything that it reads.
// It never opens a pickle.
//
// Thread-safety: free functions.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

// The whole program: its weights stay in the file, mapped, for as long as a tensor or a pointer of
// row_major_floats() lives. Every message is a sentence that names the file and what to do.
//  kNoInput  there is no file
//  kBadData  the file is damaged
//  kConfig   the file is whole, but Lockstep cannot train it: the message names the operator, the
//            parameter or the line of Python
Result<std::shared_ptr<const Program>> read_program(const std::string& path);

// The same of a file in memory, which `owner` keeps. Messages go on after the file's name.
Result<Program> parse_program(std::span<const uint8_t> file, std::shared_ptr<const void> owner);

// The JSON of an archive.
struct ProgramTexts {
  std::string_view program;    // models/NAME.json
  std::string_view weights;    // data/weights/NAME_weights_config.json
  std::string_view constants;  // data/constants/NAME_constants_config.json
};

// The same of the archive's parts. `read_file` gives the content of one of its other files, which
// `owner` keeps.
Result<Program> parse_program(
    const ProgramTexts& texts,
    const std::function<Result<std::span<const uint8_t>>(const std::string& name)>& read_file,
    std::shared_ptr<const void> owner);

// kConfig unless batches of `samples` fit the program; `what` says whose they are: "a slot of
// train.global_batch 64 and train.slots 8".
Status check_batch_size(const Program& program, const std::string& path, uint64_t samples,
                        const std::string& what);

}  // namespace lockstep::exported
