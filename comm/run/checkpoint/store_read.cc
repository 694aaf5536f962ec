// Reads the state out of a checkpoint, front to back, by the headers of its own files. Reads and
// hashes each byte once: the hash of a file covers its header and its tensors, so the weights' own
// hash would find nothing more.
#include "comm/run/checkpoint/store.h"
#include "comm/run/checkpoint/store_file.h"

namespace lockstep {
namespace {

// A header's tensors cover the file exactly (S1), and the file is there with the manifest's size:
// no header can ask for more memory than that.
Status read_tensors(const std::string& path, const ManifestFile& listed, StateSection section,
                    HeldState* state) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, CheckpointFile::open(path, listed));
  for (const SafetensorsEntry& entry : file->header().tensors) {
    auto room = state->add(section, entry.name, entry.dtype, entry.shape);
    if (!room.is_ok()) return room.status().with_context(path);
    LOCKSTEP_RETURN_IF_ERROR(file->read(*room));
  }
  return file->check_hash();
}

}  // namespace

Result<LoadedState> read_checkpoint(const std::string& path) {
  LoadedState loaded;
  LOCKSTEP_ASSIGN_OR_RETURN(loaded.info, read_checkpoint_info(path));
  LOCKSTEP_RETURN_IF_ERROR(check_file_names(loaded.info.path, loaded.info.manifest));
  for (const ManifestFile& file : loaded.info.manifest.files) {
    const StateSection section =
        file.name == kOptimizerFile ? StateSection::kOptimizer : StateSection::kParameter;
    LOCKSTEP_RETURN_IF_ERROR(read_tensors(path + "/" + file.name, file, section, &loaded.state));
  }
  return loaded;
}

}  // namespace lockstep
