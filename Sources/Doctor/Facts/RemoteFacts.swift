/// The connection to a bus on another machine, as seen from here.
public struct RemoteFacts: Hashable, Sendable {
    /// What stands in the way; the words are findings' ids.
    public enum Problem: String, Hashable, Sendable, CaseIterable {
        /// The address, or what the variables say of the keys.
        case settings = "remote-settings"
        case name = "remote-name-unknown"
        case refused = "remote-refused"
        case silence = "remote-no-answer"
        case port = "remote-wrong-port"
        case serverKey = "remote-server-key"
        case key = "remote-key-not-let-in"
    }

    /// How both machines' clocks stand to one another.
    public struct Clock: Hashable, Sendable {
        /// Nanoseconds by which the other one's is ahead.
        public var offset: Int64
        /// Nanoseconds by which that may be wrong: the way there takes as long as the way back, or not.
        public var uncertainty: Int64
        /// Whether somebody keeps it there, and here.
        public var isKeptThere: Bool
        public var isKeptHere: Bool

        public init(offset: Int64, uncertainty: Int64, isKeptThere: Bool, isKeptHere: Bool) {
            self.offset = offset
            self.uncertainty = uncertainty
            self.isKeptThere = isKeptThere
            self.isKeptHere = isKeptHere
        }
    }

    /// `tcp://HOST:PORT`
    public var address: String
    public var host: String
    /// Our public key, where there is one.
    public var key: String?
    public var problem: Problem?
    /// What the problem means, in a sentence or two.
    public var meaning: String?
    /// What the gateway calls us, and what we may.
    public var name: String?
    public var role: String?
    /// The shortest time that a request and its answer took, nanoseconds.
    public var roundTrip: Int64?
    /// nil: the bus doesn't tell its time.
    public var clock: Clock?
    /// Those of the gateway's other ports that nobody takes connections at.
    public var closedPorts: [Int] = []

    public init(address: String, host: String) {
        self.address = address
        self.host = host
    }

    /// A command for the machine over there, as it is typed here.
    func there(_ command: String) -> String { "ssh -t \(host.shellWord) \(command.shellWord)" }
}
