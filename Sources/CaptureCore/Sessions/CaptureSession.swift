public import BusProtocol
import JSON

/// A client's wish for pictures: inputs and outputs, joined by connections, at a preset (AVFoundation's
/// `AVCaptureSession`).
///
/// A value. What may be changed, and why not, is decided here; whether its devices can serve it beside others', by
/// ``Arbiter``.
public struct CaptureSession: Hashable, Sendable {
    public static let maximumInputs = 8
    public static let maximumOutputs = 16
    public static let priorities = -1000...1000

    public let id: String
    /// What it is for; for people.
    public var name: String?
    public let owner: LockHolder
    /// It outlives its process.
    public let isDetached: Bool
    /// A digest of the request that it was made by, by which the same request finds it after a restart; nil: it had no
    /// key.
    public let request: String?
    /// When it was made: of two with the same priority the older one counts for more.
    public let since: Instant
    public internal(set) var preset: SessionPreset
    /// The higher one gets its wish where two can't both.
    public internal(set) var priority: Int
    public internal(set) var inputs: [SessionInput]
    public internal(set) var outputs: [SessionOutput]
    /// One for each input and output that go together, in the order of the outputs.
    public internal(set) var connections: [SessionConnection]
    public var run = SessionRun()
    /// The public id of the lock under which its client lets it set devices.
    public var lockID: String?

    public init(
        id: String, name: String? = nil, owner: LockHolder, isDetached: Bool = false, since: Instant,
        preset: SessionPreset = .high, priority: Int = 0, request: String? = nil
    ) {
        self.id = id
        self.name = name
        self.owner = owner
        self.isDetached = isDetached
        self.since = since
        self.preset = preset
        self.priority = priority
        self.request = request
        inputs = []
        outputs = []
        connections = []
    }

    /// The one that is a camera, where there is just one.
    public var camera: SessionInput? {
        let cameras = inputs.filter { $0.mediaType == .video }
        return cameras.count == 1 ? cameras.first : nil
    }

    public func input(_ device: String) -> SessionInput? { inputs.first { $0.device == device } }
    public func output(_ id: String) -> SessionOutput? { outputs.first { $0.id == id } }

    /// The connections of an output.
    public func connections(of output: String) -> [SessionConnection] { connections.filter { $0.output == output } }

    /// Lets its user and administrators do something with it.
    ///
    /// - Throws: `unauthorized` {status, needed, owner, session}.
    public func check(_ editor: Editor, to verb: String = "change it") throws(BusError) {
        try editor.check(
            "The session \(id)", of: owner.uid, named: owner.name, to: verb, ["session": .string(id)])
    }

    /// Lets administrators alone raise the priority above 0, or above what one of them has set.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    public func check(_ editor: Editor, priority wanted: Int) throws(BusError) {
        guard !editor.isAdmin, wanted > max(0, priority) else { return }
        throw BusError(
            .unauthorized,
            "A session with priority \(wanted) takes cameras from the sessions of others, so only administrators may "
                + "set it. Use 0 or less, or ask one to set it.",
            ["status": "denied", "needed": "admin"])
    }

    /// Whether who asks now is who it was made for.
    public func isOf(_ holder: LockHolder) -> Bool {
        guard owner.uid == holder.uid else { return false }
        return isDetached || (owner.pid > 0 && owner.pid == holder.pid && owner.startTime == holder.startTime)
    }

    /// The connections follow inputs and outputs: those that stay keep what was set.
    mutating func join() {
        let before = connections
        connections = outputs.flatMap { output in
            inputs.filter { output.kind.mediaTypes.contains($0.mediaType) }.map { input in
                before.first { $0.input == input.device && $0.output == output.id }
                    ?? SessionConnection(
                        input: input.device, output: output.id, videoMirrored: output.kind == .preview ? .auto : .off)
            }
        }
    }

    /// Gives devices other names, all at once.
    ///
    /// - Returns: whether it has any of them.
    public mutating func rename(_ names: [String: String]) -> Bool {
        guard inputs.contains(where: { names[$0.device] != nil }) else { return false }
        for index in inputs.indices { inputs[index].device = names[inputs[index].device] ?? inputs[index].device }
        for index in connections.indices {
            connections[index].input = names[connections[index].input] ?? connections[index].input
        }
        return true
    }
}
