import CLinux
import Glibc

/// A child process whose standard output is read in a poll loop.
public final class ProcessOutput {
    private let child: ChildProcess
    private let pipe: FileDescriptor
    /// What came so far, and was not forgotten.
    public private(set) var bytes: [UInt8] = []
    /// The output has ended, and was not longer than the limit.
    public private(set) var isComplete = false
    private let limit: Int

    /// Readable when there is output or it has ended.
    public var rawValue: Int32 { pipe.rawValue }

    /// - Parameters:
    ///   - privateArguments: as of ``ChildProcess``.
    ///   - standardInput: a descriptor that becomes its standard input; nil: /dev/null.
    ///   - limit: bytes of its output.
    public init(
        program: String, arguments: [String], privateArguments: [String] = [], standardInput: Int32? = nil,
        limit: Int = 1 << 20
    ) throws(SystemError) {
        self.limit = limit
        var ends: [Int32] = [-1, -1]
        try check("pipe2") { clinux_pipe(&ends) }
        let writing = FileDescriptor(owning: ends[1])
        pipe = FileDescriptor(owning: ends[0])
        child = try ChildProcess(
            program: program, arguments: arguments, privateArguments: privateArguments, standardInput: standardInput,
            standardOutput: writing.rawValue, keepsDescriptors: false)
    }

    deinit {
        child.process.send(SIGKILL)
        _ = child.reap()
    }

    /// The process, readable when it has ended; then ``reap()`` is due.
    public var process: ProcessDescriptor { child.process }

    /// Lets the kernel forget the process, if it has ended.
    public func reap() { _ = child.reap() }

    /// Takes what there is, without waiting.
    ///
    /// - Returns: true when the output has ended.
    public func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16384)
        while true {
            let count = Glibc.read(pipe.rawValue, &buffer, buffer.count)
            if count > 0 {
                bytes.append(contentsOf: buffer[..<count])
                if bytes.count > limit { return true }
            } else if count == 0 {
                isComplete = true
                return true
            } else if errno == EAGAIN {
                return false
            } else if errno != EINTR {
                return true
            }
        }
    }

    /// Forgets the first of the bytes that came, which were looked at: they don't count for the limit any more.
    public func forget(_ count: Int) { bytes.removeFirst(min(count, bytes.count)) }

    public func kill() { child.process.send(SIGKILL) }
}
