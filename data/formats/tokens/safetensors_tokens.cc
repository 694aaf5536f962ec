#include "data/formats/tokens/safetensors_tokens.h"

#include <string>

#include "data/base/file_errors.h"
#include "data/formats/arrays/safetensors_files.h"

namespace lockstep::data {

Result<TokenRange> tokens_in_safetensors(std::span<const uint8_t> file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const safetensors::Header header, safetensors_header(file));
  if (header.tensors.size() != 1)
    return bad("holds " + std::to_string(header.tensors.size()) +
               " tensors; save tokens as the only tensor of a file, or call the tensors images and "
               "labels");
  const safetensors::Entry& tensor = header.tensors.front();
  const std::string name = "(" + tensor.name + ") ";
  if (tensor.shape.size() != 1)
    return bad(name + "has the shape " + safetensors::shape_text(tensor.shape) +
               ", but tokens have one dimension; save it again: a.reshape(-1)");
  const safetensors::Type& type = *tensor.type;
  const bool is_known = (type.kind == 'u' && (type.bytes == 2 || type.bytes == 4)) ||
                        (type.kind == 'i' && (type.bytes == 4 || type.bytes == 8));
  if (!is_known)
    return bad(name + "holds " + type.name +
               ", but tokens are U16, U32, I32 or I64; save it again as uint32");
  return TokenRange{header.data_begin, static_cast<uint64_t>(tensor.shape[0]), type.bytes,
                    type.kind == 'i'};
}

}  // namespace lockstep::data
