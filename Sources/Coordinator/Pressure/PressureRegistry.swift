import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Knows of each device how much pressure it is under, from the machine's and its own, and whether it has to stop for that.
final class PressureRegistry {
    /// What became otherwise with a device.
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

    /// Told when the machine's own pressure has changed.
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

    /// Has somebody look: something is about to start, which does not wait for that; what was read last counts until then.
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

    /// What a worker is to be told at its hello; nil: nothing, as it isn't known yet whether it has to stop.
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
        // What it had to stop for is not over because nobody has looked yet.
        let isKnown = watch?.isKnown ?? true || state.level == .shutdown
        let isTaken = isKnown && entry.brake.take(state.level)
        if isAdopted || isTaken { change.isHalted = entry.brake.isOn }
        entries[worker.device.identity.uniqueID] = entry
        return change
    }

    /// Forgets those that are none of these.
    func keepOnly(_ uniqueIDs: Set<String>) { entries = entries.filter { uniqueIDs.contains($0.key) } }
}

extension SessionRegistry {
    /// What the sessions of a device that had to stop are told.
    func interruption(_ device: String, _ state: SystemPressureState) -> SessionInterruption {
        SessionInterruption(
            .videoDeviceNotAvailableDueToSystemPressure, device: device, by: ["systemPressureState": state.json],
            message:
                "\(device) is under too much pressure (\(state.told)); the session goes on by itself when that is over."
        )
    }
}

extension SystemPressureState {
    /// `shutdown: memory`
    fileprivate var told: String {
        let words = SystemPressureFactor.allCases.filter(factors.contains).map(\.rawValue).joined(separator: ", ")
        return words.isEmpty ? level.rawValue : "\(level.rawValue): \(words)"
    }
}
