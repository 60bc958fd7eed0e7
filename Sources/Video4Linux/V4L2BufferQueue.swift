import CV4L2
import Glibc

/// Whose memory the buffers of a queue are (`enum v4l2_memory`).
public enum V4L2Memory: Hashable, Sendable {
    /// The driver's, mapped (`V4L2_MEMORY_MMAP`).
    case mmap
    /// The program's, which the driver writes into (`V4L2_MEMORY_USERPTR`).
    case userptr

    var code: UInt32 {
        switch self {
        case .mmap: V4L2_MEMORY_MMAP.rawValue
        case .userptr: V4L2_MEMORY_USERPTR.rawValue
        }
    }
}

/// The buffers of a streaming queue: the driver's, mapped into memory, or the program's.
///
/// What is mapped stays so as long as this object lives, so that nobody who holds it can read what is gone; the
/// kernel's side of the buffers goes with ``V4L2Device/freeBuffers(_:_:)`` or the node. Memory of the program's must
/// stay where it is until then. Used by one thread at a time.
public final class V4L2BufferQueue {
    /// The memory of each plane of each buffer, by the buffer's index.
    public let buffers: [[UnsafeMutableRawBufferPointer]]
    /// `V4L2_BUF_FLAG_*` of the buffers before the first frame: most drivers tell the kind of their timestamps already
    /// here.
    public let initialFlags: UInt32
    public let memory: V4L2Memory

    private let device: any V4L2Device
    private let type: V4L2BufferType
    // Filled by the kernel at each dequeuing, and kept so that none is allocated for a frame.
    private let planes: UnsafeMutablePointer<v4l2_plane>

    /// Asks for buffers and maps what the driver gives, which may be more or fewer (`VIDIOC_REQBUFS`,
    /// `VIDIOC_QUERYBUF`, `mmap`).
    ///
    /// `ENOMEM` if it gives fewer than two, since a queue with less never has one to fill while one is read.
    public init(_ device: any V4L2Device, _ type: V4L2BufferType, count: Int) throws(V4L2Error) {
        let given = try device.requestBuffers(type, .mmap, count: UInt32(clamping: count))
        let planes = UnsafeMutablePointer<v4l2_plane>.allocate(capacity: Int(VIDEO_MAX_PLANES))
        planes.initialize(repeating: v4l2_plane(), count: Int(VIDEO_MAX_PLANES))
        var buffers: [[UnsafeMutableRawBufferPointer]] = []
        var flags: UInt32 = 0
        do throws(V4L2Error) {
            guard given >= 2 else { throw device.error(ENOMEM, .requestBuffers) }
            for index in 0..<min(given, UInt32(VIDEO_MAX_FRAME)) {
                buffers.append([])
                try device.mapBuffer(index, type, planes, flags: &flags, into: &buffers[buffers.count - 1])
            }
        } catch {
            for plane in buffers.joined() { device.unmap(plane) }
            planes.deallocate()
            _ = try? device.requestBuffers(type, .mmap, count: 0)
            throw error
        }
        self.device = device
        self.type = type
        self.planes = planes
        memory = .mmap
        self.buffers = buffers
        initialFlags = flags
    }

    /// Buffers in memory of the program's, one plane each, for which the driver has been asked already
    /// (``V4L2Device/requestUserBuffers(_:count:)``).
    ///
    /// - Parameter userMemory: on pages of its own, and each as large as the format's `sizeimage` at least.
    public init(_ device: any V4L2Device, userMemory: [UnsafeMutableRawBufferPointer]) {
        self.device = device
        type = .capture
        memory = .userptr
        planes = .allocate(capacity: Int(VIDEO_MAX_PLANES))
        planes.initialize(repeating: v4l2_plane(), count: Int(VIDEO_MAX_PLANES))
        buffers = userMemory.map { [$0] }
        var answer = v4l2_buffer(0, type, memory, planes)
        initialFlags = device.attempt(.queryBuffer, &answer) == 0 ? answer.flags : 0
    }

    deinit {
        if memory == .mmap { for plane in buffers.joined() { device.unmap(plane) } }
        planes.deallocate()
    }

    /// What the driver says of a filled buffer. The sizes of its planes are asked for with
    /// ``V4L2BufferQueue/filled(plane:)``.
    public struct Filled: Hashable, Sendable {
        public var index: Int
        /// `V4L2_BUF_FLAG_*`.
        public var flags: UInt32
        /// The driver's count of frames, which wraps.
        public var sequence: UInt32
        /// Nanoseconds, of the clock that the flags name.
        public var timestamp: Int64

        /// The picture may be damaged (`V4L2_BUF_FLAG_ERROR`).
        public var isDamaged: Bool { flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0 }
        /// The time is `CLOCK_MONOTONIC`'s (`V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC`).
        public var isMonotonic: Bool { V4L2BufferQueue.isMonotonic(flags: flags) }
        /// The time is that of the first exposed row, not of the last read one (`V4L2_BUF_FLAG_TSTAMP_SRC_SOE`).
        public var isStartOfExposure: Bool { V4L2BufferQueue.isStartOfExposure(flags: flags) }
    }

    /// `V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC`.
    public static func isMonotonic(flags: UInt32) -> Bool {
        flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) == UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
    }

    /// `V4L2_BUF_FLAG_TSTAMP_SRC_SOE`.
    public static func isStartOfExposure(flags: UInt32) -> Bool {
        flags & UInt32(V4L2_BUF_FLAG_TSTAMP_SRC_MASK) == UInt32(V4L2_BUF_FLAG_TSTAMP_SRC_SOE)
    }

    /// Gives a buffer to the driver to fill (`VIDIOC_QBUF`).
    public func enqueue(_ index: Int) throws(V4L2Error) {
        var argument = buffer(UInt32(clamping: index))
        if memory == .userptr {
            guard buffers.indices.contains(index) else { throw device.error(EINVAL, .queueBuffer) }
            argument.m.userptr = UInt(bitPattern: buffers[index][0].baseAddress)
            argument.length = UInt32(clamping: buffers[index][0].count)
        }
        planes.update(repeating: v4l2_plane(), count: Int(VIDEO_MAX_PLANES))
        try device.call(.queueBuffer, &argument)
    }

    /// The next filled buffer, or nil if there is none yet (`VIDIOC_DQBUF`). Doesn't block.
    ///
    /// `EIO`, `EINVAL`, `ENODEV`: the queue is over. `EPROTO`: the driver names a buffer that it can't have.
    public func dequeue() throws(V4L2Error) -> Filled? {
        var answer = buffer(0)
        planes.update(repeating: v4l2_plane(), count: Int(VIDEO_MAX_PLANES))
        switch device.attempt(.dequeueBuffer, &answer) {
        case 0: break
        case EAGAIN: return nil
        case let number: throw device.error(number, .dequeueBuffer)
        }
        guard Int(answer.index) < buffers.count else { throw device.error(EPROTO, .dequeueBuffer) }
        if type == .capture { planes[0].bytesused = answer.bytesused }
        return Filled(
            index: Int(answer.index), flags: answer.flags, sequence: answer.sequence,
            timestamp: Int64(answer.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(answer.timestamp.tv_usec) &* 1000)
    }

    /// Where in its plane the picture of the buffer last dequeued lies: bytes from the plane's start, never beyond its
    /// end.
    ///
    /// It starts behind a header of the device's, where there is one (`v4l2_plane.data_offset`, which `bytesused`
    /// counts in).
    public func filled(plane: Int, of index: Int) -> Range<Int> {
        let end = min(Int(planes[plane].bytesused), buffers[index][plane].count)
        return min(Int(planes[plane].data_offset), end)..<end
    }

    private func buffer(_ index: UInt32) -> v4l2_buffer { v4l2_buffer(index, type, memory, planes) }
}

extension V4L2Device {
    /// Lets the driver fill the queued buffers (`VIDIOC_STREAMON`).
    public func startStreaming(_ type: V4L2BufferType) throws(V4L2Error) {
        var code = CInt(bitPattern: type.code)
        try call(.streamOn, &code)
    }

    /// Takes all buffers back from the driver, filled or not (`VIDIOC_STREAMOFF`). Harmless when stopped.
    public func stopStreaming(_ type: V4L2BufferType) throws(V4L2Error) {
        var code = CInt(bitPattern: type.code)
        try call(.streamOff, &code)
    }

    /// Gives the kernel's side of all buffers of a queue back (`VIDIOC_REQBUFS` for none). Streaming ends with it.
    ///
    /// `EBUSY` if a ``V4L2BufferQueue`` still lives and the kernel is older than 4.20, which can't leave mapped buffers
    /// to their holders.
    public func freeBuffers(_ type: V4L2BufferType, _ memory: V4L2Memory) throws(V4L2Error) {
        _ = try requestBuffers(type, memory, count: 0)
    }

    /// Asks for buffers in the program's memory, and answers how many there are then (`VIDIOC_REQBUFS`).
    ///
    /// `EINVAL` from a driver that writes into its own memory only.
    public func requestUserBuffers(_ type: V4L2BufferType, count: Int) throws(V4L2Error) -> Int {
        Int(try requestBuffers(type, .userptr, count: UInt32(clamping: count)))
    }

    fileprivate func requestBuffers(
        _ type: V4L2BufferType, _ memory: V4L2Memory, count: UInt32
    ) throws(V4L2Error) -> UInt32 {
        var argument = v4l2_requestbuffers()
        argument.count = count
        argument.type = type.code
        argument.memory = memory.code
        try call(.requestBuffers, &argument)
        return argument.count
    }

    fileprivate func mapBuffer(
        _ index: UInt32, _ type: V4L2BufferType, _ planes: UnsafeMutablePointer<v4l2_plane>, flags: inout UInt32,
        into regions: inout [UnsafeMutableRawBufferPointer]
    ) throws(V4L2Error) {
        planes.update(repeating: v4l2_plane(), count: Int(VIDEO_MAX_PLANES))
        var answer = v4l2_buffer(index, type, .mmap, planes)
        try call(.queryBuffer, &answer)
        flags = answer.flags
        switch type {
        case .capture: regions.append(try map(length: Int(answer.length), offset: Int(answer.m.offset)))
        case .captureMultiplanar:
            guard answer.length > 0 else { throw error(EPROTO, .queryBuffer) }
            for plane in 0..<min(Int(answer.length), Int(VIDEO_MAX_PLANES)) {
                regions.append(try map(length: Int(planes[plane].length), offset: Int(planes[plane].m.mem_offset)))
            }
        }
    }
}

extension v4l2_buffer {
    fileprivate init(
        _ index: UInt32, _ type: V4L2BufferType, _ memory: V4L2Memory, _ planes: UnsafeMutablePointer<v4l2_plane>
    ) {
        self.init()
        self.index = index
        self.type = type.code
        self.memory = memory.code
        guard type == .captureMultiplanar else { return }
        m.planes = planes
        length = UInt32(VIDEO_MAX_PLANES)
    }
}
