package import ALSA
import Glibc

extension SourceError {
    /// What the caller was about when ALSA refused: the same error number means different things there.
    package enum ALSAContext: Hashable, Sendable {
        case opening, configuring, capturing
        /// Setting or reading the control of that name.
        case control(String)
    }

    /// ALSA's error number in this project's words.
    package init(_ error: ALSAError, _ context: ALSAContext) {
        let kind: Kind =
            switch (error.code, context) {
            case (ENODEV, _), (ENXIO, _): .disconnected
            // The node went away between the look at the directory and now.
            case (ENOENT, .opening): .disconnected
            // What the driver says while its device is being pulled out.
            case (EIO, .capturing), (EBADFD, .capturing): .disconnected
            case (EBUSY, .control), (EACCES, .control), (EPERM, .control): .controlBusy
            // A PCM that another program has open says EAGAIN to who won't wait.
            case (EBUSY, _), (EAGAIN, .opening): .inUse
            case (EACCES, _), (EPERM, _): .notPermitted
            case (ENOSPC, _), (ENOMEM, _): .noResources
            case (EINVAL, _), (ERANGE, _), (EDOM, _): .refused
            default: .failed
            }
        var control: String?
        if case .control(let name) = context { control = name }
        self.init(
            kind, operation: error.operation, errno: error.code, message: "\(error.device): \(error.reason)",
            control: control)
    }
}
