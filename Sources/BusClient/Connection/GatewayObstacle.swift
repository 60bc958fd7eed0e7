/// What stands between a client and the bus behind a gateway.
public enum GatewayObstacle: Hashable, Sendable {
    /// The name has no address; the resolver's words.
    case noAddress(String)
    /// Nobody listens at that port.
    case refused
    /// The kernel can't connect for another reason; its words.
    case noConnection(String)
    /// No answer has come to the attempt to connect.
    case noAnswer
    /// Somebody takes connections, and says nothing.
    case silent
    /// Connections are ended as soon as they are there.
    case closedAtOnce
    /// What listens there speaks something else.
    case noGateway
    /// We are let in, and a request is not answered.
    case noReply
    /// It is a gateway's port of events, the one behind that of requests.
    case eventsPort
    /// The gateway has another key than the one by which it was to be known.
    case wrongServerKey
    /// It has the key by which it was to be known, and does not let us in: it doesn't know this key of ours, or hasn't come to looking whether it
    /// does. Who isn't known is left without an answer, so that one can't be told from the other.
    case notLetIn(key: String)

    /// It doesn't change by waiting, also for who was connected before: keys have to be changed.
    var isAboutKeys: Bool {
        switch self {
        case .wrongServerKey: true
        default: false
        }
    }

    /// It is only sure when it is seen again.
    var isDoubtful: Bool { if case .notLetIn = self { true } else { false } }

    /// For who was never connected: what is there won't answer, or nobody is.
    var isFinal: Bool {
        switch self {
        case .noAnswer, .silent, .noReply, .notLetIn: false
        default: true
        }
    }

    /// One sentence or two, that tell a person what to do.
    ///
    /// - Parameter address: of the gateway.
    public func sentence(_ address: String) -> String {
        switch self {
        case .noAddress(let why): "The host of \(address) is not known here: \(why)."
        case .refused:
            "\(address): Connection refused. No gateway listens there: on that machine 'systemctl status camerabus-gateway' says why, "
                + "and [tcp] in its gateway.toml where it listens."
        case .noConnection(let why): "\(address): \(why)."
        case .noAnswer:
            "Nothing answers at \(address). A firewall may be between: three ports are needed, that one and the two after it."
        case .silent: "What listens at \(address) says nothing: it hangs, or is no gateway."
        case .closedAtOnce:
            "What listens at \(address) ends connections at once: it is no gateway's port for requests, or has too many connections already."
        case .noGateway:
            "What listens at \(address) is no gateway's port for requests, which is 7350 unless its gateway.toml says another."
        case .noReply:
            "The gateway at \(address) lets us in and does not answer: the bus behind it is away, or this is its port of pictures, the second one behind that of requests."
        case .eventsPort:
            "\(address) is the gateway's port of events. Named is the one before it, that of requests."
        case .wrongServerKey:
            "The gateway at \(address) has another key than the one that it is known by here ($CAMERABUS_SERVER_KEY): 'camerabus keys server' "
                + "there prints its own. If that has not been changed, somebody is in between."
        case .notLetIn(let key):
            "The gateway at \(address) did not let this program in: its key is not, or no more, among those that 'camerabus keys' lists there, "
                + "or the gateway is too busy to look. The key is '\(key)'."
        }
    }
}
