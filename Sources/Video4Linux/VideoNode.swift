import CV4L2
import Glibc

/// An open video node.
///
/// The kernel allows requests of several threads at once, and so does this class. It is closed when the last reference
/// is gone.
public final class VideoNode: V4L2Device, Sendable {
    public let path: String
    public let descriptor: CInt

    /// Opens the node for reading and writing, without blocking and not for children (`open`).
    public init(path: String) throws(V4L2Error) {
        var descriptor: CInt
        var number: CInt = 0
        repeat {
            descriptor = Glibc.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            number = descriptor < 0 ? errno : 0
        } while number == EINTR
        guard descriptor >= 0 else { throw V4L2Error(errno: number, operation: "open", device: path) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { Glibc.close(descriptor) }

    public func perform(_ request: V4L2Request, _ argument: UnsafeMutableRawPointer) -> Int32 {
        while true {
            let number = cv4l2_ioctl(descriptor, request.code, argument)
            if number != EINTR { return number }
        }
    }

    public func map(length: Int, offset: Int) throws(V4L2Error) -> UnsafeMutableRawBufferPointer {
        let start = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset)
        let number = errno
        guard let start, start != MAP_FAILED else { throw V4L2Error(errno: number, operation: "mmap", device: path) }
        return UnsafeMutableRawBufferPointer(start: start, count: length)
    }

    public func unmap(_ memory: UnsafeMutableRawBufferPointer) {
        guard let start = memory.baseAddress else { return }
        munmap(start, memory.count)
    }
}
