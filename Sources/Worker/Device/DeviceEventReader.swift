import BusServer
import CaptureSources
import Logging
import ZeroMQ

/// Reads a device's events on the loop. After each batch it pauses, while the driver collects: a device with thousands
/// of events a second costs no more than one with ten.
final class DeviceEventReader {
    private let queue: any DeviceEventQueue
    private let loop: Loop
    private var token: Loop.Token?
    private var restTimer: Loop.Token?
    private let logger: Logger
    private var emptyWakes = 0
    private var isDoubtTold = false

    var onEvents: (([DeviceEvent]) -> Void)?
    /// The device is gone.
    var onLost: ((SourceError) -> Void)?

    private static let rest: Int64 = 100
    /// More than any device has controls; what is left waits for the next turn.
    private static let eventsPerTurn = 1024
    /// The pause for a driver that announces events and has none.
    private static let longRest: Int64 = 5000
    /// Wakes in a row without an event after which a driver's readiness is not believed any more.
    private static let maximumEmptyWakes = 10

    init(_ queue: any DeviceEventQueue, _ loop: Loop, _ logger: Logger) {
        self.logger = logger
        self.queue = queue
        self.loop = loop
        watch()
    }

    /// Waits for no more events, and releases the device.
    func end() {
        loop.cancel(token)
        loop.cancel(restTimer)
        token = nil
        restTimer = nil
    }

    private func watch() {
        token = loop.watch(queue.isUrgent ? .urgent(queue.descriptor) : .descriptor(queue.descriptor)) { [weak self] in
            self?.take()
        }
    }

    private func take() {
        var events: [DeviceEvent] = []
        do throws(SourceError) {
            while events.count < Self.eventsPerTurn, let event = try queue.next() { events.append(event) }
        } catch {
            end()
            onLost?(error)
            return
        }
        loop.cancel(token)
        token = nil
        emptyWakes = events.isEmpty ? emptyWakes + 1 : 0
        let isDoubted = emptyWakes >= Self.maximumEmptyWakes
        if isDoubted {
            emptyWakes = Self.maximumEmptyWakes
            if !isDoubtTold { logger.warning("the driver announces events but has none; it is now polled less often") }
            isDoubtTold = true
        }
        restTimer = loop.schedule(afterMilliseconds: isDoubted ? Self.longRest : Self.rest) { [weak self] in
            self?.restTimer = nil
            self?.watch()
        }
        if !events.isEmpty { onEvents?(events) }
    }
}
