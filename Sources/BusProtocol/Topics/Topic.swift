/// What a published message is about, and what a subscription asks for.
///
/// A topic is a path of UTF-8 segments that ends in `/`, so that none is the beginning of another (`cam1` and `cam10`).
public enum Topic: Hashable, Sendable {
    /// On a device's media socket.
    case media(MediaTopic)
    /// On a microphone's media socket: how loud it is, ten times a second.
    case level(String)
    /// On the events socket: a value that lasts.
    case state(StateTopic)
    /// On the events socket: something that happened.
    case event(EventTopic)
    /// On every socket, once a second.
    case heartbeat
    /// On every socket: what a fresh connection gets first, if it subscribed to it before it connected.
    case welcome
    /// On every socket: published once when somebody subscribes to it; all earlier subscriptions of that connection are
    /// then in force.
    case ack(nonce: String)

    public enum StateTopic: Hashable, Sendable {
        case bus
        case device(String)
        case lock(String)
        case rig(String)
        case session(String)
        case movie(String)
        case take(String)
        /// By uid.
        case authorization(String)
    }

    public enum EventTopic: Hashable, Sendable {
        /// Its last word.
        case bus
        case device(String)
        case lock(String)
        case session(String)
        case movie(String)
        case take(String)
        /// By the uniqueID of its settings.
        case photo(String)
        /// By uid.
        case authorization(String)
    }

    /// Reads a complete topic.
    ///
    /// nil for everything else: a subscription to that is a prefix watch, which sees what others asked for and starts
    /// nothing.
    public static func parse(_ bytes: some Collection<UInt8>) -> Topic? {
        guard bytes.count <= BusLimits.maxTopicBytes, let text = String(validating: bytes, as: UTF8.self) else {
            return nil
        }
        var segments = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(
            Substring.init)
        guard segments.last == "" else { return nil }
        segments.removeLast()
        guard segments.allSatisfy({ !$0.isEmpty }) else { return nil }
        switch (segments.count, segments.first) {
        case (1, "heartbeat"): return .heartbeat
        case (1, "welcome"): return .welcome
        case (2, "ack"): return isNonce(segments[1].utf8) ? .ack(nonce: String(segments[1])) : nil
        case (2, "level"): return DeviceID.isValid(segments[1]) ? .level(String(segments[1])) : nil
        case (2, "state"): return segments[1] == "bus" ? .state(.bus) : nil
        case (2, "event"): return segments[1] == "bus" ? .event(.bus) : nil
        case (3, "state"): return stateTopic(segments[1], id: segments[2]).map(Topic.state)
        case (3, "event"): return eventTopic(segments[1], id: segments[2]).map(Topic.event)
        case (3, let first?):
            guard let kind = MediaTopic.Kind(rawValue: String(first)), DeviceID.isValid(segments[1]) else { return nil }
            return .media(MediaTopic(kind, device: String(segments[1]), renditionText: String(segments[2])))
        default: return nil
        }
    }

    /// True for what may stand in `ack/<nonce>/`: 1 to 64 of `[A-Za-z0-9_-]`.
    public static func isNonce(_ bytes: some Collection<UInt8>) -> Bool {
        (1...64).contains(bytes.count)
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"): true
                default: false
                }
            }
    }

    private static func stateTopic(_ kind: Substring, id: Substring) -> StateTopic? {
        guard DeviceID.isValid(id) else { return nil }
        switch kind {
        case "device": return .device(String(id))
        case "lock": return .lock(String(id))
        case "rig": return .rig(String(id))
        case "session": return .session(String(id))
        case "movie": return .movie(String(id))
        case "take": return .take(String(id))
        case "authorization": return .authorization(String(id))
        default: return nil
        }
    }

    private static func eventTopic(_ kind: Substring, id: Substring) -> EventTopic? {
        if kind == "photo" { return PhotoID.isValid(id) ? .photo(String(id)) : nil }
        guard DeviceID.isValid(id) else { return nil }
        switch kind {
        case "device": return .device(String(id))
        case "lock": return .lock(String(id))
        case "session": return .session(String(id))
        case "movie": return .movie(String(id))
        case "take": return .take(String(id))
        case "authorization": return .authorization(String(id))
        default: return nil
        }
    }
}

extension Topic {
    /// `frame/<device>/<rendition>/`
    public static func frame(_ device: String, _ rendition: String) -> Topic {
        .media(MediaTopic(.frame, device: device, renditionText: rendition))
    }

    /// The topic as it is written.
    public var text: String {
        switch self {
        case .media(let topic): topic.text
        case .level(let device): "level/\(device)/"
        case .state(.bus): "state/bus/"
        case .state(.device(let id)): "state/device/\(id)/"
        case .state(.lock(let id)): "state/lock/\(id)/"
        case .state(.rig(let name)): "state/rig/\(name)/"
        case .state(.session(let id)): "state/session/\(id)/"
        case .state(.movie(let id)): "state/movie/\(id)/"
        case .state(.take(let id)): "state/take/\(id)/"
        case .state(.authorization(let uid)): "state/authorization/\(uid)/"
        case .event(.bus): "event/bus/"
        case .event(.device(let id)): "event/device/\(id)/"
        case .event(.lock(let id)): "event/lock/\(id)/"
        case .event(.session(let id)): "event/session/\(id)/"
        case .event(.movie(let id)): "event/movie/\(id)/"
        case .event(.take(let id)): "event/take/\(id)/"
        case .event(.photo(let id)): "event/photo/\(id)/"
        case .event(.authorization(let uid)): "event/authorization/\(uid)/"
        case .heartbeat: "heartbeat/"
        case .welcome: "welcome/"
        case .ack(let nonce): "ack/\(nonce)/"
        }
    }

    /// The topic as the first frame of a message, and as what is subscribed to.
    public var bytes: [UInt8] { Array(text.utf8) }
}
