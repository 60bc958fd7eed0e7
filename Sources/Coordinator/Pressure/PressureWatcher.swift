import BusServer
import CaptureCore
import LinuxIO
import Logging
import Udev
import ZeroMQ

/// Knows how hard it is for this machine to go on: by the kernel's triggers, and by reading where it has none.
///
/// Nothing here waits for a sensor: all is read on a thread, and what was read last counts.
///
/// While nothing presses, nobody wakes the process for it. What a trigger reported is read again until it is over, and
/// temperatures, which no kernel reports by itself, every ten seconds while a camera streams or the machine is hot.
final class PressureWatcher {
    /// How it is learnt that a factor has risen.
    enum Source: String {
        /// The kernel tells at once.
        case trigger
        /// It is read from time to time while a camera streams, and when a session starts.
        case reading
        /// Nobody can tell.
        case none
    }

    private let loop: Loop
    private let logger: Logger
    private let files: PressureFiles
    private var reader: BackgroundWork<PressureOrder, PressureReading>?
    private var triggers: [PressureTrigger] = []
    private var folders: FileWatch?
    private var monitor: DeviceMonitor?
    private var zones: [String] = []
    /// Searches for zones that were wanted, and those that were made.
    private var searchesWanted: UInt64 = 1
    private var searchesMade: UInt64 = 0
    private var gauge = SystemPressureGauge()
    /// Until when a stall that was told of is read again.
    private var calmTimer: Loop.Token?
    private var readTimer: Loop.Token?
    private var isStreaming = false
    private var hasBegun = false
    private(set) var sources: [SystemPressureFactor: Source] = [:]
    private(set) var state = SystemPressureState.nominal
    /// Whether anything has been read yet.
    private(set) var isKnown = false
    /// Called when ``state``, ``sources`` or ``isKnown`` has changed.
    var onChange: (() -> Void)?

    /// Of a trigger, microseconds: shorter ones, and those that are no multiples of two seconds, are for root.
    private static let window = 2_000_000
    /// How long some program has to wait within it, microseconds: less than what a level needs, since that is of ten
    /// seconds.
    private static let stalls: [SystemPressureFactor: Int] = [.cpu: 800_000, .memory: 150_000, .io: 1_000_000]
    /// Milliseconds without a trigger until what it told of is read again.
    private static let calm: Int64 = 4500
    /// Events that are taken in one turn of the loop.
    private static let eventsPerTurn = 64
    /// From one reading of what nobody tells to the next, milliseconds.
    private static let interval: Int64 = 10_000

    init(_ loop: Loop, root: String, logger: Logger) throws(SystemError) {
        self.loop = loop
        self.logger = logger
        files = PressureFiles(root: root)
        reader = try BackgroundWork(
            loop, name: "pressure", work: { [files] in files.reading($0) }, then: { [weak self] in self?.take($0) })
    }

    /// Begins to watch.
    func begin() {
        guard !hasBegun else { return }
        hasBegun = true
        // Until they have been looked for.
        sources[.systemTemperature] = Source.none
        for factor in PressureFiles.stallFactors { sources[factor] = watch(factor) }
        listen()
        read()
    }

    private func watch(_ factor: SystemPressureFactor) -> Source {
        let path = files.stallPath(factor)
        guard files.stall(factor) != nil else { return .none }
        guard PressureTrigger.isKernels(path) else { return .reading }
        do throws(SystemError) {
            let trigger = try PressureTrigger(path, stall: Self.stalls[factor] ?? Self.window, window: Self.window)
            triggers.append(trigger)
            loop.watch(.urgent(trigger.rawValue)) { [weak self] in self?.read() }
            return .trigger
        } catch {
            logger.info("no trigger can be set", metadata: ["error": "\(error)"])
            return .reading
        }
    }

    // What is not the kernel's own file says itself when somebody writes it.
    private func watchFolders() {
        guard !PressureTrigger.isKernels("\(files.root)/proc") else { return }
        let wanted = (sources.values.contains(.reading) ? [files.stallFolder] : []) + zones
        guard !wanted.isEmpty, let watch = try? FileWatch(folders: wanted) else { return }
        folders = watch
        for factor in PressureFiles.stallFactors where sources[factor] == .reading { sources[factor] = .trigger }
        if !zones.isEmpty { sources[.systemTemperature] = .trigger }
        loop.watch(.descriptor(watch.rawValue)) { [weak self, weak watch] in
            if watch?.hasChanged() == true { self?.read() }
        }
    }

    // Some governors tell of trip points that were passed, and zones come and go with drivers.
    private func listen() {
        guard files.root.isEmpty, let monitor = try? DeviceMonitor(subsystem: "thermal") else { return }
        self.monitor = monitor
        loop.watch(.descriptor(monitor.descriptor)) { [weak self] in
            guard let self else { return }
            var left = Self.eventsPerTurn
            while left > 0, self.monitor?.next() != nil { left -= 1 }
            searchesWanted += 1
            read()
        }
    }

    /// Some camera streams, or none does any more.
    func setStreaming(_ isStreaming: Bool) {
        guard hasBegun, isStreaming != self.isStreaming else { return }
        self.isStreaming = isStreaming
        if isStreaming { read() } else { schedule() }
    }

    /// Has all read that there is to read: at each trigger, and when a session starts.
    func read() {
        guard hasBegun else { return }
        reader?.start(
            PressureOrder(zones: zones, search: searchesMade < searchesWanted ? searchesWanted : nil))
    }

    private func take(_ reading: PressureReading) {
        let before = (state, sources, isKnown)
        if let search = reading.search { found(reading.zones, bySearch: search) }
        for factor in PressureFiles.stallFactors { gauge.take(reading.stalls[factor], of: factor) }
        gauge.take(reading.temperatures)
        schedule()
        (state, isKnown) = (gauge.state, true)
        if state != before.0 {
            logger.notice(
                "system pressure",
                metadata: [
                    "level": "\(state.level.rawValue)",
                    "factors":
                        "\(SystemPressureFactor.allCases.filter(state.factors.contains).map(\.rawValue).joined(separator: " "))",
                ])
        }
        if before != (state, sources, isKnown) { onChange?() }
    }

    private func found(_ zones: [String], bySearch search: UInt64) {
        let isFirst = searchesMade == 0
        searchesMade = search
        self.zones = zones
        sources[.systemTemperature] = zones.isEmpty ? Source.none : .reading
        guard isFirst else { return }
        watchFolders()
        // What was written meanwhile was told to nobody.
        if folders != nil { read() }
        for factor in PressureFiles.stallFactors + [.systemTemperature] where sources[factor] != .trigger {
            logger.info(
                sources[factor] == Source.none
                    ? "this pressure is not known" : "this pressure is read from time to time",
                metadata: ["factor": "\(factor.rawValue)"])
        }
    }

    private func schedule() {
        loop.cancel(calmTimer)
        calmTimer = nil
        loop.cancel(readTimer)
        readTimer = nil
        // A trigger tells when it rises, and nothing when it falls.
        if PressureFiles.stallFactors.contains(where: { gauge.level(of: $0) != .nominal }), folders == nil {
            calmTimer = loop.schedule(afterMilliseconds: Self.calm) { [weak self] in self?.read() }
        }
        let isHot = gauge.level(of: .systemTemperature) != .nominal
        guard sources.values.contains(.reading), isStreaming || isHot else { return }
        readTimer = loop.schedule(afterMilliseconds: Self.interval) { [weak self] in self?.read() }
    }
}
