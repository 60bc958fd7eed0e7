import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO

/// The state of the device as reported to the coordinator: complete, whenever it has changed, and at most twenty times
/// a second.
struct DeviceStatus {
    var isOpen = false
    var stream: String?
    /// How the running stream's frames come into their slots.
    var memory: FrameMemory?
    var snapshot: DeviceSnapshot?
    var formatDescription: FormatDescription?
    var generation: UInt64 = 0
    var busySince: Int64?
    var error: BusError?
    var committed: CommittedConfiguration?
    /// The highest that was seen: orders with a lower one are refused.
    var fence: UInt64 = 0
    /// nil while it is closed.
    var priority: KernelPriority?
    var notRestored: [NotRestored] = []
    /// What is set for a photo, or about to be: to be put back by the next process, should this one not come to it.
    var standIn: StandIn?
    /// What the device itself says of the pressure that it is under.
    var pressure = SystemPressureState.nominal
    /// The coordinator has ordered it not to stream because of the pressure.
    var isHalted = false
    /// The owner of the running zoom ramp; null: none runs.
    var zoomRamp = JSONValue.null
    /// What the scene needs of a photo; null: no session monitors it.
    var scene = JSONValue.null
    /// How many want each of the renditions that are made.
    var subscribers: [Rendition: Int] = [:]
    /// Renditions that subscribers want and that are refused, and why.
    var refused: [(rendition: Rendition, error: BusError)] = []
    /// Bytes of rings that count for each user.
    var ringBytes: [UInt32: Int] = [:]

    /// What is not known, or not now, is null.
    var json: JSONValue {
        let configuration = snapshot?.configuration
        let duration = configuration?.frameDuration
        return [
            "isOpen": .bool(isOpen), "isStreaming": .bool(stream != nil),
            "stream": stream.map(JSONValue.string) ?? .null,
            "memory": (memory?.rawValue).map(JSONValue.string) ?? .null,
            "activeFormat": configuration?.json["activeFormat"] ?? .null,
            "formatDescription": formatDescription?.json ?? .null,
            "frameDuration": duration?.json ?? .null, "frameRate": duration?.rateJSON ?? .null,
            "generation": JSONValue(generation), "controls": .object(snapshot?.values ?? [:]),
            "supports": snapshot?.cameraControls.supports ?? [:],
            "asOf": (snapshot?.asOf).map(JSONValue.integer) ?? .null,
            "busySince": busySince.map(JSONValue.integer) ?? .null, "error": error?.headerJSON ?? .null,
            "committed": committed?.json ?? .null, "fence": JSONValue(fence),
            "kernelPriority": (priority?.rawValue).map(JSONValue.string) ?? .null,
            "notRestored": .array(notRestored.map(\.json)), "standIn": standIn?.json ?? .null,
            "systemPressureState": pressure.json,
            "isHalted": .bool(isHalted),
            "zoomRamp": zoomRamp, "scene": scene,
            "subscribers": .object(
                Dictionary(subscribers.map { ($0.description, JSONValue($1)) }) { first, _ in first }),
            "refused": .object(
                Dictionary(refused.map { ($0.rendition.description, .string($0.error.message)) }) { $1 }),
            "rings": WorkerReport.rings(ringBytes),
        ]
    }
}

/// Reports the status to the coordinator when it is due.
final class StatusReporter {
    private let loop: Loop
    private let read: () -> JSONValue
    private let send: (WorkerReport) -> Bool
    private var sent: JSONValue?
    private var lastTime = Int64.min / 2
    private var timer: Loop.Token?

    private static let interval: Int64 = 50_000_000

    init(_ loop: Loop, read: @escaping () -> JSONValue, send: @escaping (WorkerReport) -> Bool) {
        self.loop = loop
        self.read = read
        self.send = send
    }

    /// Something may have changed.
    func touch() {
        guard timer == nil else { return }
        // At the end of this turn at the earliest, so that simultaneous changes are reported together.
        timer = loop.schedule(at: max(MonotonicClock.now(), lastTime + Self.interval)) { [weak self] in
            self?.timer = nil
            self?.report()
        }
    }

    /// A new coordinator knows nothing yet.
    func forget() { sent = nil }

    /// Reports changes now: before the reply to an order, so that a client with the reply never reads an older state.
    func report() {
        let json = read()
        guard json != sent, send(.status(json)) else { return }
        sent = json
        lastTime = MonotonicClock.now()
    }
}
