#include "cpage.h"

// #embed is of C23; clang knows it in every C.
#pragma clang diagnostic ignored "-Wc23-extensions"

// clang tells the build of what it embeds, so that a change to the page makes this anew.
static const unsigned char index_html[] = {
#embed "../Gateway/Page/index.html"
};

#define FILE_OF(name, bytes) {name, bytes, sizeof bytes}

static const struct cpage_file files[] = {
    FILE_OF("index.html", index_html),
};

struct cpage_file cpage_file_at(int index) {
    if (index < 0 || (size_t)index >= sizeof files / sizeof *files) return (struct cpage_file){0};
    return files[index];
}
