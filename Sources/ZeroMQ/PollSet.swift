import CZeroMQ
import Glibc

/// A fixed set of sockets and descriptors to wait on, kept so that waiting allocates nothing.
///
/// As `zmq_poll`, but a descriptor that is ready is told at once, and only sockets that have been used or woken since are asked whether
/// they have something to say: `zmq_poll` asks every socket before and after it sleeps, two system calls each time, which a frame would
/// wait for.
public struct PollSet {
    public enum Source {
        case socket(Socket)
        case descriptor(Int32)
        /// A descriptor of which only urgent data (`POLLPRI`) and errors count: a video node's events. To wait for input on
        /// a node that doesn't stream would be an error, or start it.
        case urgent(Int32)
    }

    private var items: [pollfd] = []
    private var isReady: [Bool]
    private var sockets: [(index: Int, socket: Socket)] = []

    public init(_ sources: [Source]) {
        isReady = Array(repeating: false, count: sources.count)
        for (index, source) in sources.enumerated() {
            switch source {
            case .socket(let socket):
                items.append(pollfd(fd: socket.notificationDescriptor, events: Int16(POLLIN), revents: 0))
                sockets.append((index, socket))
                socket.isUnsettled = true
            case .descriptor(let descriptor):
                items.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            case .urgent(let descriptor):
                items.append(pollfd(fd: descriptor, events: Int16(POLLPRI), revents: 0))
            }
        }
    }

    /// Waits until something is readable or in error, for ever if need be.
    ///
    /// - Parameter timeout: milliseconds; nil: no limit.
    public mutating func wait(timeout: Int? = nil) throws(ZeroMQError) {
        var left = timeout.map { max(0, Int32(clamping: $0)) } ?? -1
        let end = timeout == nil ? nil : Self.milliseconds() + Int64(left)
        while true {
            let isSocketReady = try askSockets()
            let count = nfds_t(items.count)
            guard retrying({ poll(&items, count, isSocketReady ? 0 : left) }) != -1 else { throw ZeroMQError("poll") }
            if takeAnswers() || isSocketReady { return }
            if let end {
                let rest = end - Self.milliseconds()
                if rest <= 0, !sockets.contains(where: { $0.socket.isUnsettled }) { return }
                left = Int32(clamping: max(0, rest))
            }
        }
    }

    /// After ``wait(timeout:)``: whether the source at that index has something to say.
    public func isReady(_ index: Int) -> Bool { isReady[index] }

    // A socket's descriptor tells what came since its events were last asked for; what using it has done to them it doesn't.
    private mutating func askSockets() throws(ZeroMQError) -> Bool {
        var isAny = false
        for (index, socket) in sockets {
            if socket.isUnsettled { socket.isUnsettled = try socket.isReadable() }
            isReady[index] = socket.isUnsettled
            isAny = isAny || socket.isUnsettled
        }
        return isAny
    }

    /// - Returns: whether a descriptor is ready. Sockets that were woken are asked in the next turn.
    private mutating func takeAnswers() -> Bool {
        for (index, socket) in sockets where items[index].revents != 0 {
            socket.isUnsettled = true
            items[index].revents = 0
        }
        var isAny = false
        var next = 0
        for index in items.indices {
            if next < sockets.count, sockets[next].index == index {
                next += 1
                continue
            }
            isReady[index] = items[index].revents != 0
            isAny = isAny || isReady[index]
        }
        return isAny
    }

    private static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
