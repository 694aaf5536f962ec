lockstep_fuzz(frames SOURCES frame_fuzz.cc DEPS lockstep_wire)
