/// Puts frames of several devices together that were taken at the same time.
///
/// The first device leads: each of its frames makes one set, in their order. Every frame of another device belongs to
/// the lead frame that is nearest to it in time; of those that belong to one, and lie within the tolerance, the nearest
/// is taken, so that no frame is ever in two sets. A set goes out when nothing nearer can come any more, or when its
/// lead has waited long enough: then without those that are missing. A frame that comes after its set goes out by
/// itself, late, if the set lacks that device. All else is left out, and counted.
///
/// A value with no clock of its own; what it holds is bounded in frames and in bytes.
public struct FrameMatcher<Content> {
    public struct Options: Hashable, Sendable {
        /// How far from the lead a frame may be, nanoseconds; nil: half of the lead's interval.
        public var tolerance: Int64?
        /// How long a lead frame waits for the others at most, nanoseconds; nil: twice the lead's interval, but 20 ms
        /// to 1 s.
        public var patience: Int64?
        /// Frames that are held of one device.
        public var capacity = 16
        /// Bytes that are held in all; beyond, the oldest lead waits no longer.
        public var maximumBytes = 256 << 20

        public init(tolerance: Int64? = nil, patience: Int64? = nil) {
            self.tolerance = tolerance
            self.patience = patience
        }
    }

    public struct Frame {
        public var content: Content
        /// CLOCK_MONOTONIC, nanoseconds.
        public var time: Int64
        /// How many frames of its stream it is after the one before: those between were lost on the way.
        public var step: Int64
        /// How much memory holding it costs.
        public var bytes: Int

        public init(_ content: Content, time: Int64, step: Int64 = 1, bytes: Int = 0) {
            self.content = content
            self.time = time
            self.step = step
            self.bytes = bytes
        }
    }

    /// Frames of one time.
    public struct FrameSet {
        /// Counts the sets, from 0, without a hole.
        public var sequence: UInt64
        /// One for each device, in their order; nil: it is missing. The lead's never is.
        public var frames: [Frame?]
        /// The lead's.
        public var time: Int64
        /// The tolerance that counted, nanoseconds.
        public var tolerance: Int64

        /// From the earliest to the latest, nanoseconds.
        public var spread: Int64 {
            let times = frames.lazy.compactMap { $0?.time }
            return (times.max() ?? time) - (times.min() ?? time)
        }
    }

    /// A frame that came after its set.
    public struct LateFrame {
        /// The device's place.
        public var device: Int
        public var frame: Frame
        /// The sequence of the set that lacks it, and its lead's time.
        public var set: UInt64
        public var time: Int64
        /// The tolerance that counted, nanoseconds.
        public var tolerance: Int64
    }

    public enum Output {
        case set(FrameSet)
        case late(LateFrame)
    }

    /// A set that went out, as long as something can come late for it.
    private struct Gone {
        var sequence: UInt64
        var time: Int64
        var lower: Int64
        var upper: Int64
        var tolerance: Int64
        /// A bit for each device that is missing.
        var missing: UInt64
    }

    /// Devices that one can match.
    public static var maximumDevices: Int { 64 }
    /// Sets that are remembered for late frames.
    static var remembered: Int { 256 }
    /// Times beyond are no times; sums of what is below can't overflow.
    static var times: Range<Int64> { 0..<(1 << 60) }
    /// Before so many are known, the interval is no longer than ``firstInterval``.
    static var enoughIntervals: Int { 3 }
    /// The lead's interval before two of its frames have come: as at 30 a second.
    static var firstInterval: Int64 { FrameDuration.usual.nanoseconds }

    public let devices: Int
    /// May be changed at any time.
    public var options: Options
    /// Frames left out so far, by device: nothing to match them with, or no room.
    public private(set) var dropped: [UInt64]
    /// Frames that went out late so far, by device.
    public private(set) var late: [UInt64]

    /// The time between the lead's frames, nanoseconds: of the last ones one that only a quarter is shorter than, as a
    /// frame that its camera left out makes one longer.
    public private(set) var interval: Int64
    private var queues: [[Frame]]
    private var newest: [Int64?]
    private var absent: [Bool]
    /// Until when each waiting lead frame waits.
    private var deadlines: [Instant] = []
    private var lastLead: Int64?
    private var gone: [Gone] = []
    private var intervals: [Int64] = []
    private var nextSequence: UInt64 = 0
    private var heldBytes = 0

    /// - Parameter devices: 1 to ``maximumDevices``; what lies beyond is brought within.
    public init(devices: Int, options: Options = Options()) {
        let devices = min(max(1, devices), Self.maximumDevices)
        self.devices = devices
        self.options = options
        interval = Self.firstInterval
        dropped = Array(repeating: 0, count: devices)
        late = Array(repeating: 0, count: devices)
        queues = Array(repeating: [], count: devices)
        newest = Array(repeating: nil, count: devices)
        absent = Array(repeating: false, count: devices)
    }

    /// Frames that are held now.
    public var held: Int { queues.reduce(0) { $0 + $1.count } }

    /// When ``advance(to:)`` has something to do, unless a frame comes before.
    public var nextDeadline: Instant? { deadlines.first }

    /// Takes a frame of the device at that place, and says what goes out now, in this order.
    public mutating func receive(_ frame: Frame, of device: Int, at now: Instant) -> [Output] {
        guard queues.indices.contains(device) else { return [] }
        absent[device] = false
        guard Self.times.contains(frame.time), frame.time > newest[device] ?? -1 else {
            dropped[device] += 1
            return []
        }
        let before = newest[device]
        newest[device] = frame.time
        var outputs: [Output] = []
        if device == 0 {
            if let before { learn((frame.time - before) / max(1, frame.step)) }
            if queues[0].count >= options.capacity { outputs.append(.set(emit())) }
            deadlines.append(now + patience)
            hold(frame, of: 0)
        } else if frame.time < pastBefore {
            if let late = takeLate(frame, of: device) { outputs.append(.late(late)) }
        } else {
            if queues[device].count >= options.capacity { leaveOut(1, of: device) }
            hold(frame, of: device)
        }
        settle(at: now, into: &outputs)
        relieve(into: &outputs)
        forget()
        return outputs
    }

    /// Sends out those that have waited long enough.
    public mutating func advance(to now: Instant) -> [Output] {
        var outputs: [Output] = []
        settle(at: now, into: &outputs)
        forget()
        return outputs
    }

    /// Nobody waits for a device that is known to give no frames, until it does. While that is the lead, only the
    /// newest frames of the others are held, which its next one may belong to.
    public mutating func setAbsent(_ device: Int, at now: Instant) -> [Output] {
        guard absent.indices.contains(device), !absent[device] else { return [] }
        absent[device] = true
        return advance(to: now)
    }

    /// A device's times begin anew: what was before them says nothing of what comes.
    public mutating func restart(_ device: Int) {
        guard queues.indices.contains(device) else { return }
        leaveOut(queues[device].count, of: device)
        newest[device] = nil
        guard device == 0 else { return }
        deadlines = []
        intervals = []
        interval = Self.firstInterval
        lastLead = nil
        gone = []
    }

    // MARK: Matching

    private var tolerance: Int64 { min(max(0, options.tolerance ?? interval / 2), RigTable.maximumTolerance) }

    private var patience: Int64 {
        if let patience = options.patience { return min(max(0, patience), 60_000_000_000) }
        return min(max(20_000_000, 2 * min(interval, 1_000_000_000)), 1_000_000_000)
    }

    private mutating func learn(_ last: Int64) {
        intervals.append(last)
        if intervals.count > 9 { intervals.removeFirst() }
        let typical = intervals.sorted()[intervals.count / 4]
        interval = intervals.count < Self.enoughIntervals ? min(typical, Self.firstInterval) : typical
    }

    private static func middle(_ first: Int64, _ second: Int64) -> Int64 { first + (second - first) / 2 }

    /// What belongs to the first lead frame that waits: nearer to it than to the one before and to the one after.
    private var cell: (lower: Int64, upper: Int64) {
        guard let lead = queues[0].first else { return (0, 0) }
        let lower = lastLead.map { Self.middle($0, lead.time) } ?? 0
        let upper = queues[0].count > 1 ? Self.middle(lead.time, queues[0][1].time) : lead.time + interval / 2
        return (lower, max(upper, lead.time + 1))
    }

    /// What is before this belongs to sets that went out.
    private var pastBefore: Int64 {
        guard let lastLead else { return 0 }
        return queues[0].first.map { Self.middle(lastLead, $0.time) } ?? lastLead + interval / 2
    }

    private func best(of device: Int, for time: Int64, in cell: (lower: Int64, upper: Int64)) -> Int? {
        var best: (index: Int, distance: Int64)?
        for (index, frame) in queues[device].enumerated() where frame.time >= cell.lower && frame.time < cell.upper {
            let distance = abs(frame.time - time)
            if distance <= tolerance, distance < best?.distance ?? .max { best = (index, distance) }
        }
        return best?.index
    }

    /// Nothing that is still to come from the device could be nearer.
    private func isDecided(_ device: Int, for time: Int64, in cell: (lower: Int64, upper: Int64)) -> Bool {
        if absent[device] { return true }
        guard let newest = newest[device] else { return false }
        let distance = best(of: device, for: time, in: cell).map { abs(queues[device][$0].time - time) } ?? tolerance
        return newest >= min(time + distance, cell.upper)
    }

    private mutating func settle(at now: Instant, into outputs: inout [Output]) {
        while let lead = queues[0].first, let deadline = deadlines.first {
            let cell = cell
            guard now >= deadline || (1..<devices).allSatisfy({ isDecided($0, for: lead.time, in: cell) }) else {
                return
            }
            outputs.append(.set(emit()))
        }
    }

    /// Sends out the first lead frame's set as it is.
    private mutating func emit() -> FrameSet {
        let (cell, tolerance) = (cell, tolerance)
        var frames: [Frame?] = []
        frames.reserveCapacity(devices)
        let lead = take(0, of: 0)
        deadlines.removeFirst()
        frames.append(lead)
        var missing: UInt64 = 0
        for device in 1..<max(1, devices) {
            if let index = best(of: device, for: lead.time, in: cell) {
                // What is older than what was taken can't be nearer to a later lead.
                leaveOut(index, of: device)
                frames.append(take(0, of: device))
            } else {
                leaveOut(queues[device].prefix { $0.time <= lead.time }.count, of: device)
                frames.append(nil)
                missing |= 1 << UInt64(device)
            }
        }
        if missing != 0 {
            gone.append(
                Gone(
                    sequence: nextSequence, time: lead.time, lower: cell.lower, upper: cell.upper,
                    tolerance: tolerance, missing: missing))
            if gone.count > Self.remembered { gone.removeFirst() }
        }
        lastLead = lead.time
        defer { nextSequence += 1 }
        return FrameSet(sequence: nextSequence, frames: frames, time: lead.time, tolerance: tolerance)
    }

    private mutating func takeLate(_ frame: Frame, of device: Int) -> LateFrame? {
        let bit: UInt64 = 1 << UInt64(device)
        let index = gone.lastIndex { set in
            set.missing & bit != 0 && frame.time >= set.lower && frame.time < set.upper
                && abs(frame.time - set.time) <= set.tolerance
        }
        guard let index else {
            dropped[device] += 1
            return nil
        }
        gone[index].missing &= ~bit
        late[device] += 1
        let set = gone[index]
        return LateFrame(device: device, frame: frame, set: set.sequence, time: set.time, tolerance: set.tolerance)
    }

    // MARK: Holding

    private mutating func hold(_ frame: Frame, of device: Int) {
        queues[device].append(frame)
        heldBytes += frame.bytes
    }

    private mutating func take(_ index: Int, of device: Int) -> Frame {
        let frame = queues[device].remove(at: index)
        heldBytes -= frame.bytes
        return frame
    }

    private mutating func leaveOut(_ count: Int, of device: Int) {
        for frame in queues[device].prefix(count) { heldBytes -= frame.bytes }
        queues[device].removeFirst(min(count, queues[device].count))
        dropped[device] += UInt64(count)
    }

    private mutating func forget() {
        guard absent[0], queues[0].isEmpty else { return }
        for device in 1..<max(1, devices) {
            let oldest = absent[device] ? .max : (newest[device] ?? 0) - 2 * interval
            leaveOut(queues[device].prefix { $0.time < oldest }.count, of: device)
        }
    }

    private mutating func relieve(into outputs: inout [Output]) {
        while heldBytes > options.maximumBytes {
            if !queues[0].isEmpty {
                outputs.append(.set(emit()))
            } else if let longest = (1..<max(1, devices)).max(by: { queues[$0].count < queues[$1].count }),
                !queues[longest].isEmpty
            {
                leaveOut(1, of: longest)
            } else {
                return
            }
        }
    }
}

extension FrameMatcher: Sendable where Content: Sendable {}
extension FrameMatcher.Frame: Sendable where Content: Sendable {}
extension FrameMatcher.FrameSet: Sendable where Content: Sendable {}
extension FrameMatcher.LateFrame: Sendable where Content: Sendable {}
extension FrameMatcher.Output: Sendable where Content: Sendable {}
