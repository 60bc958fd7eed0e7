import BusProtocol
import JSON

/// What the subscribers of a microphone's media socket ask for: its sound, its level, and what is refused.
struct SoundSubscriptions {
    typealias Subscribed = SubscriptionTable.Subscribed
    typealias Change = SubscriptionTable.Change

    private let device: String
    private let maximumTopics: Int
    private var refusals: [Subscribed: BusError] = [:]
    /// The topic of its own sound, while somebody wants it.
    private(set) var sound: Subscribed?
    /// The topic of its level, likewise.
    private(set) var level: Subscribed?
    /// Subscriptions that were ignored because there are too many.
    private(set) var ignored: UInt64 = 0

    /// - Parameter maximumTopics: distinct topics that are remembered.
    init(device: String, maximumTopics: Int = 4096) {
        self.device = device
        self.maximumTopics = maximumTopics
    }

    var isEmpty: Bool { sound == nil && level == nil }

    /// All topics that somebody gets sound or levels on.
    var wanted: [Subscribed] { [sound, level].compactMap(\.self) }

    /// Topics that are remembered.
    var count: Int { wanted.count + refusals.count }

    /// Topics that get an error instead.
    var refused: [ErrorTeller.Refusal] { refusals.map { ($0.key, $0.value) } }

    /// Why the topic gets an error, if so.
    func refusal(of bytes: [UInt8]) -> ErrorTeller.Refusal? {
        refusals.first { $0.key.topic == bytes }.map { ($0.key, $0.value) }
    }

    /// Somebody has subscribed, perhaps not as the first one.
    mutating func subscribe(_ bytes: [UInt8]) -> Change {
        switch Topic.parse(bytes) {
        case .ack: return .acknowledge(bytes)
        case .level(let name) where name == device:
            guard level == nil else { return .none }
            level = Subscribed(topic: bytes, text: "", kind: .audio)
            return .wanted
        case .media(let topic) where topic.device == device:
            return add(Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind), topic)
        default: return .none
        }
    }

    /// The last subscriber of the topic has gone.
    mutating func unsubscribe(_ bytes: [UInt8]) -> Change {
        if level?.topic == bytes {
            level = nil
            return .wanted
        }
        if sound?.topic == bytes {
            sound = nil
            return .wanted
        }
        guard let refused = refusals.keys.first(where: { $0.topic == bytes }) else { return .none }
        refusals[refused] = nil
        return .forgotten
    }

    private mutating func add(_ subscribed: Subscribed, _ topic: MediaTopic) -> Change {
        guard refusals[subscribed] == nil, sound != subscribed else { return .none }
        guard count < maximumTopics else {
            ignored += 1
            return .none
        }
        do throws(BusError) {
            try check(topic)
            sound = subscribed
            return .wanted
        } catch {
            refusals[subscribed] = error
            return .refused(subscribed, error)
        }
    }

    private func check(_ topic: MediaTopic) throws(BusError) {
        guard topic.kind == .audio else {
            throw BusError(
                .formatUnsupported,
                "\(device) is a microphone and has no pictures; subscribe to audio/\(device)/native/.",
                ["nearest": .null])
        }
        let rendition = try topic.soundRendition()
        guard rendition.encoding == .native else {
            throw BusError(
                .formatUnsupported,
                "Sound comes as the microphone is set, and in no other form yet: subscribe to audio/\(device)/native/, "
                    + "and set its activeFormat with device.configure.", ["nearest": "native"])
        }
    }
}
