import CZeroMQ
import Glibc

/// A ZeroMQ socket. Not thread-safe: it belongs to the thread that uses it.
public final class Socket {
    public enum Kind: Int32, Sendable {
        case pair = 0
        case publish = 1
        case subscribe = 2
        case request = 3
        case reply = 4
        case dealer = 5
        case router = 6
        case extendedPublish = 9
        case extendedSubscribe = 10
    }

    /// Options with a number as value, by libzmq's names.
    public struct Option: Sendable {
        let number: Int32
        let name: String

        public static let sendHighWaterMark = Option(number: ZMQ_SNDHWM, name: "ZMQ_SNDHWM")
        public static let receiveHighWaterMark = Option(number: ZMQ_RCVHWM, name: "ZMQ_RCVHWM")
        public static let linger = Option(number: ZMQ_LINGER, name: "ZMQ_LINGER")
        public static let handshakeInterval = Option(number: ZMQ_HANDSHAKE_IVL, name: "ZMQ_HANDSHAKE_IVL")
        public static let reconnectInterval = Option(number: ZMQ_RECONNECT_IVL, name: "ZMQ_RECONNECT_IVL")
        public static let reconnectIntervalMaximum = Option(
            number: ZMQ_RECONNECT_IVL_MAX, name: "ZMQ_RECONNECT_IVL_MAX")
        public static let useDescriptor = Option(number: ZMQ_USE_FD, name: "ZMQ_USE_FD")
        public static let routerMandatory = Option(number: ZMQ_ROUTER_MANDATORY, name: "ZMQ_ROUTER_MANDATORY")
        public static let xpubVerboser = Option(number: ZMQ_XPUB_VERBOSER, name: "ZMQ_XPUB_VERBOSER")
        public static let immediate = Option(number: ZMQ_IMMEDIATE, name: "ZMQ_IMMEDIATE")
        public static let heartbeatInterval = Option(number: ZMQ_HEARTBEAT_IVL, name: "ZMQ_HEARTBEAT_IVL")
        public static let heartbeatTimeout = Option(number: ZMQ_HEARTBEAT_TIMEOUT, name: "ZMQ_HEARTBEAT_TIMEOUT")
        public static let sendBuffer = Option(number: ZMQ_SNDBUF, name: "ZMQ_SNDBUF")
        public static let ipv6 = Option(number: ZMQ_IPV6, name: "ZMQ_IPV6")
        /// Milliseconds after which what a TCP peer does not acknowledge ends its connection.
        public static let tcpMaximumRetransmission = Option(number: ZMQ_TCP_MAXRT, name: "ZMQ_TCP_MAXRT")
    }

    private let handle: UnsafeMutableRawPointer
    private let context: Context
    private var isMonitored = false
    private var reader = czeromq_reader()
    /// Whether it may have become readable in a way that its descriptor doesn't tell: it has been used since it was
    /// last asked.
    @exclusivity(unchecked) var isUnsettled = true

    // Any use may take notice of what has come, and with it the descriptor's word of it.
    private var pointer: UnsafeMutableRawPointer {
        isUnsettled = true
        return handle
    }

    public init(_ context: Context, _ kind: Kind) throws(ZeroMQError) {
        guard let pointer = zmq_socket(context.pointer, kind.rawValue) else { throw ZeroMQError("zmq_socket") }
        self.context = context
        handle = pointer
        try set(.linger, 0)
    }

    deinit {
        stopMonitor()
        zmq_close(handle)
    }

    public func set(_ option: Option, _ value: Int) throws(ZeroMQError) {
        var number = Int32(clamping: value)
        guard zmq_setsockopt(pointer, option.number, &number, 4) == 0 else {
            throw ZeroMQError("zmq_setsockopt", option.name)
        }
    }

    /// The largest frame that is taken, in bytes; a peer that sends a larger one is disconnected (`ZMQ_MAXMSGSIZE`).
    public func setMaximumMessageBytes(_ bytes: Int) throws(ZeroMQError) {
        var number = Int64(bytes)
        guard zmq_setsockopt(pointer, ZMQ_MAXMSGSIZE, &number, 8) == 0 else {
            throw ZeroMQError("zmq_setsockopt", "ZMQ_MAXMSGSIZE")
        }
    }

    /// Bounds what peers send to the listening socket of this one (XPUB or ROUTER), until it has been received here:
    /// see ``ConnectionCut/Excess``. Who sends more is disconnected. libzmq itself holds endless messages, and an XPUB
    /// any number of them. Before the listening socket is handed over; not with CURVE, which hides messages.
    ///
    /// - Parameter bytes: of a message, with 1 KiB for each frame, and 16 KiB for each one of more than 33 bytes but
    ///   the first of them.
    public func limitMessages(of listener: Int32, to bytes: Int, kind: Kind) {
        czeromq_limit_messages(listener, Int64(bytes), kind == .extendedPublish ? 1 : 0, &reader)
    }

    /// With a domain, each connection is put before the ZAP handler of the context, also on ipc (`ZMQ_ZAP_DOMAIN`).
    public func setAuthenticationDomain(_ domain: String) throws(ZeroMQError) {
        try set(ZMQ_ZAP_DOMAIN, "ZMQ_ZAP_DOMAIN", Array(domain.utf8))
    }

    /// Takes encrypted connections only, of peers that have a key (`ZMQ_CURVE_SERVER`): the ZAP handler says which.
    /// Before ``bind(_:)``.
    public func setCurveServer(_ secretKey: CurveKey) throws(ZeroMQError) {
        try set(Option(number: ZMQ_CURVE_SERVER, name: "ZMQ_CURVE_SERVER"), 1)
        try set(ZMQ_CURVE_SECRETKEY, "ZMQ_CURVE_SECRETKEY", Array(secretKey.text.utf8) + [0])
    }

    /// Connects encrypted, to the server of that key alone, as who has this pair (`ZMQ_CURVE_SERVERKEY`). Before
    /// ``connect(_:)``.
    public func setCurveClient(server: CurveKey, own pair: CurveKeyPair) throws(ZeroMQError) {
        try set(ZMQ_CURVE_SERVERKEY, "ZMQ_CURVE_SERVERKEY", Array(server.text.utf8) + [0])
        try set(ZMQ_CURVE_PUBLICKEY, "ZMQ_CURVE_PUBLICKEY", Array(pair.publicKey.text.utf8) + [0])
        try set(ZMQ_CURVE_SECRETKEY, "ZMQ_CURVE_SECRETKEY", Array(pair.secretKey.text.utf8) + [0])
    }

    /// What each new subscriber gets first (`ZMQ_XPUB_WELCOME_MSG`).
    public func setWelcomeMessage(_ bytes: [UInt8]) throws(ZeroMQError) {
        try set(ZMQ_XPUB_WELCOME_MSG, "ZMQ_XPUB_WELCOME_MSG", bytes)
    }

    public func subscribe(_ prefix: String) throws(ZeroMQError) {
        try set(ZMQ_SUBSCRIBE, "ZMQ_SUBSCRIBE", Array(prefix.utf8))
    }

    public func unsubscribe(_ prefix: String) throws(ZeroMQError) {
        try set(ZMQ_UNSUBSCRIBE, "ZMQ_UNSUBSCRIBE", Array(prefix.utf8))
    }

    private func set(_ option: Int32, _ name: String, _ bytes: [UInt8]) throws(ZeroMQError) {
        guard zmq_setsockopt(pointer, option, bytes, bytes.count) == 0 else {
            throw ZeroMQError("zmq_setsockopt", name)
        }
    }

    /// Accepts peers at an endpoint (`ipc://PATH`, `inproc://NAME`, `tcp://ADDRESS:PORT`).
    public func bind(_ endpoint: String) throws(ZeroMQError) {
        guard retrying({ zmq_bind(pointer, endpoint) }) == 0 else { throw ZeroMQError("zmq_bind", endpoint) }
    }

    /// Connects, now or as soon as somebody is there, and again whenever the connection is lost.
    public func connect(_ endpoint: String) throws(ZeroMQError) {
        guard retrying({ zmq_connect(pointer, endpoint) }) == 0 else { throw ZeroMQError("zmq_connect", endpoint) }
    }

    public func disconnect(_ endpoint: String) throws(ZeroMQError) {
        guard zmq_disconnect(pointer, endpoint) == 0 else { throw ZeroMQError("zmq_disconnect", endpoint) }
    }

    /// Readable and writable now (`ZMQ_EVENTS`). To be read again after every send and receive: see
    /// ``notificationDescriptor``.
    public func readiness() -> (canReceive: Bool, canSend: Bool) {
        var events: Int32 = 0
        var size = 4
        guard zmq_getsockopt(pointer, ZMQ_EVENTS, &events, &size) == 0 else { return (false, false) }
        return (events & ZMQ_POLLIN != 0, events & ZMQ_POLLOUT != 0)
    }

    /// Whether there is a message, for ``PollSet``.
    func isReadable() throws(ZeroMQError) -> Bool {
        var events: Int32 = 0
        var size = 4
        guard retrying({ zmq_getsockopt(handle, ZMQ_EVENTS, &events, &size) }) == 0 else {
            throw ZeroMQError("zmq_getsockopt", "ZMQ_EVENTS")
        }
        return events & ZMQ_POLLIN != 0
    }

    /// For another loop's poll: readable when ``readiness()`` may have changed. Edge-triggered (`ZMQ_FD`).
    public var notificationDescriptor: Int32 {
        var descriptor: Int32 = -1
        var size = 4
        _ = zmq_getsockopt(pointer, ZMQ_FD, &descriptor, &size)
        return descriptor
    }

    /// Sends one frame without waiting.
    ///
    /// - Returns: false when the peer's queue is full (`EAGAIN`) or, with `routerMandatory`, the peer is gone
    ///   (`EHOSTUNREACH`); nothing was sent.
    @discardableResult
    public func send(_ bytes: UnsafeRawBufferPointer, more: Bool = false) throws(ZeroMQError) -> Bool {
        let flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)
        guard retrying({ zmq_send(pointer, bytes.baseAddress, bytes.count, flags) }) == -1 else { return true }
        let code = zmq_errno()
        if code == EAGAIN || code == EHOSTUNREACH { return false }
        throw ZeroMQError("zmq_send")
    }

    @discardableResult
    public func send(_ bytes: [UInt8], more: Bool = false) throws(ZeroMQError) -> Bool {
        var result: Result<Bool, ZeroMQError> = .success(false)
        bytes.withUnsafeBytes { buffer in
            result = Result { () throws(ZeroMQError) in try send(buffer, more: more) }
        }
        return try result.get()
    }

    /// Sends one frame without copying it and without waiting; the message is empty afterwards.
    ///
    /// - Returns: as ``send(_:more:)-(UnsafeRawBufferPointer,_)``; what was not sent stays in the message.
    @discardableResult
    public func send(_ message: Message, more: Bool = false) throws(ZeroMQError) -> Bool {
        let flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)
        guard retrying({ zmq_msg_send(&message.message, pointer, flags) }) == -1 else { return true }
        let code = zmq_errno()
        if code == EAGAIN || code == EHOSTUNREACH { return false }
        throw ZeroMQError("zmq_msg_send")
    }

    /// Sends a message of several frames without waiting; see ``send(_:more:)-(UnsafeRawBufferPointer,_)``.
    @discardableResult
    public func send(frames: [[UInt8]]) throws(ZeroMQError) -> Bool {
        for (index, frame) in frames.enumerated() {
            guard try send(frame, more: index < frames.count - 1) else { return false }
        }
        return true
    }

    /// Receives the next frame into a message that is used again and again, without waiting.
    ///
    /// - Returns: false when there is none.
    public func receive(into message: Message) throws(ZeroMQError) -> Bool {
        guard retrying({ czeromq_receive(pointer, &message.message, &reader) }) == -1 else { return true }
        guard zmq_errno() == EAGAIN else { throw ZeroMQError("zmq_msg_recv") }
        // Only after it has taken notice of all that has come.
        isUnsettled = false
        return false
    }

    /// Receives a whole message without waiting.
    ///
    /// - Parameter maximumFrames: further frames of a longer message are received and thrown away; the result then has
    ///   one frame more than this.
    public func receive(maximumFrames: Int = 64) throws(ZeroMQError) -> [Message]? {
        var frames: [Message] = []
        while true {
            let message = Message()
            // Only the first frame can be missing: libzmq hands messages over whole.
            guard try receive(into: message) else { return nil }
            let more = message.hasMore
            if frames.count <= maximumFrames { frames.append(message) }
            if !more { return frames }
        }
    }

    /// Receives a whole message without waiting, its frames into messages that are used again and again.
    ///
    /// - Parameters:
    ///   - frames: grows to what is needed, and at most to one more than `maximumFrames`.
    ///   - maximumFrames: further frames of a longer message are received and thrown away.
    /// - Returns: how many of them are the message's: one more than `maximumFrames` for a longer one, and the last of
    ///   them is its last frame; nil when there is no message.
    public func receive(into frames: inout [Message], maximumFrames: Int = 64) throws(ZeroMQError) -> Int? {
        var count = 0
        while true {
            let index = min(count, maximumFrames)
            if index == frames.count { frames.append(Message()) }
            let message = frames[index]
            // Only the first frame can be missing: libzmq hands messages over whole.
            guard try receive(into: message) else { return nil }
            count = index + 1
            if !message.hasMore { return count }
        }
    }

    /// Tells what happens to its connections on a PAIR socket at that inproc endpoint (`zmq_socket_monitor`).
    public func startMonitor(at endpoint: String, events: Set<MonitorEvent.Kind>) throws(ZeroMQError) {
        let mask = events.reduce(0) { $0 | $1.rawValue }
        guard zmq_socket_monitor(pointer, endpoint, mask) == 0 else {
            throw ZeroMQError("zmq_socket_monitor", endpoint)
        }
        isMonitored = true
    }

    /// Tells nothing any more. To be called before who reads it goes, unless this socket goes first: libzmq's own
    /// thread would wait for him for ever, and with it all sockets of the context.
    public func stopMonitor() {
        guard isMonitored else { return }
        isMonitored = false
        zmq_socket_monitor(handle, nil, 0)
    }
}

/// What a monitor tells.
public struct MonitorEvent: Sendable {
    public enum Kind: Int32, Sendable {
        case connected = 0x0001
        case connectRetried = 0x0004
        case accepted = 0x0020
        case acceptFailed = 0x0040
        case closed = 0x0080
        case disconnected = 0x0200
        case handshakeFailedNoDetail = 0x0800
        case handshakeSucceeded = 0x1000
        case handshakeFailedProtocol = 0x2000
        case handshakeFailedAuthentication = 0x4000
    }

    public var kind: Kind
    /// The connection's descriptor for `accepted` and `disconnected`, an error number for failures.
    public var value: Int32

    /// nil for messages of kinds that are not known here.
    public init?(_ frames: [Message]) {
        guard let frame = frames.first, frame.count >= 6 else { return nil }
        let (code, value) = frame.withUnsafeBytes { bytes in
            (bytes.loadUnaligned(as: UInt16.self), bytes.loadUnaligned(fromByteOffset: 2, as: Int32.self))
        }
        guard let kind = Kind(rawValue: Int32(code)) else { return nil }
        self.kind = kind
        self.value = value
    }
}
