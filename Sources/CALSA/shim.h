#include <alsa/asoundlib.h>

// Takes no notice of what the library would print; its functions' results say what went wrong. Variadic, and therefore not for Swift.
static void calsa_ignore(const char *file, int line, const char *function, int error, const char *format, ...) {
    (void)file, (void)line, (void)function, (void)error, (void)format;
}

// Keeps the library from writing to standard error, from now on and for the whole process.
static inline void calsa_silence(void) { snd_lib_error_set_handler(calsa_ignore); }
