import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Turns the stabilization of devices on for sessions, and off again, whatever happens between: that it is on for sessions alone is in
/// the device book, so that neither a lock in the way nor the end of this process leaves it on for good.
final class StabilizationDesk {
    private let loop: Loop
    private let books: BookKeeper
    private let logger: Logger
    private let worker: (_ device: String) -> Worker?
    /// Of a `uniqueID`: while something is under way the device may get another name.
    private let workerOf: (_ uniqueID: String) -> Worker?
    /// Whether a client has locked the device.
    private let isHeld: (_ device: String) -> Bool
    private let carryOut: (_ change: JSONValue, _ device: String, Lock?, @escaping Responder) -> Void
    /// Told when a change has ended, or may be tried again (then true): what is preferred by then counts.
    private let whenDone: (_ device: String, _ isOpen: Bool) -> Void
    /// Devices, by `uniqueID`, with a change under way.
    private var busy: Set<String> = []
    /// The same, when what failed is tried again.
    private var retries: [String: Loop.Token] = [:]

    /// When a device that could not be set is tried again, milliseconds.
    private static let retryInterval: Int64 = 2000

    init(
        _ loop: Loop, _ books: BookKeeper, logger: Logger, worker: @escaping (_ device: String) -> Worker?,
        workerOf: @escaping (_ uniqueID: String) -> Worker?,
        isHeld: @escaping (_ device: String) -> Bool,
        carryOut: @escaping (_ change: JSONValue, _ device: String, Lock?, @escaping Responder) -> Void,
        whenDone: @escaping (_ device: String, _ isOpen: Bool) -> Void
    ) {
        self.loop = loop
        self.books = books
        self.logger = logger
        self.worker = worker
        self.workerOf = workerOf
        self.isHeld = isHeld
        self.carryOut = carryOut
        self.whenDone = whenDone
    }

    /// Whether it was turned on for sessions, and not off since.
    func isOwed(_ device: String) -> Bool {
        worker(device).map { books.book[$0.device.identity.uniqueID]?.isStabilized ?? false } ?? false
    }

    /// Turns it on.
    ///
    /// - Parameter lock: under which it is done; nil: one for just this.
    /// - Returns: false: it can't be done now, and is to be asked for again when the device, or its lock, is otherwise.
    func turnOn(_ device: String, lock: Lock?) -> Bool {
        guard let worker = ready(device, "standard", lock) else { return false }
        // One that was on before the sessions came is on when they have gone.
        guard worker.stabilization != "standard" else { return true }
        let identity = worker.device.identity
        mark(identity, true)
        busy.insert(identity.uniqueID)
        // On the disk before it is so: whoever comes after this process knows whom it is on for. Where nothing is kept at all, what is
        // set isn't either.
        books.save { [weak self] isKept in
            guard let self else { return }
            guard isKept || books.directory == nil else { return turnedOn(identity, Self.notWritten, mayPass: true) }
            set("standard", identity, lock) { [weak self] error in
                self?.turnedOn(identity, error, mayPass: error?.mayPass ?? false)
            }
        }
        return true
    }

    private func turnedOn(_ identity: DeviceIdentity, _ error: BusError?, mayPass: Bool) {
        busy.remove(identity.uniqueID)
        if let error {
            mark(identity, false)
            failed(identity, error, mayPass: mayPass)
        }
        done(identity, isOpen: false)
    }

    private static let notWritten = BusError(
        .internalError, "That it is on for sessions could not be written to the disk.")

    /// Turns it off if sessions had it turned on; what is in the way is waited for. It is not held against a client that has set the
    /// control itself.
    func turnOff(_ device: String, lock: Lock?) {
        guard isOwed(device), let worker = ready(device, "off", lock) else { return }
        let identity = worker.device.identity
        guard worker.stabilization != "off" else { return mark(identity, false) }
        busy.insert(identity.uniqueID)
        set("off", identity, lock) { [weak self] error in
            guard let self else { return }
            busy.remove(identity.uniqueID)
            let staysOwed = error.map { self.failed(identity, $0, mayPass: $0.mayPass) } ?? false
            if !staysOwed { mark(identity, false) }
            done(identity, isOpen: !staysOwed)
        }
    }

    /// A client has set it meanwhile: it is as it is to be.
    func forget(_ device: String) {
        if let worker = worker(device) { mark(worker.device.identity, false) }
    }

    // Another who has locked the device decides; it is looked at again when that has ended.
    private func ready(_ device: String, _ word: String, _ lock: Lock?) -> Worker? {
        guard let worker = worker(device), worker.isRunning, !busy.contains(worker.device.identity.uniqueID),
            retries[worker.device.identity.uniqueID] == nil,
            worker.status["supports"]?["videoStabilizationMode"]?.array?.contains(.string(word)) ?? false,
            lock != nil || !isHeld(device)
        else { return nil }
        return worker
    }

    private func set(_ word: String, _ identity: DeviceIdentity, _ lock: Lock?, _ body: @escaping (BusError?) -> Void) {
        guard let device = workerOf(identity.uniqueID)?.device.id else {
            return body(BusError(.deviceNotFound, "The device has gone."))
        }
        let change: JSONValue = [
            "device": .string(device), "controls": ["videoStabilizationMode": .string(word)],
        ]
        carryOut(change, device, lock) { result in
            if case .failure(let error) = result { body(error) } else { body(nil) }
        }
    }

    /// - Returns: whether it is tried again.
    @discardableResult
    private func failed(_ identity: DeviceIdentity, _ error: BusError, mayPass: Bool) -> Bool {
        let uniqueID = identity.uniqueID
        logger.notice(
            "stabilization can't be set for sessions",
            metadata: [
                "device": "\(workerOf(uniqueID)?.device.id ?? identity.localizedName)", "error": "\(error.message)",
            ])
        guard mayPass else { return false }
        retries[uniqueID] = loop.schedule(afterMilliseconds: Self.retryInterval) { [weak self] in
            self?.retries[uniqueID] = nil
            self?.tellDone(uniqueID, isOpen: true)
        }
        return true
    }

    // Not from within: it may be done before whoever asked for it goes on.
    private func done(_ identity: DeviceIdentity, isOpen: Bool) {
        loop.schedule(at: 0) { [weak self] in self?.tellDone(identity.uniqueID, isOpen: isOpen) }
    }

    private func tellDone(_ uniqueID: String, isOpen: Bool) {
        if let worker = workerOf(uniqueID) { whenDone(worker.device.id, isOpen) }
    }

    private func mark(_ identity: DeviceIdentity, _ isStabilized: Bool) {
        guard (books.book[identity.uniqueID]?.isStabilized ?? false) != isStabilized else { return }
        books.change { book in
            book.update(identity.uniqueID, name: identity.localizedName, at: BookKeeper.now) {
                $0.isStabilized = isStabilized
            }
        }
    }
}

extension BusError {
    /// Whether what keeps a device from being set may be over in a while.
    var mayPass: Bool {
        switch reason {
        case .deviceBusy, .lockTimeout, .lockLost, .lockRequired, .workerCrashed, .deviceDisconnected, .deviceInUse,
            .limitExceeded, .shuttingDown, .deviceNotFound, .cancelled:
            true
        default: false
        }
    }
}
