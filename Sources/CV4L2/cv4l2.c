#include "CV4L2.h"

#include <errno.h>
#include <sys/ioctl.h>

int cv4l2_ioctl(int descriptor, unsigned long request, void *argument)
{
    return ioctl(descriptor, request, argument) == -1 ? errno : 0;
}
