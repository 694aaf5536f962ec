lockstep_fuzz(http_answer SOURCES http_answer_fuzz.cc DEPS lockstep_http)
