import BusProtocol
import CaptureCore
import CaptureSources
import LinuxIO

/// A camera with its committed configuration. Used on the device thread only.
///
/// Another program may change a camera while it is closed, and some do while it is open. So the committed configuration
/// is compared and restored at each opening, and while the camera is locked whenever another program has changed it.
final class CameraDevice {
    /// The state that the loop gets after each job.
    struct Report {
        var snapshot: DeviceSnapshot?
        var generation: UInt64
        var committed: CommittedConfiguration?
        var notRestored: [NotRestored]
        var standIn: StandIn?
        /// nil: the device is closed.
        var priority: KernelPriority?
        /// The controls that were put back since the last report, with the values that were found.
        var found: [String: ControlValue]
        /// When the device is to be checked again without an event: monotonic nanoseconds; nil: never.
        var nextLook: Int64?
    }

    let source: any VideoSource
    let device: String
    private(set) var description: DeviceDescription?
    /// What was read last.
    var snapshot: DeviceSnapshot?
    /// Rises with every change that was made by order, and with every one that was taken back.
    var generation: UInt64
    /// nil: nothing was ever set by order.
    var committed: CommittedConfiguration?

    /// What was set for a photo; nil: nothing.
    var standIn: StandIn?
    /// Its photo is over, and it could not be put back.
    var isStandInLeft = false
    /// The zoom ramp that runs now.
    var rampingZoom: RampingZoom?
    /// What `zoomValue` spans at most.
    let zoomLimit: Double
    /// How the exposure is metered, where it can be.
    let metering = MeteringState()

    /// The format of the last stream, as the device says it.
    private var streamFormat: FormatSelection?
    /// What pictures of a format turned out to have, where the device said something else.
    private var actual: (format: FormatSelection, pictures: ActualPictures)?

    private var isOpen = false
    private var isStreaming = false
    private var isLocked = false
    private var priority: KernelPriority?
    /// When it was asked for last.
    private var priorityTime: Int64 = 0
    private var notRestored: [NotRestored] = []
    private var isFormatInUse = false
    private var found: [String: ControlValue] = [:]
    private var defence = ControlDefence()

    /// From one try to the next to keep out others, nanoseconds.
    private static let priorityPeriod: Int64 = 2_000_000_000

    init(
        _ source: any VideoSource, device: String, committed: CommittedConfiguration?, standIn: StandIn? = nil,
        zoomLimit: Double = CameraControlMap.defaultMaxZoom, zoom: DigitalZoomState
    ) {
        self.zoomLimit = zoomLimit
        self.source = CompletedSource(source, metering, zoom)
        self.device = device
        self.committed = committed
        self.standIn = standIn
        generation = committed?.generation ?? 0
    }

    /// To be taken once after each work.
    func report() -> Report {
        defer { found = [:] }
        return Report(
            snapshot: snapshot, generation: generation, committed: committed, notRestored: notRestored,
            standIn: standIn, priority: priority, found: found, nextLook: nextLook)
    }

    private var nextLook: Int64? {
        guard isOpen, isLocked else { return nil }
        let retry = priority == .refused ? priorityTime + Self.priorityPeriod : nil
        return [defence.nextEnd(after: MonotonicClock.now()), retry].compactMap(\.self).min()
    }

    // MARK: Opening

    /// Opens the device, restores the committed configuration, and returns the queue of the device's events.
    func open() throws(SourceError) -> (any DeviceEventQueue)? {
        description = try source.open()
        description?.zoomLimit = zoomLimit
        rampingZoom = nil
        // No caller waits any more for what was adjusting.
        metering.isAdjusting = false
        metering.isPuttingBack = true
        // There may be room by now.
        committed?.endStandIn()
        defer { metering.isPuttingBack = false }
        do {
            isOpen = true
            defence = ControlDefence()
            // First of all, so that no other program comes in between.
            try setPriority()
            let events = try source.events()
            endStandInAtOpening()
            try restore([.format, .controls])
            return events
        } catch {
            close()
            throw error
        }
    }

    func close() {
        isOpen = false
        isStreaming = false
        priority = nil
        source.close()
        // An unused camera must cost no memory.
        ProcessMemory.giveBack()
    }

    /// Starts the stream with what was last set, in a ring of its own.
    func start() throws(SourceError) -> (any FrameStream, NativeRing) {
        endLeftStandIn()
        // Another program may have set another format meanwhile; or what kept ours from being set is over.
        var isInUse = false
        if try isOtherwise() {
            try restore(.format)
            isInUse = isFormatInUse
        }
        do {
            let started = try startStream()
            guard isInUse else { return started }
        }
        // The program that kept the format from being set has released the device meanwhile: the stream has that
        // program's format.
        isStreaming = false
        try source.stopStreaming()
        try restore(.format)
        return try startStream()
    }

    private func startStream() throws(SourceError) -> (any FrameStream, NativeRing) {
        var ring: NativeRing?
        let actual = actual
        var told: FormatSelection?
        let stream = try source.startStreaming { layout, bytes throws(SourceError) in
            // One that was made before is not needed by us any more, and its memory may be needed now.
            ring = nil
            let stated = layout.description.orientation
            var layout = layout
            let format = FormatSelection(pixelFormat: layout.pixelFormat, dimensions: layout.dimensions)
            told = format
            if let actual, actual.format == format {
                layout.description = actual.pictures.completed(layout.description)
            }
            let memory = try NativeRing(
                device: device, layout, stated: stated, bytes: bytes, generation: generation)
            ring = memory
            return memory
        }
        isStreaming = true
        streamFormat = told
        guard let ring, stream.slots.count == ring.slots.count else {
            throw SourceError(
                .failed, operation: "start",
                message: "the device streams into memory that is not its "
                    + "own")
        }
        return (stream, ring)
    }

    /// The pictures of the last stream have not what the device says: so will those of the next one.
    func picturesHave(_ pictures: ActualPictures) {
        actual = streamFormat.map { ($0, pictures) }
    }

    /// The format or its rate is not the committed one.
    private func isOtherwise() throws(SourceError) -> Bool {
        guard let committed, standIn?.setsFormat != true else { return false }
        guard try source.activeFormat() == committed.format else { return true }
        guard let wanted = committed.frameDuration else { return false }
        return !(try source.frameDuration()?.isNearly(wanted) ?? false)
    }

    func stop() throws(SourceError) {
        isStreaming = false
        // The next stream, before the device is closed, may need less memory.
        defer { ProcessMemory.giveBack() }
        try source.stopStreaming()
    }

    // MARK: The lock

    /// Sets whether a client holds the device's lock: other programs are kept out meanwhile.
    func setLocked(_ isLocked: Bool) {
        self.isLocked = isLocked
        guard isOpen else { return }
        do throws(SourceError) { try setPriority() } catch { return }
        guard isLocked else { return }
        defence = ControlDefence()
        restoreRest()
    }

    /// Keeps other programs out if that was refused before, and is wanted still.
    func retryPriority() {
        guard isOpen, isLocked, priority == .refused else { return }
        do throws(SourceError) { try setPriority() } catch { return }
        if priority == .record { restoreRest() }
    }

    private func setPriority() throws(SourceError) {
        priorityTime = MonotonicClock.now()
        // If the device is disconnected, the call that waits for it reports that.
        priority = nil
        priority = try source.setPriority(isRecord: isLocked)
    }

    // What could not be restored before may be possible now that others are kept out. If not, it is still reported.
    private func restoreRest() {
        if !notRestored.isEmpty, standIn == nil { _ = try? restore(isStreaming ? .controls : [.format, .controls]) }
    }

    /// Restores what another program has changed although the device is locked.
    func defend() throws(SourceError) {
        guard isOpen, isLocked, committed != nil else { return }
        var spared = defence.exhausted(at: MonotonicClock.now())
        if let rampingZoom { spared.insert(rampingZoom.control) }
        spared.formUnion(drivenControls)
        if let standIn { spared.formUnion(standIn.controls) }
        let attempted = try restore(.controls, sparing: spared)
        // On its way to what was committed.
        for name in drivenControls.union(rampingZoom.map { [$0.control] } ?? []) {
            forget { $0.path == NotRestored.path(ofControl: name) }
        }
        defence.count(attempted, at: MonotonicClock.now())
    }

    // MARK: Reading and putting back

    /// How the open device is set now.
    @discardableResult
    func read() throws(SourceError) -> DeviceSnapshot {
        let began = MonotonicClock.now()
        let controls = try source.controls()
        description?.controls = controls
        let description = description ?? DeviceDescription(identity: source.identity, formats: [], controls: controls)
        let format = try source.activeFormat()
        var configuration = DeviceConfiguration(
            formatID: description.formatID(of: format), format: format, frameDuration: try source.frameDuration(),
            controls: try source.controlValues(),
            words: (committed?.words ?? [:]).merging(standIn?.plan.words ?? [:]) { $1 })
        configuration.isRampingZoom = rampingZoom != nil
        var snapshot = DeviceSnapshot(
            description: description, configuration: configuration,
            formatDescription: try formatDescription(configuration.frameDuration), began: began,
            asOf: MonotonicClock.now())
        snapshot.meteringRevision = metering.revision
        self.snapshot = snapshot
        forget { $0.isSettled(snapshot) }
        return snapshot
    }

    private func formatDescription(_ duration: FrameDuration?) throws(SourceError) -> FormatDescription {
        var description = try source.formatDescription()
        description.frameDuration = duration
        let format = FormatSelection(pixelFormat: description.pixelFormat, dimensions: description.dimensions)
        if let actual, actual.format == format { return actual.pictures.completed(description) }
        return description
    }

    /// Removes the entries of `notRestored` for which the condition holds.
    func forget(where isOver: (NotRestored) -> Bool) {
        notRestored.removeAll(where: isOver)
    }

    /// - Returns: the controls that were set.
    @discardableResult
    private func restore(
        _ scope: ConfigurationRestorer.Scope, sparing spared: Set<String> = []
    ) throws(SourceError) -> Set<String> {
        guard let committed else {
            notRestored = []
            try read()
            return []
        }
        let restorer = ConfigurationRestorer(source, committed) { () throws(SourceError) in try self.read() }
        let outcome = try restorer.restore(scope, sparing: spared)
        notRestored =
            notRestored.filter { !scope.contains($0.isOfFormat ? .format : .controls) } + outcome.notRestored
        if scope.contains(.format) { isFormatInUse = outcome.isFormatInUse }
        found.merge(outcome.found) { first, _ in first }
        return outcome.attempted
    }
}

/// How often a control was put back while the device was locked: a camera, or a program, that changes it for ever is
/// given up.
struct ControlDefence {
    private var counts: [String: (count: Int, since: Int64)] = [:]

    private static let limit = 5
    /// Nanoseconds.
    private static let period: Int64 = 10_000_000_000

    /// Those that are left as they are for now.
    func exhausted(at now: Int64) -> Set<String> {
        Set(counts.filter { $0.value.count >= Self.limit && now - $0.value.since < Self.period }.keys)
    }

    /// When the first of them is tried again; nil: none is left.
    func nextEnd(after now: Int64) -> Int64? {
        exhausted(at: now).compactMap { counts[$0]?.since }.min().map { $0 + Self.period }
    }

    mutating func count(_ names: Set<String>, at now: Int64) {
        for name in names {
            let (count, since) = counts[name] ?? (0, now)
            counts[name] = now - since < Self.period ? (count + 1, since) : (1, now)
        }
    }
}

extension DeviceDescription {
    /// The row of the table that has this format; nil if none has.
    func formatID(of selection: FormatSelection) -> String? {
        formats.first { $0.isRow(of: selection) }?.id
    }
}
