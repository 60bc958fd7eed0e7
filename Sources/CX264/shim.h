#include <stdint.h>
#include <x264.h>

// x264_encoder_open, which is a macro that carries the library's version.
static inline x264_t *cx264_encoder_open(x264_param_t *parameters) { return x264_encoder_open(parameters); }
