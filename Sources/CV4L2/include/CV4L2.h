// V4L2 for Swift: what <linux/videodev2.h> holds that Swift can't import.
//
// Structures, enumerations and plain constants arrive in Swift as they are. This header adds only the rest; it can go when Swift
// imports function-like macros.
#ifndef CV4L2_H
#define CV4L2_H

#include <linux/videodev2.h>

// Request numbers are made by function-like macros (_IOWR), which Swift does not import. The kernel's spelling after the prefix.
static const unsigned long cv4l2_VIDIOC_QUERYCAP = VIDIOC_QUERYCAP;
static const unsigned long cv4l2_VIDIOC_ENUM_FMT = VIDIOC_ENUM_FMT;
static const unsigned long cv4l2_VIDIOC_ENUM_FRAMESIZES = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long cv4l2_VIDIOC_ENUM_FRAMEINTERVALS = VIDIOC_ENUM_FRAMEINTERVALS;
static const unsigned long cv4l2_VIDIOC_G_FMT = VIDIOC_G_FMT;
static const unsigned long cv4l2_VIDIOC_S_FMT = VIDIOC_S_FMT;
static const unsigned long cv4l2_VIDIOC_TRY_FMT = VIDIOC_TRY_FMT;
static const unsigned long cv4l2_VIDIOC_G_PARM = VIDIOC_G_PARM;
static const unsigned long cv4l2_VIDIOC_S_PARM = VIDIOC_S_PARM;
static const unsigned long cv4l2_VIDIOC_QUERY_EXT_CTRL = VIDIOC_QUERY_EXT_CTRL;
static const unsigned long cv4l2_VIDIOC_QUERYMENU = VIDIOC_QUERYMENU;
static const unsigned long cv4l2_VIDIOC_G_EXT_CTRLS = VIDIOC_G_EXT_CTRLS;
static const unsigned long cv4l2_VIDIOC_S_EXT_CTRLS = VIDIOC_S_EXT_CTRLS;
static const unsigned long cv4l2_VIDIOC_TRY_EXT_CTRLS = VIDIOC_TRY_EXT_CTRLS;
static const unsigned long cv4l2_VIDIOC_REQBUFS = VIDIOC_REQBUFS;
static const unsigned long cv4l2_VIDIOC_QUERYBUF = VIDIOC_QUERYBUF;
static const unsigned long cv4l2_VIDIOC_QBUF = VIDIOC_QBUF;
static const unsigned long cv4l2_VIDIOC_DQBUF = VIDIOC_DQBUF;
static const unsigned long cv4l2_VIDIOC_STREAMON = VIDIOC_STREAMON;
static const unsigned long cv4l2_VIDIOC_STREAMOFF = VIDIOC_STREAMOFF;
static const unsigned long cv4l2_VIDIOC_G_PRIORITY = VIDIOC_G_PRIORITY;
static const unsigned long cv4l2_VIDIOC_S_PRIORITY = VIDIOC_S_PRIORITY;
static const unsigned long cv4l2_VIDIOC_G_SELECTION = VIDIOC_G_SELECTION;
static const unsigned long cv4l2_VIDIOC_S_SELECTION = VIDIOC_S_SELECTION;
static const unsigned long cv4l2_VIDIOC_SUBSCRIBE_EVENT = VIDIOC_SUBSCRIBE_EVENT;
static const unsigned long cv4l2_VIDIOC_DQEVENT = VIDIOC_DQEVENT;

// 0x80000000 does not fit the Int32 that Swift makes of the header's plain constants.
static const unsigned int cv4l2_CAP_DEVICE_CAPS = V4L2_CAP_DEVICE_CAPS;
static const unsigned int cv4l2_CTRL_FLAG_NEXT_CTRL = V4L2_CTRL_FLAG_NEXT_CTRL;
static const unsigned int cv4l2_CTRL_FLAG_NEXT_COMPOUND = V4L2_CTRL_FLAG_NEXT_COMPOUND;

// Control ids are sums of macros in parentheses, which Swift does not import either.
static const unsigned int cv4l2_CID_CAMERA_ORIENTATION = V4L2_CID_CAMERA_ORIENTATION;
static const unsigned int cv4l2_CID_MPEG_VIDEO_FORCE_KEY_FRAME = V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME;

// ioctl(2), which is variadic and therefore not imported: 0, or the error number.
//
// The number is returned rather than left in errno so that nothing can run between the call and its reading.
int cv4l2_ioctl(int descriptor, unsigned long request, void *argument);

#endif
