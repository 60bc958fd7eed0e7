public import BusServer
public import CaptureCore

/// A worker's connection to the coordinator.
typealias CoordinatorLink = OrderLink<WorkerOrder, WorkerReport>

extension WorkerOrder: LinkOrder {}

extension WorkerReport: LinkReport {
    public var isSentOnce: Bool {
        switch self {
        case .reply, .description, .event, .refused, .photo: true
        case .hello, .status, .alive: false
        }
    }

    // The whole state of the device is sent after the hello, and before all events.
    public var isKeptForHello: Bool { false }
}
