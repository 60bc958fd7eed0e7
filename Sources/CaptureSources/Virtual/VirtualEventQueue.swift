import LinuxIO
import Synchronization

/// What a virtual camera tells, held as a driver does: one event for each control, which stands for all its changes.
final class VirtualEventQueue: DeviceEventQueue, Sendable {
    private let ready: EventDescriptor
    private let waiting = Mutex<[ControlEvent]>([])
    private let failure = Mutex<SourceError?>(nil)

    init() throws(SourceError) {
        do { ready = try EventDescriptor() } catch {
            throw SourceError(
                .noResources, operation: "VIDIOC_SUBSCRIBE_EVENT", errno: error.code, message: error.description)
        }
    }

    var descriptor: Int32 { ready.rawValue }
    var isUrgent: Bool { false }

    /// Called on the device thread.
    func tell(_ event: ControlEvent) {
        waiting.withLock { waiting in
            if let index = waiting.firstIndex(where: { $0.id == event.id }) {
                let old = waiting.remove(at: index)
                waiting.append(
                    ControlEvent(
                        id: event.id, value: event.value ?? old.value, flags: event.flags ?? old.flags,
                        time: event.time))
            } else {
                waiting.append(event)
            }
            ready.signal()
        }
    }

    /// The device is gone. The descriptor stays readable.
    func fail(_ error: SourceError) {
        failure.withLock { $0 = error }
        ready.signal()
    }

    func next() throws(SourceError) -> DeviceEvent? {
        if let failure = failure.withLock({ $0 }) { throw failure }
        return waiting.withLock { waiting in
            guard !waiting.isEmpty else {
                ready.drain()
                return nil
            }
            return .control(waiting.removeFirst())
        }
    }
}
