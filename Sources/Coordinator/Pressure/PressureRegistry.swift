import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// The pressure on each device, from the machine's and its own, and whether the device has to stop for it.
final class PressureRegistry {
    /// What has changed for a device.
    struct Change {
        /// The state that it is in.
        var state: SystemPressureState?
        /// Whether it has to stop now, or may go on.
        var isHalted: Bool?
    }

    private struct Entry {
        var state = SystemPressureState.nominal
        /// A coordinator before this one may have had it stopped; its worker says so.
        var brake = SystemPressureBrake(isKnown: false)
    }

    private let watch: PressureWatcher?
    /// By the device's `uniqueID`: its settings and what it suffers stay with it under another id.
    private var entries: [String: Entry] = [:]

    /// Called when the machine's own pressure has changed.
    var onChange: (() -> Void)? {
        get { watch?.onChange }
        set { watch?.onChange = newValue }
    }

    /// - Parameter root: where /proc and /sys are looked for; nil: the machine's pressure is not watched.
    /// - Throws: when no thread can be started.
    init(_ loop: Loop, root: String?, logger: Logger) throws(SystemError) {
        watch = try root.map { root throws(SystemError) in try PressureWatcher(loop, root: root, logger: logger) }
    }

    func begin() { watch?.begin() }

    /// Starts a reading, as something is about to start. That does not wait: until then the last reading counts.
    func look() {
        let now = MonotonicClock.now()
        if let lastLook, now - lastLook < Self.lookInterval { return }
        lastLook = now
        watch?.read()
    }

    private static let lookInterval: Int64 = 1_000_000_000
    private var lastLook: Int64?

    /// How much pressure a device has to stop for; nil: it may go on.
    func halt(_ worker: WorkerHandle) -> SystemPressureState? { isHalted(worker) ? state(worker) : nil }

    /// Of the machine; nil: it is not watched.
    var machine: SystemPressureState? { watch?.state }

    /// By factor, how it is learnt that it rises; nil: it is not watched.
    var sources: JSONValue? {
        watch.map { watch in
            .object(
                Dictionary(watch.sources.map { ($0.key.rawValue, .string($0.value.rawValue)) }) { first, _ in first })
        }
    }

    func state(_ worker: WorkerHandle) -> SystemPressureState {
        entries[worker.device.identity.uniqueID]?.state ?? .nominal
    }

    func isHalted(_ worker: WorkerHandle) -> Bool { entries[worker.device.identity.uniqueID]?.brake.isOn ?? false }

    /// The order for a worker at its hello: whether it has to stop; nil: not known yet.
    func wish(for worker: WorkerHandle) -> Bool? {
        guard let brake = entries[worker.device.identity.uniqueID]?.brake, brake.isKnown else { return nil }
        return brake.isOn
    }

    func setStreaming(_ isStreaming: Bool) { watch?.setStreaming(isStreaming) }

    /// To be called whenever something of the device, or of the machine, may have changed.
    func update(_ worker: WorkerHandle) -> Change {
        let own = worker.status["systemPressureState"].flatMap(SystemPressureState.init(json:)) ?? .nominal
        let state = own.joined(watch?.state ?? .nominal)
        var entry = entries[worker.device.identity.uniqueID] ?? Entry()
        var change = Change()
        if state != entry.state { change.state = state }
        entry.state = state
        let isAdopted = worker.status["isHalted"]?.bool.map { entry.brake.adopt(isOn: $0) } ?? false
        // Before the first reading the reason for a stop may still hold.
        let isKnown = watch?.isKnown ?? true || state.level == .shutdown
        let isTaken = isKnown && entry.brake.take(state.level)
        if isAdopted || isTaken { change.isHalted = entry.brake.isOn }
        entries[worker.device.identity.uniqueID] = entry
        return change
    }

    /// Forgets all other devices.
    func keepOnly(_ uniqueIDs: Set<String>) { entries = entries.filter { uniqueIDs.contains($0.key) } }
}
