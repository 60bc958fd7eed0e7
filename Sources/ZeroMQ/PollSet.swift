import CLinux
import CZeroMQ
import Glibc

/// Sockets and descriptors to wait on, kept so that waiting allocates nothing and costs what is ready, not what is
/// there, and that one more or less costs what it is itself (`epoll`).
///
/// As `zmq_poll`, but a descriptor that is ready is told at once, and only sockets that have been used or woken since
/// are asked whether they have something to say: `zmq_poll` asks every socket before and after it sleeps, two system
/// calls each time, which a frame would wait for.
public final class PollSet {
    public enum Source {
        case socket(Socket)
        case descriptor(Int32)
        /// A descriptor of which only urgent data (`EPOLLPRI`) and errors count: a video node's events. To wait for
        /// input on a node that doesn't stream would be an error, or start it.
        case urgent(Int32)
    }

    private enum Kind {
        case socket, input, urgent
    }

    /// A source, at its index.
    private struct Place {
        let kind: Kind
        let socket: Socket?
        /// Its descriptor's.
        let entry: Int
        let order: UInt64
    }

    /// All that waits for one descriptor, which can be in an epoll set only once: by their indices, the last that came
    /// of each kind.
    private struct Entry {
        var descriptor: Int32 = -1
        /// Tells it from what was here before: what was closed before it was taken out may stay in the epoll set, as
        /// long as another process has it too.
        var generation: UInt32 = 0
        var isPolled = false
        var socket: Int?
        var input: Int?
        var urgent: Int?

        var isEmpty: Bool { socket == nil && input == nil && urgent == nil }

        subscript(kind: Kind) -> Int? {
            get {
                switch kind {
                case .socket: socket
                case .input: input
                case .urgent: urgent
                }
            }
            set {
                switch kind {
                case .socket: socket = newValue
                case .input: input = newValue
                case .urgent: urgent = newValue
                }
            }
        }
    }

    // Exclusive access isn't checked at run time, here and elsewhere on a frame's way to its readers: the checks' code
    // has gone cold in the time of a frame, and costs more than the way itself. No body of a caller is called while one
    // of these is changed.
    @exclusivity(unchecked) private var epoll: Int32
    @exclusivity(unchecked) private var places: [Place?] = []
    @exclusivity(unchecked) private var entries: [Entry] = []
    @exclusivity(unchecked) private var isReady: [Bool] = []
    @exclusivity(unchecked) private var sockets: [(index: Int, socket: Socket)] = []
    /// Those that were ready in the last turn, to be forgotten in the next.
    @exclusivity(unchecked) private var ready: [Int] = []
    /// In their place, what alone is ready, where only one waits for its descriptor: nearly always.
    @exclusivity(unchecked) private var sole: Int?
    /// Files that are never waited for, as they can be read at any time.
    @exclusivity(unchecked) private var alwaysReady: [Int] = []
    /// What was found.
    private let numbers = UnsafeMutablePointer<UInt64>.allocate(capacity: PollSet.roomForFound)
    private let bits = UnsafeMutablePointer<UInt32>.allocate(capacity: PollSet.roomForFound)
    private var lastOrder: UInt64 = 0

    private static let roomForFound = 16

    /// - Parameter sources: their indices are those that they have here.
    /// - Throws: when there is no descriptor left.
    public init(_ sources: [Source]) throws(ZeroMQError) {
        epoll = clinux_epoll()
        guard epoll >= 0 else { throw ZeroMQError("epoll_create1") }
        for source in sources { add(source) }
    }

    deinit {
        close(epoll)
        numbers.deallocate()
        bits.deallocate()
    }

    /// Above all indices.
    public var count: Int { places.count }

    // MARK: What is waited for

    /// Waits for this, too.
    ///
    /// - Returns: its index, until it is removed.
    @discardableResult
    public func add(_ source: Source) -> Int {
        let (kind, descriptor, socket): (Kind, Int32, Socket?) =
            switch source {
            case .socket(let socket): (.socket, socket.notificationDescriptor, socket)
            case .descriptor(let descriptor): (.input, descriptor, nil)
            case .urgent(let descriptor): (.urgent, descriptor, nil)
            }
        let index = places.firstIndex { $0 == nil } ?? places.count
        if index == places.count {
            places.append(nil)
            isReady.append(false)
            ready.reserveCapacity(places.count)
        }
        if let socket {
            socket.isUnsettled = true
            sockets.append((index, socket))
        }
        let number = entry(of: descriptor)
        lastOrder += 1
        places[index] = Place(kind: kind, socket: socket, entry: number, order: lastOrder)
        entries[number][kind] = index
        register(number)
        listAlwaysReady()
        return index
    }

    /// Waits for what is at the index no more. To be called before its descriptor is closed; afterwards it does no
    /// harm.
    public func remove(_ index: Int) {
        guard let place = places[index] else { return }
        places[index] = nil
        isReady[index] = false
        if sole == index { sole = nil }
        sockets.removeAll { $0.index == index }
        let number = place.entry
        // Another has come for the same, perhaps to a descriptor that has the number of one that was closed.
        guard entries[number][place.kind] == index else { return }
        entries[number][place.kind] = last(of: place.kind, number)
        if entries[number].isEmpty {
            if entries[number].isPolled { _ = clinux_epoll_remove(epoll, entries[number].descriptor) }
            entries[number].generation &+= 1
            entries[number].isPolled = false
        } else {
            register(number)
        }
        listAlwaysReady()
    }

    private func last(of kind: Kind, _ entry: Int) -> Int? {
        let those = places.indices.filter { places[$0]?.entry == entry && places[$0]?.kind == kind }
        return those.max { places[$0]?.order ?? 0 < places[$1]?.order ?? 0 }
    }

    private func entry(of descriptor: Int32) -> Int {
        if let known = entries.firstIndex(where: { !$0.isEmpty && $0.descriptor == descriptor }) { return known }
        let free = entries.firstIndex(where: \.isEmpty) ?? entries.count
        if free == entries.count { entries.append(Entry()) }
        entries[free].descriptor = descriptor
        return free
    }

    private func register(_ number: Int) {
        let entry = entries[number]
        let isInput = entry.socket != nil || entry.input != nil
        let result = clinux_epoll_set(
            epoll, entry.descriptor, isInput ? 1 : 0, entry.urgent != nil ? 1 : 0,
            UInt64(entry.generation) << 32 | UInt64(number))
        entries[number].isPolled = result == 0
    }

    // As poll() has it, whoever waits for a closed descriptor or for a file is told at once.
    private func listAlwaysReady() {
        alwaysReady = entries.flatMap { $0.isPolled ? [] : [$0.input, $0.urgent].compactMap { $0 } }
    }

    // Without what can't be taken out any more.
    private func renew() throws(ZeroMQError) {
        close(epoll)
        epoll = clinux_epoll()
        guard epoll >= 0 else { throw ZeroMQError("epoll_create1") }
        for number in entries.indices where !entries[number].isEmpty { register(number) }
        listAlwaysReady()
    }

    // MARK: Waiting

    /// Waits until something is readable or in error, for ever if need be.
    ///
    /// - Parameter timeout: milliseconds; nil: no limit.
    public func wait(timeout: Int? = nil) throws(ZeroMQError) {
        for index in ready { isReady[index] = false }
        ready.removeAll(keepingCapacity: true)
        sole = nil
        for index in alwaysReady { tell(index) }
        for number in sockets.indices where sockets[number].socket.isUnsettled {
            try ask(sockets[number].index, sockets[number].socket)
        }
        let end = timeout.map { Self.milliseconds() + Int64(max(0, Int32(clamping: $0))) }
        while true {
            var left: Int32 = ready.isEmpty ? -1 : 0
            if let end, left != 0 { left = Int32(clamping: max(0, end - Self.milliseconds())) }
            let count = clinux_epoll_wait(epoll, numbers, bits, Int32(Self.roomForFound), left)
            guard count >= 0 else {
                guard errno == EINTR else { throw ZeroMQError("epoll_wait") }
                continue
            }
            if count == 1, ready.isEmpty, let input = soleInput(numbers[0], bits[0]) {
                sole = input
                return
            }
            var isOutdated = false
            for index in 0..<Int(count) {
                let entry = entries[Int(numbers[index] & 0xFFFF_FFFF)]
                if UInt64(entry.generation) == numbers[index] >> 32 {
                    try take(entry, bits[index])
                } else {
                    isOutdated = true
                }
            }
            if isOutdated { try renew() }
            if !ready.isEmpty { return }
            if let end, end <= Self.milliseconds() { return }
        }
    }

    /// After ``wait(timeout:)``: whether the source at that index has something to say.
    public func isReady(_ index: Int) -> Bool { sole == index || isReady[index] }

    /// After ``wait(timeout:)``: the index of the only source that has something to say; nil when there are several or
    /// none.
    public var onlyReady: Int? { sole ?? (ready.count == 1 ? ready[0] : nil) }

    // A frame waits for what happens here.
    private func soleInput(_ number: UInt64, _ found: UInt32) -> Int? {
        let entry = entries[Int(number & 0xFFFF_FFFF)]
        guard UInt64(entry.generation) == number >> 32, entry.socket == nil, entry.urgent == nil,
            found & UInt32(clinux_epoll_input | clinux_epoll_broken) != 0
        else { return nil }
        return entry.input
    }

    private func tell(_ index: Int) {
        guard !isReady[index] else { return }
        isReady[index] = true
        ready.append(index)
    }

    // A socket's descriptor tells what came since its events were last asked for; what using it has done to them it
    // doesn't.
    private func ask(_ index: Int, _ socket: Socket) throws(ZeroMQError) {
        socket.isUnsettled = try socket.isReadable()
        if socket.isUnsettled { tell(index) }
    }

    private func take(_ entry: Entry, _ found: UInt32) throws(ZeroMQError) {
        // It may have been woken for something that is no message.
        if let index = entry.socket, let socket = places[index]?.socket { try ask(index, socket) }
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
