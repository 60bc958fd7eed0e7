import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Turns a control of cameras on for sessions and movies, and off again, whatever happens between: that it is on for them alone is in
/// the device book, so that neither a lock in the way nor the end of this process leaves it on for good.
final class ControlLoanDesk {
    let loan: ControlLoan
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
    /// Who wait, by `uniqueID`, to know whether it has been turned on.
    private var waiting: [String: [(lock: Lock?, body: (_ isOn: Bool) -> Void)]] = [:]
    /// Devices, by `uniqueID`, with a change under way.
    private var busy: Set<String> = []
    /// The same, when what failed is tried again.
    private var retries: [String: Loop.Token] = [:]

    /// When a device that could not be set is tried again, milliseconds.
    private static let retryInterval: Int64 = 2000

    init(
        _ loan: ControlLoan, _ loop: Loop, _ books: BookKeeper, logger: Logger,
        worker: @escaping (_ device: String) -> Worker?,
        workerOf: @escaping (_ uniqueID: String) -> Worker?,
        isHeld: @escaping (_ device: String) -> Bool,
        carryOut: @escaping (_ change: JSONValue, _ device: String, Lock?, @escaping Responder) -> Void,
        whenDone: @escaping (_ device: String, _ isOpen: Bool) -> Void
    ) {
        self.loan = loan
        self.loop = loop
        self.books = books
        self.logger = logger
        self.worker = worker
        self.workerOf = workerOf
        self.isHeld = isHeld
        self.carryOut = carryOut
        self.whenDone = whenDone
    }

    /// Whether it was turned on for sessions or movies, and not off since.
    func isOwed(_ device: String) -> Bool {
        worker(device).map { books.book[$0.device.identity.uniqueID]?[keyPath: loan.mark] ?? false } ?? false
    }

    /// Turns it on, and tells when that has been done, or can't be.
    func turnOn(_ device: String, lock: Lock?, then body: @escaping (_ isOn: Bool) -> Void) {
        guard let uniqueID = worker(device)?.device.identity.uniqueID else { return body(false) }
        if busy.contains(uniqueID) || turnOn(device, lock: lock) && busy.contains(uniqueID) {
            waiting[uniqueID, default: []].append((lock, body))
        } else {
            body(worker(device)?.value(of: loan) == loan.on)
        }
    }

    /// Turns it on.
    ///
    /// - Parameter lock: under which it is done; nil: one for just this.
    /// - Returns: false: it can't be done now, and is to be asked for again when the device, or its lock, is otherwise.
    func turnOn(_ device: String, lock: Lock?) -> Bool {
        guard let worker = ready(device, loan.on, lock) else { return false }
        // One that was on before the sessions came is on when they have gone.
        guard worker.value(of: loan) != loan.on else { return true }
        let identity = worker.device.identity
        mark(identity, true)
        busy.insert(identity.uniqueID)
        // On the disk before it is so: whoever comes after this process knows whom it is on for. Where nothing is kept at all, what is
        // set isn't either.
        books.save { [weak self] isKept in
            guard let self else { return }
            guard isKept || books.directory == nil else { return turnedOn(identity, Self.notWritten, mayPass: true) }
            set(loan.on, identity, lock) { [weak self] error in
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
        let told = waiting.removeValue(forKey: identity.uniqueID) ?? []
        loop.schedule(at: 0) { for one in told { one.body(error == nil) } }
        done(identity, isOpen: false)
    }

    private static let notWritten = BusError(
        .internalError, "That it is on for the bus's own sake could not be written to the disk.")

    /// Turns it off if it was turned on for sessions or movies; what is in the way is waited for. It is not held against a client that has set the
    /// control itself.
    func turnOff(_ device: String, lock: Lock?) {
        guard isOwed(device), let worker = ready(device, loan.off, lock) else { return }
        let identity = worker.device.identity
        guard worker.value(of: loan) != loan.off else { return mark(identity, false) }
        busy.insert(identity.uniqueID)
        set(loan.off, identity, lock) { [weak self] error in
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
    private func ready(_ device: String, _ value: JSONValue, _ lock: Lock?) -> Worker? {
        guard let worker = worker(device), worker.isRunning, !busy.contains(worker.device.identity.uniqueID),
            retries[worker.device.identity.uniqueID] == nil,
            loan.isSupported(worker.status["supports"]?[loan.control.rawValue] ?? false, value),
            lock != nil || !isHeld(device)
        else { return nil }
        return worker
    }

    private func set(
        _ value: JSONValue, _ identity: DeviceIdentity, _ lock: Lock?, _ body: @escaping (BusError?) -> Void
    ) {
        guard let device = workerOf(identity.uniqueID)?.device.id else {
            return body(BusError(.deviceNotFound, "The device has gone."))
        }
        let change: JSONValue = [
            "device": .string(device), "controls": .object([loan.control.rawValue: value]),
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
            "\(loan.name) can't be set for sessions",
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
        // It was being turned off when they came.
        for one in waiting.removeValue(forKey: uniqueID) ?? [] {
            guard let device = workerOf(uniqueID)?.device.id else {
                one.body(false)
                continue
            }
            turnOn(device, lock: one.lock, then: one.body)
        }
        if let worker = workerOf(uniqueID) { whenDone(worker.device.id, isOpen) }
    }

    private func mark(_ identity: DeviceIdentity, _ isLent: Bool) {
        guard (books.book[identity.uniqueID]?[keyPath: loan.mark] ?? false) != isLent else { return }
        books.change { [loan] book in
            book.update(identity.uniqueID, name: identity.localizedName, at: BookKeeper.now) {
                $0[keyPath: loan.mark] = isLent
            }
        }
    }
}

/// A camera control that the bus turns on for sessions or movies.
enum ControlLoan: CaseIterable {
    case stabilization, smoothFocus

    var control: CameraControlName { self == .stabilization ? .videoStabilizationMode : .smoothAutoFocusEnabled }

    var on: JSONValue { self == .stabilization ? "standard" : true }
    var off: JSONValue { self == .stabilization ? "off" : false }

    /// What clients set it by.
    var names: Set<String> {
        [control.rawValue, self == .stabilization ? "image_stabilization" : "smooth_focus"]
    }

    /// For the log.
    var name: String { self == .stabilization ? "stabilization" : "smooth focus" }

    var mark: WritableKeyPath<DeviceTable.Entry, Bool> { self == .stabilization ? \.isStabilized : \.isSmooth }

    /// - Parameter supports: of the device: false, true, or the words that it takes.
    func isSupported(_ supports: JSONValue, _ value: JSONValue) -> Bool {
        supports.bool ?? supports.array?.contains(value) ?? false
    }
}

extension Worker {
    func value(of loan: ControlLoan) -> JSONValue? { status["controls"]?[loan.control.rawValue] }
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
