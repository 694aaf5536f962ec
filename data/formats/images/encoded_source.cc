#include "data/formats/images/encoded_source.h"

#include <utility>

namespace lockstep::data {

Result<EncodedSource> inflated(EncodedSource source, const std::string& cache_dir) {
  for (EncodedSource& mask : source.masks) {
    LOCKSTEP_ASSIGN_OR_RETURN(mask, inflated(std::move(mask), cache_dir));
  }
  if (!source.inflate) return source;
  LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource plain, source.inflate(cache_dir));
  plain.variant = std::move(source.variant);
  plain.fields = std::move(source.fields);
  plain.masks = std::move(source.masks);
  plain.joins_by_stem = source.joins_by_stem;
  return plain;
}

}  // namespace lockstep::data
