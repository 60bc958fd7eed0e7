import Synchronization

/// A frame, with the name of its device.
public struct HostFrame: Sendable {
    /// `rig/cam0`.
    public var name: String
    public var frame: Frame
}

/// The frames of several machines' devices, the newest of each first of all, in turn.
///
/// Ends by an error only. The subscriptions last as long as this value lives.
public final class HostFrames: AsyncSequence, Sendable {
    public typealias Element = HostFrame
    public typealias Failure = BusesError

    struct Source: Sendable {
        var place: Buses.Place
        var frames: Frames
    }

    /// What a device gave.
    struct Arrival: Sendable {
        var place: Buses.Place
        var outcome: Result<Frame, ClientError>
    }

    private struct State: Sendable {
        var turn = 0
        var lost: [String: UInt64] = [:]
    }

    private let sources: [Source]
    private let bell: Mailbox<Void>
    private let state = Mutex(State())

    /// - Parameters:
    ///   - sources: at least one.
    ///   - bell: into which something is put whenever a frame of any has come.
    init(_ sources: [Source], bell: Mailbox<Void>) {
        self.sources = sources
        self.bell = bell
    }

    /// The devices, each `host/device`.
    public var names: [String] { sources.map(\.place.name) }

    /// Frames missed so far (``Frame/lost``), by `host/device`.
    public var lost: [String: UInt64] { state.withLock(\.lost) }

    /// Ends the subscriptions; who waits gets ``ClientError/closed``.
    public func close() { for source in sources { source.frames.close() } }

    /// The next frame of any of them.
    ///
    /// - Throws: what ``Frames/next()`` of that device does, with its host. It may be asked again, for the others.
    public func next() async throws(BusesError) -> HostFrame {
        let arrival = try await nextArrival()
        switch arrival.outcome {
        case .success(let frame): return HostFrame(name: arrival.place.name, frame: frame)
        case .failure(let error): throw .at(host: arrival.place.member.host, error)
        }
    }

    func nextArrival() async throws(BusesError) -> Arrival {
        while true {
            if let arrival = await poll() {
                // There may be more, for who else waits.
                bell.put(())
                return arrival
            }
            do throws(ClientError) {
                try await bell.next()
            } catch {
                throw .cancelled
            }
        }
    }

    private func poll() async -> Arrival? {
        let turn = state.withLock(\.turn)
        for step in sources.indices {
            let index = (turn + step) % sources.count
            let source = sources[index]
            let outcome: Result<Frame, ClientError>
            do throws(ClientError) {
                guard let frame = try await source.frames.poll() else { continue }
                outcome = .success(frame)
            } catch {
                outcome = .failure(error)
            }
            let lost = (try? outcome.get())?.lost ?? 0
            state.withLock { state in
                state.turn = (index + 1) % sources.count
                state.lost[source.place.name, default: 0] &+= lost
            }
            return Arrival(place: source.place, outcome: outcome)
        }
        return nil
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let frames: HostFrames

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(BusesError) -> HostFrame? {
            try await frames.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(frames: self) }
}

extension Buses {
    /// Subscribes to frames of several machines' devices; on return the subscriptions are in force.
    ///
    /// - Parameters:
    ///   - names: each `host/device`.
    ///   - rendition: as for ``Client/frames(_:_:shared:newest:silence:timeout:)``, as are the others.
    ///   - silence: of each device. One that was silent for so long ends for good.
    public func frames(
        _ names: [String], _ rendition: String? = nil, newest: Int = 1, silence: Duration? = nil,
        timeout: Duration = Client.defaultTimeout
    ) async throws(BusesError) -> HostFrames {
        let bell = Mailbox<Void>(capacity: 1)
        var sources: [HostFrames.Source] = []
        for place in try places(names) {
            do throws(ClientError) {
                let frames = try await place.member.client.frames(
                    place.device, rendition, shared: false, newest: newest, silence: silence, timeout: timeout,
                    bell: bell)
                sources.append(HostFrames.Source(place: place, frames: frames))
            } catch {
                throw .at(host: place.member.host, error)
            }
        }
        return HostFrames(sources, bell: bell)
    }
}
