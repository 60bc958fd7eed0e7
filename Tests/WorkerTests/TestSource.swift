import BusProtocol
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Synchronization
import Testing

/// What a test can do to a ``TestSource`` from outside, and see of it.
final class TestBench: Sendable {
    struct State: Sendable {
        var openFailure: SourceError?
        var startFailure: SourceError?
        var streamFailure: SourceError?
        /// Values that are taken but not kept: the control says something else afterwards.
        var stubborn: [String: ControlValue] = [:]
        var refusedControl: String?
        /// The format that comes out whatever is set.
        var forcedFormat: FormatSelection?
        /// Setting a format fails so until the next start of a stream.
        var formatFailure: SourceError?
        /// What somebody else has set; taken over at the next look.
        var meddledFormat: FormatSelection?
        /// Nothing can be read.
        var readFailure: SourceError?
        /// So many readings succeed, and no more; nil: all.
        var readsLeft: Int?
        /// The control whose setting waits for ``TestBench/release()``.
        var heldControl: String?
        var damagedFrames = 0
        /// The rate that it runs at after a format was set; nil: the one before.
        var rateOfFormats: Int?
        /// No frames come, and no error.
        var isSilent = false
        var calls: [String] = []
        var isOpen = false
        var isStreaming = false
        var slotsOut = 0
        var leastQueued = Int.max
        var starts = 0
        /// What `setPriority` answers for a lock, and what is in force.
        var priorityForLock = KernelPriority.record
        var priority = KernelPriority.default
        /// Controls that the camera has no more, and flags that a control has besides.
        var missing: Set<String> = []
        var flags: [String: Set<ControlFlag>] = [:]
        /// Values that somebody else has set; taken over at the next reading.
        var meddled: [String: ControlValue] = [:]
        /// Compressed pictures that come one after the other instead of the usual ones.
        var pictures: [[UInt8]] = []
        var pictureFormat = PixelFormat.motionJPEG
        /// What it states of its colours; nil: what is usual of its format.
        var color: ColorDescription?
        /// It takes a part of its sensor's picture, in pairs of pixels, and scales it to the picture's size, or
        /// doesn't; a format has the whole picture taken again. nil: it can't.
        var cropScales: Bool?
        /// Further controls.
        var extra: [CaptureControl] = []
        /// How bright what it sees is, in strips from left to right, 1 being grey at the first exposure; none: it sees
        /// nothing.
        var scene: [Double] = []
        /// What becomes of an exposure while `3a_lock` has its bit; nil: it is set.
        var lockManner: LockManner?
        /// What was set last, by control.
        var set: [String: ControlValue] = [:]

        /// The luma that a strip of the scene has, as of a camera that answers light in a straight line.
        func luma(_ strip: Int) -> UInt8 {
            let time = Double(set["exposure_time_absolute"]?.number ?? 100) / 100
            let gain = 1 + Double(set["gain"]?.number ?? 0) / 2
            return UInt8(min(max(16 + 101 * scene[strip] * time * gain, 16), 235))
        }
    }

    /// What drivers do with a control that is locked.
    enum LockManner: Sendable, CaseIterable { case ignores, refuses, marksInactive, marksGrabbed }

    /// What the source tells by itself.
    let told = TestEventQueue()

    private let state = Mutex(State())
    /// Something was called. For one who waits at a time.
    private let noted = try? EventDescriptor()
    fileprivate let released = Semaphore()

    /// Lets the control be set that is held, and holds none any more.
    func release() {
        set { $0.heldControl = nil }
        released.signal()
    }

    /// Waits until the source was called so, since ``clearCalls()``.
    func wait(forCall call: String, seconds: Int64 = 30) throws {
        let noted = try #require(noted)
        let deadline = MonotonicClock.now() + seconds * 1_000_000_000
        while !now.calls.contains(call) {
            let left = (deadline - MonotonicClock.now()) / 1_000_000
            guard left > 0 else { throw TimedOut(what: call) }
            var item = pollfd(fd: noted.rawValue, events: Int16(POLLIN), revents: 0)
            poll(&item, 1, Int32(left))
            noted.drain()
        }
    }

    func set(_ change: @Sendable (inout State) -> Void) { state.withLock { change(&$0) } }
    var now: State { state.withLock { $0 } }
    func note(_ call: String) {
        state.withLock { $0.calls.append(call) }
        noted?.signal()
    }
    func clearCalls() { state.withLock { $0.calls = [] } }
}

/// A camera in memory, that does what the test bench says: small YUYV pictures, the frame's number in the first four
/// bytes.
final class TestSource: VideoSource {
    let identity = DeviceIdentity(
        uniqueID: "test-0", localizedName: "Test", type: .virtual, position: .unspecified, driver: "test", bus: "test:0"
    )
    private let bench: TestBench
    private var format = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 64, height: 48))
    private var duration = FrameDuration(framesPerSecond: 100)
    private var values: [String: ControlValue] = [
        "brightness": .integer(50), "gain": .integer(0), "auto": .boolean(false), "gain_automatic": .boolean(false),
    ]

    /// What it can take of its sensor's picture.
    static let sensor = PixelRectangle(x: 0, y: 0, width: 64, height: 48)
    private var crop = sensor

    init(_ bench: TestBench) { self.bench = bench }

    static func format(_ id: String, _ width: Int, _ height: Int, rates: [Int]) -> CaptureFormat {
        CaptureFormat(
            id: id, pixelFormat: .yuyv, dimensions: Dimensions(width: width, height: height),
            frameRates: rates.map { FrameRateRange(discrete: FrameDuration(framesPerSecond: $0)) })
    }

    private var description: DeviceDescription {
        DeviceDescription(
            identity: identity,
            formats: [
                Self.format("f0", 64, 48, rates: [100, 50]), Self.format("f1", 32, 24, rates: [100, 50]),
            ] + (bench.now.rateOfFormats == nil ? [] : [Self.format("f2", 16, 16, rates: [])]),
            controls: table)
    }

    private var table: [CaptureControl] {
        let now = bench.now
        let crop =
            now.cropScales == nil
            ? [] : [CropRectangleControl.control(bounds: Self.sensor, defaultRectangle: Self.sensor)]
        return (all + crop + now.extra).filter { !now.missing.contains($0.name) }.map { control in
            var control = control
            control.flags.formUnion(now.flags[control.name] ?? [])
            if control.name == "gain", values["gain_automatic"] == .boolean(true) { control.flags.insert(.inactive) }
            switch isLocked(control.name) ? now.lockManner : nil {
            case .marksInactive?: control.flags.insert(.inactive)
            case .marksGrabbed?: control.flags.insert(.grabbed)
            default: break
            }
            return control
        }
    }

    private var all: [CaptureControl] {
        [
            CaptureControl(
                name: "gain_automatic", title: "Gain, Automatic", id: 0x98_0912, type: .boolean, minimum: 0,
                maximum: 1),
            CaptureControl(
                name: "brightness", title: "Brightness", id: 0x98_0900, type: .integer, minimum: 0, maximum: 100,
                defaultValue: 50),
            CaptureControl(
                name: "gain", title: "Gain", id: 0x98_0913, type: .integer, minimum: 0, maximum: 10, defaultValue: 0),
            CaptureControl(name: "auto", title: "Auto", id: 0x98_091F, type: .boolean, minimum: 0, maximum: 1),
        ]
    }

    func open() throws(SourceError) -> DeviceDescription {
        bench.note("open")
        if let failure = bench.now.openFailure { throw failure }
        bench.set { $0.isOpen = true }
        return description
    }

    func close() {
        bench.note("close")
        bench.set { $0.isOpen = false }
    }

    func activeFormat() throws(SourceError) -> FormatSelection {
        format = bench.now.meddledFormat ?? format
        bench.set { $0.meddledFormat = nil }
        return format
    }

    func formatDescription() throws(SourceError) -> FormatDescription { TestStream.description(format, bench) }

    func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection { selection }

    func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        bench.note("setFormat \(selection.dimensions)")
        guard !bench.now.isStreaming else { throw SourceError(.inUse, operation: "setFormat", message: "streams") }
        if let failure = bench.now.formatFailure { throw failure }
        format = bench.now.forcedFormat ?? selection
        if let rate = bench.now.rateOfFormats { duration = FrameDuration(framesPerSecond: rate) }
        crop = Self.sensor
        if bench.now.cropScales == false {
            (crop.width, crop.height) = (Int64(format.dimensions.width), Int64(format.dimensions.height))
        }
        return format
    }

    func frameDuration() throws(SourceError) -> FrameDuration? { duration }

    func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        bench.note("setFrameDuration \(duration)")
        guard !bench.now.isStreaming else {
            throw SourceError(.inUse, operation: "setFrameDuration", message: "streams")
        }
        self.duration = duration
        return duration
    }

    func controls() throws(SourceError) -> [CaptureControl] {
        if let failure = bench.now.readFailure { throw failure }
        if let left = bench.now.readsLeft {
            guard left > 0 else { throw SourceError(.failed, operation: "read", message: "it is gone") }
            bench.set { $0.readsLeft = left - 1 }
        }
        return table
    }

    func controlValues() throws(SourceError) -> [String: ControlValue] {
        let now = bench.now
        values.merge(now.meddled) { $1 }
        for control in now.extra where values[control.name] == nil {
            values[control.name] = control.type == .boolean ? .boolean(false) : .integer(control.minimum)
        }
        bench.set { $0.meddled = [:] }
        if now.cropScales != nil { values[CropRectangleControl.name] = crop.numbers }
        return values.filter { !now.missing.contains($0.key) }
    }

    func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority {
        bench.note("priority \(isRecord ? "record" : "default")")
        bench.set { $0.priority = isRecord ? $0.priorityForLock : .default }
        return bench.now.priority
    }

    func events() throws(SourceError) -> (any DeviceEventQueue)? {
        bench.note("events")
        return bench.told
    }

    func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        bench.note("set \(name)")
        let now = bench.now
        if now.heldControl == name { bench.released.wait() }
        if now.refusedControl == name {
            throw SourceError(.refused, operation: "setControl", message: "refused", control: name)
        }
        if !(table.first { $0.name == name }?.flags.isDisjoint(with: [.inactive, .grabbed]) ?? true) {
            throw SourceError(.controlBusy, operation: "setControl", message: "inactive", control: name)
        }
        if isLocked(name) {
            if now.lockManner == .refuses {
                throw SourceError(.controlBusy, operation: "setControl", errno: EBUSY, message: "busy", control: name)
            }
            if now.lockManner == .ignores { return }
        }
        if name == CropRectangleControl.name { return try setCrop(value) }
        values[name] = now.stubborn[name] ?? value
        let kept = values[name]
        bench.set { $0.set[name] = kept }
    }

    // Of such drivers also the mode is locked.
    private func isLocked(_ name: String) -> Bool {
        (values["3a_lock"]?.number ?? 0) & 1 != 0
            && ["auto_exposure", "exposure_time_absolute", "iso_sensitivity"].contains(name)
    }

    private func setCrop(_ value: ControlValue) throws(SourceError) {
        guard !bench.now.isStreaming else {
            throw SourceError(.inUse, operation: "setControl", message: "streams", control: CropRectangleControl.name)
        }
        guard let part = PixelRectangle(value) else { return }
        crop = PixelRectangle(x: part.x, y: part.y, width: part.width / 2 * 2, height: part.height)
        if bench.now.cropScales == false {
            format.dimensions = Dimensions(width: Int(crop.width), height: Int(crop.height))
        }
    }

    func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        bench.note("start")
        if let failure = bench.now.startFailure { throw failure }
        _ = try activeFormat()
        bench.set {
            $0.isStreaming = true
            $0.starts += 1
            $0.formatFailure = nil
        }
        let layout = TestStream.layout(format, bench)
        let memory = try allocate(layout, layout.totalBytes)
        do {
            return try TestStream(layout, memory, duration, bench)
        } catch {
            throw SourceError(.failed, operation: "start", message: "\(error)")
        }
    }

    func requestKeyframe() throws(SourceError) { bench.note("requestKeyframe") }

    func stopStreaming() throws(SourceError) {
        bench.note("stop")
        bench.set { $0.isStreaming = false }
    }

    func injectFault(_ fault: VirtualFault) throws(SourceError) { bench.note("fault \(fault)") }
}

/// Events that a test makes up.
final class TestEventQueue: DeviceEventQueue, Sendable {
    private let ready = try? EventDescriptor()
    private let state = Mutex<(events: [DeviceEvent], error: SourceError?, fetched: Int)>(([], nil, 0))
    private let stuck = Atomic(false)

    var descriptor: Int32 { ready?.rawValue ?? -1 }
    var isUrgent: Bool { false }
    /// How often somebody has looked.
    var fetched: Int { state.withLock { $0.fetched } }

    /// It says that there is something, and has nothing.
    func stick(_ isStuck: Bool) {
        stuck.store(isStuck, ordering: .sequentiallyConsistent)
        ready?.signal()
    }

    func tell(_ event: DeviceEvent) {
        state.withLock { $0.events.append(event) }
        ready?.signal()
    }

    func fail(_ error: SourceError?) {
        state.withLock { $0.error = error }
        if error != nil { ready?.signal() }
    }

    func next() throws(SourceError) -> DeviceEvent? {
        let (event, error): (DeviceEvent?, SourceError?) = state.withLock { state in
            state.fetched += 1
            let isStuck = stuck.load(ordering: .sequentiallyConsistent)
            if state.events.isEmpty, !isStuck { ready?.drain() }
            return (state.events.isEmpty ? nil : state.events.removeFirst(), state.error)
        }
        if let error { throw error }
        return event
    }
}

final class TestStream: FrameStream {
    let layout: FrameLayout
    let frameDuration: FrameDuration?
    let timestampSource = TimestampSource.endOfFrame
    let slots: [FrameSlot]
    private let pictures: [[UInt8]]
    let memory = FrameMemory.virtual
    private let owner: any SlotMemory
    private let timer: TimerDescriptor
    private let bench: TestBench
    private var queued: [FrameSlot]
    private var sequence: UInt64 = 0
    private var given: UInt64 = 0
    var descriptor: Int32 { timer.rawValue }

    static func description(_ format: FormatSelection, _ bench: TestBench) -> FormatDescription {
        let now = bench.now
        var description = FormatDescription(
            pixelFormat: now.pictures.isEmpty ? .yuyv : now.pictureFormat, dimensions: format.dimensions)
        description.color = now.color ?? description.color
        return description
    }

    static func layout(_ format: FormatSelection, _ bench: TestBench) -> FrameLayout {
        let pictures = bench.now.pictures
        let bytes = max(format.dimensions.area * 2, pictures.map(\.count).max() ?? 0)
        return FrameLayout(
            description(format, bench),
            planes: [
                PlaneLayout(
                    offset: 0, stride: pictures.isEmpty ? format.dimensions.width * 2 : 0,
                    bytes: pictures.isEmpty ? format.dimensions.area * 2 : bytes)
            ])
    }

    init(
        _ layout: FrameLayout, _ memory: any SlotMemory, _ duration: FrameDuration, _ bench: TestBench
    ) throws(SystemError) {
        self.layout = layout
        pictures = bench.now.pictures
        frameDuration = duration
        owner = memory
        slots = memory.slots.enumerated().map { FrameSlot(index: $0.offset, regions: [$0.element]) }
        for region in memory.slots { region.initializeMemory(as: UInt8.self, repeating: 128) }
        queued = []
        while let slot = memory.take() { queued.append(slots[slot]) }
        self.bench = bench
        timer = try TimerDescriptor()
        timer.arm(at: MonotonicClock.now() + duration.nanoseconds, every: duration.nanoseconds)
    }

    func dequeue() throws(SourceError) -> FrameSlot? {
        if let failure = bench.now.streamFailure { throw failure }
        let ticks = timer.drain()
        guard ticks > 0, !bench.now.isSilent else { return nil }
        sequence += ticks
        guard !queued.isEmpty else { return nil }
        let slot = queued.removeFirst()
        if pictures.isEmpty {
            paint(slot.regions[0])
            slot.regions[0].storeBytes(of: UInt32(truncatingIfNeeded: sequence), as: UInt32.self)
            slot.bytesUsed[0] = layout.totalBytes
        } else {
            let picture = pictures[Int(given % UInt64(pictures.count))]
            given += 1
            slot.regions[0].copyBytes(from: picture)
            slot.bytesUsed[0] = picture.count
        }
        slot.captureSequence = sequence
        slot.monotonicTime = MonotonicClock.now()
        slot.isCorrupt = bench.now.damagedFrames > 0
        let left = queued.count
        bench.set {
            if $0.damagedFrames > 0 { $0.damagedFrames -= 1 }
            $0.slotsOut += 1
            $0.leastQueued = min($0.leastQueued, left)
        }
        return slot
    }

    private func paint(_ picture: UnsafeMutableRawBufferPointer) {
        let now = bench.now
        guard !now.scene.isEmpty else { return }
        let width = layout.dimensions.width
        let line = (0..<width).map { now.luma($0 * now.scene.count / width) }
        for index in 0..<layout.dimensions.area { picture[2 * index] = line[index % width] }
    }

    func enqueue(_ slot: FrameSlot) throws(SourceError) {
        queued.append(slot)
        bench.set { $0.slotsOut -= 1 }
    }
}

extension TestBench {
    /// A camera whose exposure time can be set, and nothing else that makes it brighter.
    func setExposureTime(scene light: Double) {
        set {
            $0.scene = [light]
            $0.extra = [
                CaptureControl(
                    name: "exposure_time_absolute", title: "", id: 0x9A0902, type: .integer, minimum: 5, maximum: 1000,
                    defaultValue: 100)
            ]
            $0.meddled = ["exposure_time_absolute": .integer(100)]
        }
    }
}
