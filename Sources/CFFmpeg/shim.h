#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <libavutil/pixfmt.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

// Macros that Swift can't read.
static inline int cffmpeg_again(void) { return AVERROR(EAGAIN); }
static inline int cffmpeg_no_memory(void) { return AVERROR(ENOMEM); }
static inline int cffmpeg_external(void) { return AVERROR_EXTERNAL; }
static inline int cffmpeg_invalid_data(void) { return AVERROR_INVALIDDATA; }
static inline int cffmpeg_end_of_file(void) { return AVERROR_EOF; }
static inline int64_t cffmpeg_no_time(void) { return AV_NOPTS_VALUE; }
static inline int cffmpeg_error(int number) { return AVERROR(number); }
