#include "metrics/probes/member_probe.h"

#include <prometheus/gauge.h>

#include <string>

namespace lockstep {

MemberProbe::MemberProbe(Families& families)
    : info_(families, "lockstep_member_info", "Member and rank of this worker in its generation."),
      generation_(
          families.gauge("lockstep_generation", "Number of the generation that the worker is in.")),
      world_size_(families.gauge("lockstep_world_size", "Ranks in the generation.")) {}

void MemberProbe::started(Generation generation, MemberId member, uint32_t rank,
                          uint32_t world_size) {
  info_.set({{"member", std::to_string(member)}, {"rank", std::to_string(rank)}});
  generation_.Set(static_cast<double>(generation));
  world_size_.Set(world_size);
}

}  // namespace lockstep
