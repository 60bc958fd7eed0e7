import BusProtocol
import FrameRing
import JSON
import LinuxIO
import Synchronization

/// The rings that `buffer/` messages tell of: asked for once, followed as they change, and never waited for.
final class RingLink: Sendable {
    /// What there is at the place that a message names.
    enum Finding {
        case picture(RingPicture)
        /// Its ring is not there yet, or not any more, or the frame was overwritten already.
        case gone
        /// The message can't be right.
        case nonsense
    }

    /// Outlives the link with the frames that were found: those keep no connection, which would keep the camera
    /// streaming.
    final class LateFrames: Sendable {
        private let number = Atomic<UInt64>(0)

        var count: UInt64 { number.load(ordering: .relaxed) }

        func add() { number.add(1, ordering: .relaxed) }
    }

    private struct State {
        var socket: PacketSocket?
        var ring: RingMap?
        /// Monotonic nanoseconds: not before then.
        var nextAttempt = Int64.min
        /// Since the last ring that came.
        var failures = 0
        var isClosed = false
    }

    /// Frames that were overwritten before they were used, or while they were.
    let late = LateFrames()
    private let path: String
    private let request: [UInt8]
    private let state = Mutex(State())

    /// From one attempt to connect to the next: nanoseconds.
    private static let retry: Int64 = 1_000_000_000
    /// Attempts in a row that fail while frames come: a worker that is being started again has its socket sooner.
    private static let patience = 3
    private static let maximumMessageBytes = 65536

    /// - Parameters:
    ///   - path: the device's socket for rings.
    ///   - rendition: as in the topic.
    init(_ path: String, rendition: String) {
        self.path = path
        let json: JSONValue = ["rendition": .string(rendition)]
        request = json.serialized
        state.withLock { connect(&$0) }
    }

    /// Ends the connection. What was found stays.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.socket = nil
            state.ring = nil
        }
    }

    /// No ring can be had, again and again.
    var isHopeless: Bool { state.withLock { $0.failures >= Self.patience } }

    func find(_ place: FrameHeader.Buffer) -> Finding {
        let ring = state.withLock { state in
            if state.ring?.plan.description.ring != place.ring { receive(&state) }
            return state.ring
        }
        guard let ring, ring.plan.description.ring == place.ring else { return .gone }
        guard
            let picture = ring.picture(
                slot: place.slot, offset: place.offset, bytes: place.bytes, stamp: place.stamp)
        else { return .nonsense }
        if picture.isIntact { return .picture(picture) }
        late.add()
        return .gone
    }

    private func connect(_ state: inout State) {
        let now = MonotonicClock.now()
        guard state.socket == nil, !state.isClosed, now >= state.nextAttempt else { return }
        state.nextAttempt = now + Self.retry
        do throws(SystemError) {
            let socket = try PacketSocket(connectingTo: path)
            guard try socket.send(request) else { return fail(&state) }
            state.socket = socket
        } catch {
            fail(&state)
        }
    }

    private func fail(_ state: inout State) {
        state.socket = nil
        state.failures += 1
    }

    // Bounded: a worker that says much must not hold the caller.
    private func receive(_ state: inout State) {
        for _ in 0..<64 {
            connect(&state)
            guard let socket = state.socket else { return }
            let packet: Packet?
            do throws(SystemError) {
                packet = try socket.receive(maximumBytes: Self.maximumMessageBytes)
            } catch {
                return fail(&state)
            }
            guard let packet else { return }
            if packet.isEnd {
                // The worker has gone, or has cut us off for not reading: it, or the next one, is asked again.
                state.socket = nil
                continue
            }
            if let descriptor = packet.descriptor {
                guard let ring = try? RingMap(descriptor) else { return fail(&state) }
                state.ring = ring
                state.failures = 0
                continue
            }
            // An error comes by message too. A ring without its descriptor, which this process had no room for, is
            // none.
            let json = packet.bytes.withUnsafeBytes { try? JSONValue(parsing: $0) }
            guard let error = json?["error"] else { return fail(&state) }
            // This user's programs have as much shared memory as one user may.
            if error["data"]?["limit"] == "ringBytes" { state.failures = Self.patience }
        }
    }
}
