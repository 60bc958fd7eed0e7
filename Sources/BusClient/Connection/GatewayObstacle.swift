/// The obstacle between a client and the bus behind a gateway.
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
    /// It has the key by which it was to be known, and does not let us in: it doesn't know this key of ours, or hasn't
    /// come to looking whether it does. Who isn't known is left without an answer, so that one can't be told from the
    /// other.
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
        case .noAddress(let why): "The host of \(address) is unknown: \(why)."
        case .refused:
            "\(address): Connection refused. No gateway listens there. On that machine, 'systemctl status "
                + "camerabus-gateway' "
                + "shows its state, and [tcp] in gateway.toml sets its address."
        case .noConnection(let why): "\(address): \(why)."
        case .noAnswer:
            "Nothing answers at \(address). Check the firewall: it must allow three ports, this one and the next two."
        case .silent: "The server at \(address) does not respond: it hangs, or is not a gateway."
        case .closedAtOnce:
            "The server at \(address) closes connections at once: it is not the request port of a gateway, "
                + "or it has too many connections."
        case .noGateway:
            "The server at \(address) is not the request port of a gateway. "
                + "The request port is 7350 by default; gateway.toml there can change it."
        case .noReply:
            "The gateway at \(address) accepts this client but does not answer: its bus does not run, or this is its "
                + "media port "
                + "(the request port plus 2)."
        case .eventsPort:
            "\(address) is the event port of the gateway. Use the port before it, the request port."
        case .wrongServerKey:
            "The key of the gateway at \(address) differs from $CAMERABUS_SERVER_KEY. Compare with 'camerabus keys "
                + "server' there. "
                + "If the key was not changed, somebody may intercept the connection."
        case .notLetIn(let key):
            "The gateway at \(address) refused this program: 'camerabus keys' there does not list its key, "
                + "or the gateway is too busy. The key is '\(key)'."
        }
    }
}
