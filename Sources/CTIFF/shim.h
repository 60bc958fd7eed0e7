#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <tiffio.h>

// What stands behind a tag is passed in a way of its own for each kind of field; Swift calls no function of open arguments.
static inline int ctiff_set_integer(TIFF *tiff, uint32_t tag, uint32_t value) { return TIFFSetField(tiff, tag, value); }
static inline int ctiff_set_long(TIFF *tiff, uint32_t tag, uint64_t value) { return TIFFSetField(tiff, tag, value); }
static inline int ctiff_set_number(TIFF *tiff, uint32_t tag, double value) { return TIFFSetField(tiff, tag, value); }
static inline int ctiff_set_array(TIFF *tiff, uint32_t tag, const void *values) {
    return TIFFSetField(tiff, tag, values);
}
static inline int ctiff_set_counted(TIFF *tiff, uint32_t tag, uint32_t count, const void *values) {
    return TIFFSetField(tiff, tag, count, values);
}

// What the library said last. Without a handler of our own it writes to standard error.
struct ctiff_words {
    char text[256];
};

static int ctiff_keep(TIFF *tiff, void *words, const char *function, const char *format, va_list arguments) {
    (void)tiff, (void)function;
    vsnprintf(((struct ctiff_words *)words)->text, sizeof(struct ctiff_words), format, arguments);
    return 1;
}

static int ctiff_ignore(TIFF *tiff, void *words, const char *function, const char *format, va_list arguments) {
    (void)tiff, (void)words, (void)function, (void)format, (void)arguments;
    return 1;
}

// For writing, least byte first.
static inline TIFF *ctiff_create(
    void *client, TIFFReadWriteProc read, TIFFReadWriteProc write, TIFFSeekProc seek, TIFFCloseProc close,
    TIFFSizeProc size, struct ctiff_words *words) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, ctiff_keep, words);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ctiff_ignore, NULL);
    TIFF *tiff = TIFFClientOpenExt("memory", "wl", client, read, write, seek, close, size, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}
