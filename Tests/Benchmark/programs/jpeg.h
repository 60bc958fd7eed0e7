/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that compresses each of its pictures, as a virtual camera has to: what it leaves of the processor's caches is what whoever
 * sends the picture finds. */
#ifndef BENCHMARK_JPEG_H
#define BENCHMARK_JPEG_H

#include "device.h"
#include <turbojpeg.h>

/* The picture as the compressor wants it. */
struct jpeg {
    tjhandle compressor;
    unsigned char *planes;
    int width, height, subsampling;
};

enum { QUALITY = 85 };

static size_t compress_picture(const struct device *device, unsigned char *slot) {
    const struct jpeg *jpeg = device->maker;
    unsigned long bytes = device->slot_bytes;
    if (tjCompressFromYUV(
            jpeg->compressor, jpeg->planes, jpeg->width, 1, jpeg->height, jpeg->subsampling, &slot, &bytes, QUALITY,
            TJFLAG_NOREALLOC) != 0) {
        fputs("tjCompressFromYUV failed\n", stderr);
        exit(1);
    }
    return bytes;
}

/* Has a device compress its picture anew for each frame, where that is a JPEG. */
static inline void compress_each(struct device *device) {
    struct jpeg *jpeg = calloc(1, sizeof *jpeg);
    tjhandle decompressor = tjInitDecompress();
    int colours;
    if (!jpeg || !decompressor || !(jpeg->compressor = tjInitCompress())) fail("libturbojpeg");
    if (tjDecompressHeader3(
            decompressor, device->picture, device->bytes, &jpeg->width, &jpeg->height, &jpeg->subsampling, &colours) == 0) {
        jpeg->planes = malloc(tjBufSizeYUV2(jpeg->width, 1, jpeg->height, jpeg->subsampling));
        if (!jpeg->planes) fail("malloc");
        if (tjDecompressToYUV2(
                decompressor, device->picture, device->bytes, jpeg->planes, jpeg->width, 1, jpeg->height, 0) == 0) {
            device->maker = jpeg;
            device->make = compress_picture;
            device->slot_bytes = tjBufSize(jpeg->width, jpeg->height, jpeg->subsampling);
        }
    }
    tjDestroy(decompressor);
}

#endif
