import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Has a short-lived worker process list the machine's cameras and microphones. The coordinator never opens a device:
/// that may hang.
final class DeviceSearch {
    private let loop: Loop
    private let program: String
    private let logger: Logger

    /// Searches that were given up and have not ended yet; a driver can hold even a killed process.
    private var unreaped: [ObjectIdentifier: ProcessOutput] = [:]
    private static let maximumUnreaped = 4
    private var whenEnded: (() -> Void)?

    init(_ loop: Loop, program: String, logger: Logger) {
        self.loop = loop
        self.program = program
        self.logger = logger
    }

    /// Calls the body with the devices found; nil when the search fails, which is logged.
    func run(_ body: @escaping (CameraSurvey?) -> Void) {
        guard unreaped.count < Self.maximumUnreaped else {
            logger.error("cameras can't be searched for: a driver keeps the searches before from ending")
            return body(nil)
        }
        let output: ProcessOutput
        do {
            output = try ProcessOutput(program: program, arguments: ["--list"])
        } catch {
            logger.error("cameras can't be searched for", metadata: ["error": "\(error)"])
            return body(nil)
        }
        var token: Loop.Token?
        // It reports once, at its end: a driver that holds it for longer than the limit is not waited for.
        var watcher: HangWatcher?
        unreaped[ObjectIdentifier(output)] = output
        let finish: () -> Void = { [weak self, loop, logger] in
            loop.cancel(token)
            watcher?.end()
            watcher = nil
            // A driver may keep even a killed process for as long as it likes: it is reaped when it ends, and not
            // waited for.
            var ending: Loop.Token?
            ending = loop.watch(.descriptor(output.process.rawValue)) {
                output.reap()
                loop.cancel(ending)
                self?.reaped(output)
            }
            // It may still write, or hang, and nobody reads it any more.
            if !output.isComplete { output.kill() }
            let parsed = output.bytes.withUnsafeBytes { try? JSONValue(parsing: $0) }
            guard output.isComplete, let survey = parsed.flatMap(CameraSurvey.init(json:)) else {
                logger.error("the search for cameras gave no list")
                return body(nil)
            }
            body(survey)
        }
        token = loop.watch(.descriptor(output.rawValue)) {
            if output.read() { finish() }
        }
        watcher = HangWatcher(loop) {
            output.process.pid
        } onSlow: { [logger] hold, seconds in
            logger.warning("the search for cameras has not ended for \(seconds) s: \(hold.rawValue)")
        } onHang: { [logger] in
            logger.error("the search for cameras makes no progress and is killed")
            output.kill()
            finish()
        }
        watcher?.begin()
    }

    /// Ends the searches that are under way, and calls the body when they have ended, or after a second: then a driver
    /// keeps one.
    func stop(then body: @escaping () -> Void) {
        guard !unreaped.isEmpty else { return body() }
        whenEnded = body
        for search in unreaped.values { search.kill() }
        loop.schedule(afterMilliseconds: 1000) { [weak self] in self?.tellEnded() }
    }

    private func reaped(_ search: ProcessOutput) {
        unreaped[ObjectIdentifier(search)] = nil
        if unreaped.isEmpty { tellEnded() }
    }

    private func tellEnded() {
        whenEnded?()
        whenEnded = nil
    }
}
