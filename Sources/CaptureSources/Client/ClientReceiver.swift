import CaptureCore
import Glibc
import LinuxIO
import Synchronization

/// Takes a client's frames in: a thread that reads them from a Unix socket right into queued slots.
///
/// One connection at a time, from the owner's process alone (`SO_PEERCRED`). Each frame is a head of 16 bytes,
/// little-endian: `CBF1`, the bytes of the payload (32 bits), when it was taken (64 bits, CLOCK_MONOTONIC in
/// nanoseconds; 0: now), and the payload. Whoever sends anything else, or half a frame and no more for two seconds, is
/// told why in one line and cut off.
final class ClientReceiver: Sendable {
    /// What a frame begins with.
    static let magic: [UInt8] = Array("CBF1".utf8)
    static let headBytes = 16

    private let stopSignal: EventDescriptor
    private let thread: NamedThread
    private let shared: ClientReception

    /// - Parameter layout: of a frame; compressed ones may be smaller.
    init(
        path: String, mode: UInt32, group: UInt32?, owner: LockHolder, layout: FrameLayout
    ) throws(SystemError) {
        let listening = ClientListener(try UnixSocket.listen(at: path, .stream, mode: mode, group: group), path)
        let stop = try EventDescriptor()
        let shared = ClientReception()
        let run = ClientReceiverThread(listening, stop, shared, owner: owner, layout: layout)
        thread = try NamedThread(name: "client-source") { run.loop() }
        stopSignal = stop
        self.shared = shared
    }

    /// Whether the client said when its last frame was taken.
    var hasTimes: Bool { shared.hasTimes.load(ordering: .relaxed) }

    /// Frames go there from now on.
    func start(_ queue: VirtualQueue) { shared.queue.withLock { $0 = queue } }

    /// Frames go nowhere from now on. Of one that is being read nothing more comes into its slot, and it is not
    /// published.
    func stop() { shared.queue.withLock { $0 = nil } }

    /// Ends the thread and waits for it. To be called once.
    func end() {
        stopSignal.signal()
        thread.join()
    }
}

/// What the device thread and the receiver's thread have in common.
final class ClientReception: Sendable {
    let queue = Mutex<VirtualQueue?>(nil)
    let hasTimes = Atomic(false)
}

/// The listening socket, which goes with its file.
final class ClientListener: Sendable {
    private let owner: FileDescriptor
    private let path: String
    var rawValue: Int32 { owner.rawValue }

    init(_ descriptor: consuming FileDescriptor, _ path: String) {
        owner = descriptor
        self.path = path
    }

    deinit { File.remove(path) }
}

/// What the receiver's thread works with, and nobody else.
final class ClientReceiverThread: @unchecked Sendable {
    /// A client's connection, and what of its next frame has come.
    private final class Writer {
        let descriptor: FileDescriptor
        var rawValue: Int32 { descriptor.rawValue }
        var head = [UInt8](repeating: 0, count: ClientReceiver.headBytes)
        var headCount = 0
        /// Of the payload.
        var wanted = 0
        var count = 0
        /// Where it goes; nil: nowhere.
        var slot: FrameSlot?
        var queue: VirtualQueue?
        /// When the frame must be whole, monotonic nanoseconds; nil: none has begun.
        var deadline: Int64?

        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }

    private let listening: ClientListener
    private let stop: EventDescriptor
    private let shared: ClientReception
    private let owner: LockHolder
    private let layout: FrameLayout
    private let isCompressed: Bool
    private var writer: Writer?
    private var scratch = [UInt8](repeating: 0, count: 1 << 16)
    /// Connections are taken again from then on, where there was no descriptor left for one.
    private var acceptTime: Int64 = 0
    /// The stream that the numbers below are of.
    private weak var numbered: VirtualQueue?
    private var sequence: UInt64 = 0
    private var lastTime: Int64 = 0

    /// Nanoseconds that a frame may take from its first byte to its last.
    private static let patience: Int64 = 2_000_000_000
    /// A frame's time may lie so far back, nanoseconds.
    private static let oldest: Int64 = 60_000_000_000
    /// Reads before others have their turn again.
    private static let readsPerTurn = 64

    init(
        _ listening: ClientListener, _ stop: EventDescriptor, _ shared: ClientReception, owner: LockHolder,
        layout: FrameLayout
    ) {
        self.listening = listening
        self.stop = stop
        self.shared = shared
        self.owner = owner
        self.layout = layout
        isCompressed = layout.pixelFormat.isCompressed
    }

    func loop() {
        while true {
            let now = MonotonicClock.now()
            let isListening = now >= acceptTime
            var waits = [3 of pollfd](repeating: pollfd(fd: stop.rawValue, events: Int16(POLLIN), revents: 0))
            // poll() passes over what is below zero.
            waits[1].fd = isListening ? listening.rawValue : -1
            waits[2].fd = writer?.rawValue ?? -1
            var until = writer?.deadline
            if !isListening { until = min(until ?? acceptTime, acceptTime) }
            let timeout = until.map { Int32(clamping: max(0, ($0 - now + 999_999) / 1_000_000)) } ?? -1
            let result = withUnsafeMutablePointer(to: &waits) {
                poll(UnsafeMutableRawPointer($0).assumingMemoryBound(to: pollfd.self), 3, timeout)
            }
            if result < 0 { continue }
            if waits[0].revents != 0 { return endWriter() }
            if waits[2].revents != 0 { receive() }
            if waits[1].revents != 0 { accept() }
            if let deadline = writer?.deadline, MonotonicClock.now() >= deadline {
                cut("a frame was not complete within two seconds")
            }
        }
    }

    // MARK: Connections

    private func accept() {
        do throws(SystemError) {
            for _ in 0..<8 {
                guard let descriptor = try UnixSocket.accept(listening.rawValue) else { return }
                admit(descriptor)
            }
        } catch {
            // No descriptor is left: who waits, waits, and this thread is not to turn for it.
            acceptTime = MonotonicClock.now() + 1_000_000_000
        }
    }

    private func admit(_ descriptor: consuming FileDescriptor) {
        guard let peer = PeerCredentials(of: descriptor.rawValue), peer.pid == owner.pid, peer.uid == owner.uid else {
            return Self.tell(
                descriptor.rawValue, "unauthorized",
                "only the process that created this source may send "
                    + "frames")
        }
        // One that has gone may not have had its turn yet.
        receive()
        guard writer == nil else {
            return Self.tell(
                descriptor.rawValue, "deviceBusy",
                "another connection is open; only one is allowed at a "
                    + "time")
        }
        writer = Writer(descriptor)
    }

    /// One line of JSON, for whoever reads it; then the connection is closed.
    private static func tell(_ descriptor: Int32, _ reason: String, _ message: String) {
        let line = Array("{\"reason\":\"\(reason)\",\"message\":\"\(message)\"}\n".utf8)
        _ = send(descriptor, line, line.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    }

    private func cut(_ why: String) {
        guard let writer else { return }
        Self.tell(writer.rawValue, "invalidParams", why)
        endWriter()
    }

    private func endWriter() {
        if let slot = writer?.slot { writer?.queue?.release(slot) }
        writer = nil
    }

    // MARK: Frames

    private func receive() {
        guard let writer else { return }
        for _ in 0..<Self.readsPerTurn {
            let count = read(writer)
            if count < 0, errno == EAGAIN || errno == EINTR { return }
            guard count > 0 else { return endWriter() }
            if writer.headCount < ClientReceiver.headBytes {
                writer.headCount += count
                if writer.headCount == ClientReceiver.headBytes {
                    if let why = begin(writer) { return cut(why) }
                } else if writer.deadline == nil {
                    writer.deadline = MonotonicClock.now() + Self.patience
                }
            } else {
                writer.count += count
                if writer.count == writer.wanted { finish(writer) }
            }
        }
    }

    private func read(_ writer: Writer) -> Int {
        let had = writer.headCount
        guard had == ClientReceiver.headBytes else {
            return writer.head.withUnsafeMutableBytes {
                Glibc.read(writer.rawValue, $0.baseAddress.map { $0 + had }, ClientReceiver.headBytes - had)
            }
        }
        let left = writer.wanted - writer.count
        if let slot = writer.slot, let base = slot.regions[0].baseAddress {
            // Not into the memory of a stream that is over: somebody may have it who may not see this any more.
            let count = shared.queue.withLock { current -> Int? in
                guard current === writer.queue else { return nil }
                let count = Glibc.read(writer.rawValue, base + writer.count, left)
                return count < 0 ? -Int(errno) : count
            }
            if let count {
                if count < 0 { errno = Int32(-count) }
                return count < 0 ? -1 : count
            }
            writer.queue?.release(slot)
            writer.slot = nil
        }
        return scratch.withUnsafeMutableBytes { Glibc.read(writer.rawValue, $0.baseAddress, min($0.count, left)) }
    }

    /// The head is whole.
    ///
    /// - Returns: what is wrong with it.
    private func begin(_ writer: Writer) -> String? {
        guard writer.head.starts(with: ClientReceiver.magic) else { return "a frame begins with CBF1" }
        let bytes = writer.head.withUnsafeBytes {
            Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
        }
        if isCompressed {
            guard (1...layout.totalBytes).contains(bytes) else {
                return "a frame has 1 to \(layout.totalBytes) bytes, not \(bytes)"
            }
        } else if bytes != layout.totalBytes {
            return "a frame has \(layout.totalBytes) bytes, not \(bytes)"
        }
        (writer.wanted, writer.count) = (bytes, 0)
        writer.deadline = MonotonicClock.now() + Self.patience
        let queue = shared.queue.withLock { $0 }
        if numbered !== queue { (numbered, sequence, lastTime) = (queue, 0, 0) }
        writer.queue = queue
        writer.slot = queue?.take()
        if let slot = writer.slot, slot.regions[0].count < bytes {
            // The memory was made for the layout: never so.
            queue?.release(slot)
            writer.slot = nil
        }
        return nil
    }

    private func finish(_ writer: Writer) {
        defer {
            (writer.headCount, writer.wanted, writer.count, writer.deadline) = (0, 0, 0, nil)
            (writer.slot, writer.queue) = (nil, nil)
        }
        let told = writer.head.withUnsafeBytes {
            Int64(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: Int64.self))
        }
        guard let queue = writer.queue else { return }
        let number = sequence
        sequence += 1
        // Without a slot it is lost, and shows as a hole in the numbers.
        guard let slot = writer.slot else { return }
        let now = MonotonicClock.now()
        // What lies ahead, or too far back, is not when it was taken; and no frame is before the one before.
        let isTime = told > 0 && told <= now && now - told <= Self.oldest
        let time = max(isTime ? told : now, lastTime + 1)
        lastTime = time
        shared.hasTimes.store(isTime, ordering: .relaxed)
        slot.captureSequence = number
        slot.monotonicTime = time
        slot.bytesUsed[0] = writer.count
        slot.isCorrupt = false
        // Within the lock: when the stream has stopped nobody publishes in its memory any more.
        shared.queue.withLock { current in
            if current === queue {
                queue.fill(slot, isTime ? .startOfExposure : .dequeue)
            } else {
                queue.release(slot)
            }
        }
    }
}
