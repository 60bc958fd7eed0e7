import CaptureCore
import LinuxIO

/// What a recorder says first on each connection. The link is there before all that it greets with.
final class RecorderHello {
    var request: MovieRequest
    var progress: (() -> MovieProgress)?

    init(_ request: MovieRequest) { self.request = request }

    func hello(_ link: UInt64) -> RecorderReport {
        .hello(
            movie: request.movie, pid: CurrentProcess.pid, link: link, request: request,
            progress: progress?() ?? MovieProgress(.starting))
    }
}
