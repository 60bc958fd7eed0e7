import CLinux
import CZeroMQ
import Glibc

/// A fixed set of sockets and descriptors to wait on, kept so that waiting allocates nothing and costs what is ready, not what is there
/// (`epoll`).
///
/// As `zmq_poll`, but a descriptor that is ready is told at once, and only sockets that have been used or woken since are asked whether
/// they have something to say: `zmq_poll` asks every socket before and after it sleeps, two system calls each time, which a frame would
/// wait for.
public final class PollSet {
    public enum Source {
        case socket(Socket)
        case descriptor(Int32)
        /// A descriptor of which only urgent data (`EPOLLPRI`) and errors count: a video node's events. To wait for input on
        /// a node that doesn't stream would be an error, or start it.
        case urgent(Int32)
    }

    /// All that waits for one descriptor, which can be in an epoll set only once.
    private struct Entry {
        let descriptor: Int32
        var socket: Int?
        var input: Int?
        var urgent: Int?
    }

    // Exclusive access isn't checked at run time, here and elsewhere on a frame's way to its readers: the checks' code has gone cold
    // in the time of a frame, and costs more than the way itself. No body of a caller is called while one of these is changed.
    private let epoll: Int32
    @exclusivity(unchecked) private var entries: [Entry] = []
    @exclusivity(unchecked) private var isReady: [Bool]
    @exclusivity(unchecked) private var sockets: [(index: Int, socket: Socket)] = []
    /// Those that were ready in the last turn, to be forgotten in the next.
    @exclusivity(unchecked) private var ready: [Int] = []
    /// Files that are never waited for, as they can be read at any time.
    @exclusivity(unchecked) private var alwaysReady: [Int] = []
    @exclusivity(unchecked) private var numbers = [UInt32](repeating: 0, count: 16)
    @exclusivity(unchecked) private var bits = [UInt32](repeating: 0, count: 16)

    /// - Throws: when there is no descriptor left, or one of these is closed.
    public init(_ sources: [Source]) throws(ZeroMQError) {
        isReady = Array(repeating: false, count: sources.count)
        ready.reserveCapacity(sources.count)
        epoll = clinux_epoll()
        guard epoll >= 0 else { throw ZeroMQError("epoll_create1") }
        for (index, source) in sources.enumerated() {
            switch source {
            case .socket(let socket):
                add(socket.notificationDescriptor) { $0.socket = sockets.count }
                sockets.append((index, socket))
                socket.isUnsettled = true
            case .descriptor(let descriptor): add(descriptor) { $0.input = index }
            case .urgent(let descriptor): add(descriptor) { $0.urgent = index }
            }
        }
        for (number, entry) in entries.enumerated() {
            let isInput = entry.socket != nil || entry.input != nil
            let result = clinux_epoll_add(
                epoll, entry.descriptor, isInput ? 1 : 0, entry.urgent != nil ? 1 : 0, UInt32(number))
            guard result != 0 else { continue }
            // As poll() has it, whoever waits for a closed descriptor or for a file is told at once.
            alwaysReady += [entry.input, entry.urgent].compactMap { $0 }
        }
    }

    deinit { close(epoll) }

    private func add(_ descriptor: Int32, _ set: (inout Entry) -> Void) {
        if let known = entries.firstIndex(where: { $0.descriptor == descriptor }) { return set(&entries[known]) }
        var entry = Entry(descriptor: descriptor)
        set(&entry)
        entries.append(entry)
    }

    /// Waits until something is readable or in error, for ever if need be.
    ///
    /// - Parameter timeout: milliseconds; nil: no limit.
    public func wait(timeout: Int? = nil) throws(ZeroMQError) {
        for index in ready { isReady[index] = false }
        ready.removeAll(keepingCapacity: true)
        for index in alwaysReady { tell(index) }
        for number in sockets.indices where sockets[number].socket.isUnsettled { try ask(number) }
        let end = timeout.map { Self.milliseconds() + Int64(max(0, Int32(clamping: $0))) }
        while true {
            var left: Int32 = ready.isEmpty ? -1 : 0
            if let end, left != 0 { left = Int32(clamping: max(0, end - Self.milliseconds())) }
            let count = clinux_epoll_wait(epoll, &numbers, &bits, Int32(numbers.count), left)
            guard count >= 0 else {
                guard errno == EINTR else { throw ZeroMQError("epoll_wait") }
                continue
            }
            for index in 0..<Int(count) { try take(entries[Int(numbers[index])], bits[index]) }
            if !ready.isEmpty { return }
            if let end, end <= Self.milliseconds() { return }
        }
    }

    /// After ``wait(timeout:)``: whether the source at that index has something to say.
    public func isReady(_ index: Int) -> Bool { isReady[index] }

    /// After ``wait(timeout:)``: the index of the only source that has something to say; nil when there are several or none.
    public var onlyReady: Int? { ready.count == 1 ? ready[0] : nil }

    private func tell(_ index: Int) {
        guard !isReady[index] else { return }
        isReady[index] = true
        ready.append(index)
    }

    // A socket's descriptor tells what came since its events were last asked for; what using it has done to them it doesn't.
    private func ask(_ number: Int) throws(ZeroMQError) {
        let (index, socket) = sockets[number]
        socket.isUnsettled = try socket.isReadable()
        if socket.isUnsettled { tell(index) }
    }

    private func take(_ entry: Entry, _ found: UInt32) throws(ZeroMQError) {
        // It may have been woken for something that is no message.
        if let socket = entry.socket { try ask(socket) }
        let isBroken = found & UInt32(clinux_epoll_broken) != 0
        if let input = entry.input, isBroken || found & UInt32(clinux_epoll_input) != 0 { tell(input) }
        if let urgent = entry.urgent, isBroken || found & UInt32(clinux_epoll_urgent) != 0 { tell(urgent) }
    }

    private static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
