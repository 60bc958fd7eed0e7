/// Something that answers V4L2's requests: a node of the kernel (``VideoNode``), or a script in a test.
///
/// Everything that this module knows of V4L2 is written against this.
public protocol V4L2Device: AnyObject {
    /// What errors call it: `/dev/video0`.
    var path: String { get }

    /// To be polled, for frames and for events; open as long as the device lives.
    var descriptor: CInt { get }

    /// Carries out one request. Answers 0, or the error number; never `EINTR`.
    func perform(_ request: V4L2Request, _ argument: UnsafeMutableRawPointer) -> Int32

    /// Maps a plane of a buffer into memory (`mmap`), for reading and writing.
    func map(length: Int, offset: Int) throws(V4L2Error) -> UnsafeMutableRawBufferPointer

    /// Takes the mapping back (`munmap`).
    func unmap(_ memory: UnsafeMutableRawBufferPointer)
}

extension V4L2Device {
    /// Carries out a request whose refusals mean something to the caller: 0, or the error number.
    func attempt<Argument>(_ request: V4L2Request, _ argument: inout Argument) -> Int32 {
        withUnsafeMutablePointer(to: &argument) { perform(request, UnsafeMutableRawPointer($0)) }
    }

    /// Carries out a request; every refusal is an error.
    func call<Argument>(_ request: V4L2Request, _ argument: inout Argument) throws(V4L2Error) {
        let number = attempt(request, &argument)
        if number != 0 { throw error(number, request) }
    }

    func error(_ number: Int32, _ request: V4L2Request) -> V4L2Error {
        V4L2Error(errno: number, operation: request.name, device: path)
    }
}

/// The text of one of the kernel's fixed arrays of bytes, up to its zero. Bytes that are no UTF-8 are replaced.
func text<Bytes>(_ bytes: Bytes) -> String {
    withUnsafeBytes(of: bytes) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}
