#ifndef CTOML_H
#define CTOML_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CTOML_JSON = 0,   // the answer is the document as JSON
    CTOML_ERROR = 1,  // the answer is what is wrong with the text, with its line
    CTOML_DIED = 2,   // the parser ended without an answer, or its answer is longer than any text could need
    CTOML_LATE = 3,   // it had no answer in time
};

// Reads TOML 1.0 in a process of its own, and waits for that. Parsers of TOML end a process that gives them certain
// texts: toml++ 3.3 by an assertion (`[.`) and by undefined behaviour (U+FEFE), toml11 3.7 reads behind its buffer. So
// their end is an answer.
//
// A document with more levels of tables and arrays than `levels` is an error. `answer` gets text to be freed, without a NUL, of `bytes` bytes; NULL without an answer. -1: there is no process, no
// pipe or no memory, and errno says why.
int ctoml_read(const char *text, size_t length, int levels, int milliseconds, char **answer, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
