import CaptureCore
import Glibc
import LinuxIO
package import Video4Linux

extension SourceError {
    /// What the caller was about when V4L2 refused: the same error number means different things there.
    package enum V4L2Context: Hashable, Sendable {
        case opening, configuring, streaming
        /// Setting or reading the control of that name.
        case control(String)
        /// Taking a frame from a running queue.
        case dequeuing
    }

    /// V4L2's error number in this project's words.
    package init(_ error: V4L2Error, _ context: V4L2Context) {
        let kind: Kind =
            switch (error.errno, context) {
            case (ENODEV, _), (ENXIO, _): .disconnected
            // The node went away between the look at the directory and now.
            case (ENOENT, .opening): .disconnected
            // A driver that loses its device mid-stream wakes the reader with one of these, and says ENODEV only
            // afterwards.
            case (EINVAL, .dequeuing), (EIO, .dequeuing): .disconnected
            case (EBUSY, .control), (EACCES, .control), (EPERM, .control): .controlBusy
            case (EBUSY, _): .inUse
            case (EACCES, _), (EPERM, _): .notPermitted
            case (ENOSPC, _), (ENOMEM, _): .noResources
            case (EINVAL, _), (ERANGE, _), (EDOM, _): .refused
            default: .failed
            }
        var control: String?
        if case .control(let name) = context { control = name }
        self.init(
            kind, operation: error.operation, errno: error.errno, message: "\(error.device): \(error.reason)",
            control: control)
    }
}

extension SourceError {
    /// The same with the names of the programs that have the device, where that is what is wrong.
    ///
    /// Looks at all processes: not for a loop's thread.
    package func namingHolders(of path: String) -> SourceError {
        guard kind == .inUse else { return self }
        var error = self
        let own = CurrentProcess.pid
        error.holders = ProcessTable.holders(of: path).processes.filter { $0.pid != own }
        return error
    }
}

/// Runs a V4L2 request and puts its error into this project's words.
func translating<Result>(
    _ context: SourceError.V4L2Context, _ body: () throws(V4L2Error) -> Result
) throws(SourceError) -> Result {
    do { return try body() } catch { throw SourceError(error, context) }
}
