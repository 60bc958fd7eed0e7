public import BusServer
public import CaptureCore

/// A recorder's connection to the coordinator.
typealias RecorderLink = OrderLink<RecorderOrder, RecorderReport>

extension RecorderOrder: LinkOrder {}

extension RecorderReport: LinkReport {
    public var isSentOnce: Bool {
        switch self {
        case .reply, .event: true
        case .hello, .state, .alive: false
        }
    }

    public var isKeptForHello: Bool { if case .event = self { true } else { false } }
}
