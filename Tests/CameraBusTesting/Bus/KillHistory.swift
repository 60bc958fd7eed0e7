/// What clients saw of a bus whose coordinator is killed again and again: who held what, what was answered, which
/// frames came.
///
/// Times are nanoseconds of CLOCK_MONOTONIC, so that several processes can write one history.
public struct KillHistory: Sendable {
    /// A lock, for the time in which it was held for certain: from when its holder had the token in hand until just
    /// before it let go of it, was killed, or the lease could have run out.
    public struct Hold: Sendable, Hashable {
        public var client: String
        public var devices: [String]
        /// Of the token, or the token.
        public var token: String
        public var fence: UInt64
        /// When the lock was asked for.
        public var asked: Int64
        public var from: Int64
        public var until: Int64

        public init(
            client: String, devices: [String], token: String, fence: UInt64, asked: Int64, from: Int64, until: Int64
        ) {
            self.client = client
            self.devices = devices
            self.token = token
            self.fence = fence
            self.asked = asked
            self.from = from
            self.until = until
        }
    }

    /// A request under a lock's token, and whether the bus took the token.
    public struct Proof: Sendable, Hashable {
        public var token: String
        public var sent: Int64
        public var answered: Int64
        /// False: `lockLost`.
        public var isHeld: Bool

        public init(token: String, sent: Int64, answered: Int64, isHeld: Bool) {
            self.token = token
            self.sent = sent
            self.answered = answered
            self.isHeld = isHeld
        }
    }

    /// A change of one control on one device, or the same on several in one batch.
    public struct Commit: Sendable, Hashable {
        public var devices: [String]
        public var value: Int64
        public var sent: Int64
        /// nil: no answer came, and whether it was made is not known.
        public var answered: Int64?
        /// By device; empty without an answer.
        public var generations: [String: UInt64]

        public init(
            devices: [String], value: Int64, sent: Int64, answered: Int64? = nil, generations: [String: UInt64] = [:]
        ) {
            self.devices = devices
            self.value = value
            self.sent = sent
            self.answered = answered
            self.generations = generations
        }
    }

    /// What a device had.
    public struct Reading: Sendable, Hashable {
        public var device: String
        public var value: Int64
        public var generation: UInt64
        public var from: Int64
        public var until: Int64

        public init(device: String, value: Int64, generation: UInt64, from: Int64, until: Int64) {
            self.device = device
            self.value = value
            self.generation = generation
            self.from = from
            self.until = until
        }
    }

    /// What two devices had that are only ever set together, read under a lock on both.
    public struct PairReading: Sendable, Hashable {
        public var client: String
        public var values: [Int64]
        public var time: Int64

        public init(client: String, values: [Int64], time: Int64) {
            self.client = client
            self.values = values
            self.time = time
        }
    }

    /// A wait that no lock came of, though nobody holds one for nearly that long.
    public struct VainWait: Sendable, Hashable {
        public var client: String
        public var devices: [String]
        public var asked: Int64
        public var answered: Int64

        public init(client: String, devices: [String], asked: Int64, answered: Int64) {
            self.client = client
            self.devices = devices
            self.asked = asked
            self.answered = answered
        }
    }

    /// A frame, in the order in which its subscriber got it.
    public struct Frame: Sendable, Hashable {
        public var device: String
        public var stream: String
        public var captureSequence: UInt64
        /// The topic's own count.
        public var sequence: UInt64
        /// When it came.
        public var time: Int64

        public init(device: String, stream: String, captureSequence: UInt64, sequence: UInt64, time: Int64) {
            self.device = device
            self.stream = stream
            self.captureSequence = captureSequence
            self.sequence = sequence
            self.time = time
        }
    }

    /// A time in which the machine ran nobody, as a thread saw that only wakes, looks at the clock and sleeps again.
    public struct Stall: Sendable, Hashable {
        public var from: Int64
        public var until: Int64

        public init(from: Int64, until: Int64) {
            self.from = from
            self.until = until
        }
    }

    public var holds: [Hold] = []
    public var proofs: [Proof] = []
    public var commits: [Commit] = []
    public var readings: [Reading] = []
    public var pairs: [PairReading] = []
    public var vainWaits: [VainWait] = []
    public var frames: [Frame] = []
    public var stalls: [Stall] = []
    /// The epochs that clients saw, in the order in which the coordinators were started.
    public var epochs: [String] = []
    /// Errors that nothing of this explains.
    public var surprises: [String] = []

    public init() {}

    public mutating func merge(_ other: KillHistory) {
        holds += other.holds
        proofs += other.proofs
        commits += other.commits
        readings += other.readings
        pairs += other.pairs
        vainWaits += other.vainWaits
        frames += other.frames
        stalls += other.stalls
        epochs += other.epochs
        surprises += other.surprises
    }
}
