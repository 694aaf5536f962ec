lockstep_fuzz(safetensors SOURCES safetensors_fuzz.cc DEPS lockstep_checkpoint)
lockstep_fuzz(manifest SOURCES manifest_fuzz.cc DEPS lockstep_checkpoint)
