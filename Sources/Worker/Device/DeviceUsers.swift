import BusProtocol
import BusServer
import JSON
import LinuxIO
import Synchronization
import ZeroMQ

/// Who uses the device: its subscribers, and foreign processes that have its node open.
///
/// Looking through `/proc` takes milliseconds that frames don't have, so it is done on a thread of its own: not on the
/// device's, which may sit in the very driver that somebody wants to know about.
final class DeviceUsers {
    /// A process that subscribes to frames of the device.
    struct Subscriber: Hashable, Sendable {
        var uid: UInt32
        /// 0: a process that can't be seen from here.
        var pid: Int32
        /// As it spells them.
        var renditions: [String]
    }

    private struct Look {
        let node: String?
        let subscribers: [Subscriber]
        let completion: (JSONValue) -> Void
    }

    private final class Exchange: Sendable {
        let done: EventDescriptor
        let result = Mutex<JSONValue?>(nil)

        init() throws(SystemError) { done = try EventDescriptor() }
    }

    private let loop: Loop
    private let exchange: Exchange
    private var waiting: [Look] = []
    private var isLooking = false
    private var nextStart = Int64.min
    private var timer: Loop.Token?

    private static let maximumWaiting = 8
    /// From one search to the next, nanoseconds: a client that asks again and again costs ten searches a second.
    private static let interval: Int64 = 100_000_000
    /// Renditions that are returned of one process; further ones are left out.
    static let maximumRenditions = 16

    init(_ loop: Loop) throws(SystemError) {
        self.loop = loop
        exchange = try Exchange()
        loop.watch(.descriptor(exchange.done.rawValue)) { [weak self] in self?.finish() }
    }

    /// Looks, and answers {subscribers: [{uid, pid, name, renditions}], foreign: [{uid, pid, name}], complete} on the
    /// loop.
    ///
    /// - Parameter node: nil: the device has none that anybody could open.
    /// - Returns: false when too many wait already; then nothing is answered.
    func look(node: String?, subscribers: [Subscriber], _ completion: @escaping (JSONValue) -> Void) -> Bool {
        guard waiting.count < Self.maximumWaiting else { return false }
        waiting.append(Look(node: node, subscribers: subscribers, completion: completion))
        startNext()
        return true
    }

    private func startNext() {
        guard !isLooking, timer == nil, let next = waiting.first else { return }
        let now = MonotonicClock.now()
        guard now >= nextStart else {
            timer = loop.schedule(at: nextStart) { [weak self] in
                self?.timer = nil
                self?.startNext()
            }
            return
        }
        nextStart = now + Self.interval
        isLooking = true
        let (exchange, node, subscribers) = (exchange, next.node, next.subscribers)
        let thread = try? NamedThread(name: "device-users") {
            let result = Self.result(subscribers, node.map { ProcessTable.holders(of: $0) })
            exchange.result.withLock { $0 = result }
            exchange.done.signal()
        }
        guard thread == nil else { return }
        exchange.result.withLock { $0 = Self.result(subscribers, .init(processes: [], isComplete: false)) }
        exchange.done.signal()
    }

    private func finish() {
        exchange.done.drain()
        guard let result = exchange.result.withLock({ $0.take() }), !waiting.isEmpty else { return }
        isLooking = false
        let look = waiting.removeFirst()
        startNext()
        look.completion(result)
    }

    private static func result(_ subscribers: [Subscriber], _ holders: ProcessTable.Holders?) -> JSONValue {
        let foreign = (holders?.processes ?? []).filter { $0.pid != CurrentProcess.pid }
        return [
            "subscribers": .array(
                subscribers.map { subscriber in
                    [
                        "uid": JSONValue(subscriber.uid), "pid": JSONValue(subscriber.pid),
                        "name": .string(ProcessTable.name(of: subscriber.pid) ?? "unknown"),
                        "renditions": JSONValue(subscriber.renditions),
                    ]
                }),
            "foreign": .array(
                foreign.map {
                    ["uid": JSONValue($0.uid), "pid": JSONValue($0.pid), "name": .string($0.name)]
                }),
            "complete": .bool(holders?.isComplete ?? true),
        ]
    }

    /// How many read frames of the device: subscriptions one by one, and connections for rings. A subscriber to
    /// `buffer/` needs both and counts as one.
    static func readers(
        _ subscriptions: [(peer: ConnectionGuard.Peer, topics: Set<[UInt8]>)],
        readers: [(peer: ConnectionGuard.Peer, rendition: String)], device: String
    ) -> Int {
        var count = 0
        var references: [ConnectionGuard.Peer: Int] = [:]
        for (peer, topics) in subscriptions {
            for topic in topics {
                switch Topic.parse(topic) {
                case .media(let media) where media.device == device:
                    if media.kind == .buffer { references[peer, default: 0] += 1 } else { count += 1 }
                case .level(let name) where name == device: count += 1
                default: continue
                }
            }
        }
        var rings: [ConnectionGuard.Peer: Int] = [:]
        for (peer, _) in readers { rings[peer, default: 0] += 1 }
        return references.merging(rings, uniquingKeysWith: max).values.reduce(count, +)
    }

    /// How many read each rendition of the device, counted likewise; of others than these nothing is told.
    static func readers(
        of renditions: Set<Rendition>, _ subscriptions: [(peer: ConnectionGuard.Peer, topics: Set<[UInt8]>)],
        readers: [(peer: ConnectionGuard.Peer, rendition: String)], device: String
    ) -> [Rendition: Int] {
        struct Reader: Hashable {
            let peer: ConnectionGuard.Peer
            let rendition: Rendition
        }
        var counts: [Rendition: Int] = [:]
        var (references, rings): ([Reader: Int], [Reader: Int]) = ([:], [:])
        for (peer, topics) in subscriptions {
            for topic in topics {
                guard case .media(let media) = Topic.parse(topic), media.device == device,
                    let rendition = try? media.rendition(), renditions.contains(rendition)
                else { continue }
                if media.kind == .buffer {
                    references[Reader(peer: peer, rendition: rendition), default: 0] += 1
                } else {
                    counts[rendition, default: 0] += 1
                }
            }
        }
        for (peer, text) in readers {
            guard let rendition = try? Rendition(parsing: text), renditions.contains(rendition) else { continue }
            rings[Reader(peer: peer, rendition: rendition), default: 0] += 1
        }
        for (reader, count) in references.merging(rings, uniquingKeysWith: max) {
            counts[reader.rendition, default: 0] += count
        }
        return counts
    }

    /// The processes among the connections that want frames of the device, in the order of their pids.
    ///
    /// - Parameters:
    ///   - subscriptions: what each process is subscribed to; a process with several connections may come several
    ///     times.
    ///   - readers: who reads rings of which rendition.
    static func subscribers(
        _ subscriptions: [(peer: ConnectionGuard.Peer, topics: Set<[UInt8]>)],
        readers: [(peer: ConnectionGuard.Peer, rendition: String)] = [], device: String
    ) -> [Subscriber] {
        var renditions: [ConnectionGuard.Peer: Set<String>] = [:]
        for (peer, topics) in subscriptions {
            for topic in topics {
                switch Topic.parse(topic) {
                case .media(let media) where media.device == device:
                    renditions[peer, default: []].insert(media.renditionText)
                case .level(let name) where name == device: renditions[peer, default: []].insert("level")
                default: continue
                }
            }
        }
        for (peer, rendition) in readers { renditions[peer, default: []].insert(rendition) }
        return renditions.map { peer, names in
            Subscriber(
                uid: peer.uid, pid: peer.pid, renditions: Array(names.sorted().prefix(Self.maximumRenditions)))
        }.sorted { ($0.pid, $0.uid) < ($1.pid, $1.uid) }
    }
}
