// The files of the web page, which are in the program itself: nothing is looked for on a disk when somebody asks for one.
#pragma once
#include <stddef.h>

struct cpage_file {
    const char *name;
    const unsigned char *bytes;
    size_t count;
};

// The file at that place of the list; its name is NULL behind the last.
struct cpage_file cpage_file_at(int index);
