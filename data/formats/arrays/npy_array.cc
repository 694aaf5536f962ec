#include "data/formats/arrays/npy_array.h"

#include <utility>

#include "data/base/file_errors.h"

namespace lockstep::data {

Result<NpyArray> open_npy_array(NpyArray where, uint64_t bytes) {
  auto header = parse_npy_header(where.file.bytes().subspan(where.offset, bytes));
  if (!header.is_ok()) return about(where.name, header.status());
  if (const Status status = check_npy_size(*header, bytes); !status.is_ok())
    return about(where.name, status);
  where.header = std::move(header).value();
  return where;
}

Result<NpyArray> open_npy_file(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  const uint64_t bytes = file.bytes().size();
  return open_npy_array({path, path, std::move(file), {}, 0, false}, bytes);
}

}  // namespace lockstep::data
