import BusProtocol
import CaptureCore
import CaptureLibrary
import FFmpeg
import Glibc
import JSON
import LinuxIO
import MovieFile

// The results of the movie writer, in the values of the bus.

extension MovieEnd {
    var reason: MovieEndReason {
        switch self {
        case .maximumDurationReached: .maximumDurationReached
        case .maximumFileSizeReached: .maximumFileSizeReached
        case .minimumFreeDiskSpaceReached: .minimumFreeDiskSpaceReached
        case .diskFull: .diskFull
        case .writeFailed: .writeFailed
        }
    }

    /// nil: it is no failure.
    func failure(_ request: MovieRequest) -> BusError? {
        switch self {
        case .maximumDurationReached, .maximumFileSizeReached, .minimumFreeDiskSpaceReached: nil
        case .diskFull: .diskFull(request.path)
        case .writeFailed(let code):
            BusError(.internalError, SystemError(code: code, operation: "write", subject: request.path).description)
        }
    }
}

extension MovieThread {
    // The file by its own name.
    private static func told(_ error: SystemError, _ request: MovieRequest) -> String {
        SystemError(code: error.code, operation: error.operation, subject: request.path).description
    }

    /// Why the movie has no side-car, or one that ends before it does, in a sentence.
    static func sideCarProblem(_ error: SystemError, _ request: MovieRequest) -> String {
        let path = request.path + sideCarEnding
        guard error.code != EEXIST else { return "There is a file already that is no side-car: \(path)." }
        let told = SystemError(code: error.code, operation: error.operation, subject: path)
        return "The side-car can't be written: \(told)."
    }

    /// What kept the movie from being written.
    static func failure(_ error: MovieError, _ request: MovieRequest) -> BusError {
        switch error {
        case .unsupported(let text): .invalidParams("settings", "\(text) can't be recorded")
        // libx264 finds no memory, and says nothing more of it.
        case .media(let error) where error.isOfResources:
            BusError(.internalError, "The encoder can't be started, most likely for lack of memory: \(error).")
        case .media(let error): .invalidParams("settings", "this can't be encoded: \(error)")
        case .file(let error):
            switch error.code {
            case ENOSPC, EDQUOT: .diskFull(request.path)
            case EEXIST: .invalidParams("path", "this file exists already: \(request.path)")
            case ELOOP where request.root != nil, EXDEV where request.root != nil:
                BusError(
                    .pathNotAllowed, "A link leads from \(request.root ?? "") to \(request.path), and is not followed.",
                    ["roots": JSONValue([request.root].compactMap(\.self))])
            case ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG:
                .invalidParams("path", Self.told(error, request))
            default: BusError(.internalError, Self.told(error, request))
            }
        }
    }
}

extension MovieVideo {
    /// {codec, width, height, frameRate}, and of what is encoded here {bitRate, keyFrameInterval, preset}.
    /// - Parameter frameRate: of the movie; nil: it is not known.
    func wireForm(frameRate: Double?) -> JSONValue {
        let size: Dimensions
        var encoding: VideoSettings?
        switch self {
        case .motionJPEG(let description), .h264(let description, _): size = description.dimensions
        case .raw(let layout): size = layout.dimensions
        case .encoded(_, let settings):
            size = Dimensions(width: settings.width, height: settings.height)
            if settings.codec == .h264 { encoding = settings }
        }
        return .members([
            "codec": .string(codec.rawValue), "width": JSONValue(size.width), "height": JSONValue(size.height),
            "frameRate": frameRate.map(JSONValue.plain) ?? .null, "bitRate": encoding.map { JSONValue($0.bitRate) },
            "keyFrameInterval": encoding.map { JSONValue($0.keyFrameInterval) },
            "preset": encoding.map { .string($0.preset) },
        ])
    }
}

extension MovieAudio {
    /// {codec, rate, channels, bitRate}
    var wireForm: JSONValue {
        [
            "codec": .string("\(settings.codec)"), "rate": JSONValue(settings.rate),
            "channels": JSONValue(settings.channels), "bitRate": JSONValue(settings.bitRate),
        ]
    }
}
