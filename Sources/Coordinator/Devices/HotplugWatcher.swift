import BusServer
import CaptureCore
import LinuxIO
import Logging
import Udev
import ZeroMQ

/// Has devices searched for whenever one may have come or gone.
final class HotplugWatcher {
    /// Looks at what there is, and then calls the completion, false when that failed.
    ///
    /// `removed`: nodes that have gone since the last search, though another may have their name by now.
    typealias Search = (_ removed: Set<String>, _ completion: @escaping (Bool) -> Void) -> Void

    private let loop: Loop
    private let logger: Logger
    private var monitors: [DeviceMonitor] = []
    private var schedule = SearchSchedule()
    private var timer: Loop.Token?
    private var removed: Set<String> = []
    private var hasListened = false
    var search: Search?

    /// When a search that failed is done again, milliseconds.
    private static let retryInterval: Int64 = 5000
    /// Events that are taken in one turn of the loop.
    private static let eventsPerTurn = 64

    init(_ loop: Loop, logger: Logger) {
        self.loop = loop
        self.logger = logger
    }

    /// Listens from now on. If that fails, it is logged once; searches on demand still work.
    func listen() {
        guard !hasListened else { return }
        hasListened = true
        for subsystem in ["video4linux", "sound"] { listen(to: subsystem) }
    }

    private func listen(to subsystem: String) {
        do {
            let monitor = try DeviceMonitor(subsystem: subsystem)
            monitors.append(monitor)
            logger.debug(
                "listening for devices",
                metadata: ["subsystem": "\(subsystem)", "source": "\(monitor.source.rawValue)"])
            loop.watch(.descriptor(monitor.descriptor)) { [weak self] in self?.readEvents(monitor) }
        } catch {
            logger.warning(
                "devices that come or go are not noticed; SIGHUP searches for them",
                metadata: ["subsystem": "\(subsystem)", "error": "\(error)"])
        }
    }

    /// Searches now, or as soon as the search under way has ended.
    func demand() { perform(schedule.demand(at: MonotonicClock.now())) }

    private func readEvents(_ monitor: DeviceMonitor) {
        for _ in 0..<Self.eventsPerTurn {
            guard let event = monitor.next() else { return }
            logger.debug(
                "device event", metadata: ["action": "\(event.action ?? "lost")", "node": "\(event.node ?? "")"])
            if event.action == "remove", let node = event.node { removed.insert(node) }
            perform(schedule.event(at: MonotonicClock.now()))
        }
    }

    private func perform(_ actions: [SearchSchedule.Action]) {
        for action in actions {
            loop.cancel(timer)
            timer = nil
            switch action {
            case .wake(let time):
                timer = loop.schedule(at: time) { [weak self] in
                    guard let self else { return }
                    perform(schedule.due(at: MonotonicClock.now()))
                }
            case .search:
                let gone = removed
                removed = []
                search?(gone) { [weak self] isDone in self?.finished(isDone, gone) }
            }
        }
    }

    private func finished(_ isDone: Bool, _ gone: Set<String>) {
        if !isDone {
            removed.formUnion(gone)
            loop.schedule(afterMilliseconds: Self.retryInterval) { [weak self] in self?.demand() }
        }
        perform(schedule.finished(at: MonotonicClock.now()))
    }
}
