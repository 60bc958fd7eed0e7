import CaptureCore
import LinuxIO

/// The first report on each connection to the coordinator. The link exists before the values of the report.
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
