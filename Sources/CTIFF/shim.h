#include <stdint.h>
#include <tiffio.h>
