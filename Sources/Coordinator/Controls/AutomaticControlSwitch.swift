import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Carries out the changes of an automatic control, and acts on their ends.
protocol AutomaticControlOwner: AnyObject {
    /// A client's lock on the device.
    func held(_ device: String) -> Lock?
    func carryOut(
        _ change: JSONValue, of device: String, _ lock: Lock?, then body: @escaping Responder)
    /// A change has ended, or may be tried again (`isOpen`). The preference at this time counts.
    func automaticControlChanged(_ control: AutomaticControl, _ device: String, isOpen: Bool)
}

/// Needs automatic controls turned on, apart from the sessions.
protocol AutomaticControlUser: AnyObject {
    func isNeeded(_ control: AutomaticControl, _ device: String) -> Bool
}

/// Turns a control of cameras on for sessions and movies, and off again. That it is on for them alone is in the device
/// table, so that neither another client's lock nor the end of this process leaves it on for good.
final class AutomaticControlSwitch {
    let control: AutomaticControl
    private let loop: Loop
    private let deviceStore: DeviceStore
    private let workers: WorkerSupervisor
    private unowned let owner: any AutomaticControlOwner
    private let logger: Logger
    /// Who wait, by `uniqueID`, to know whether it has been turned on.
    private var waiting: [String: [(lock: Lock?, body: (_ isOn: Bool) -> Void)]] = [:]
    /// Devices, by `uniqueID`, with a change under way.
    private var busy: Set<String> = []
    /// The same, when what failed is tried again.
    private var retries: [String: Loop.Token] = [:]

    /// When a device that could not be set is tried again, milliseconds.
    private static let retryInterval: Int64 = 2000

    init(
        _ control: AutomaticControl, _ loop: Loop, _ deviceStore: DeviceStore, _ workers: WorkerSupervisor,
        _ owner: any AutomaticControlOwner, logger: Logger
    ) {
        self.control = control
        self.loop = loop
        self.deviceStore = deviceStore
        self.workers = workers
        self.owner = owner
        self.logger = logger
    }

    private func worker(_ device: String) -> WorkerHandle? { workers[device] }

    /// While a change is under way the device may get another name.
    private func workerOf(_ uniqueID: String) -> WorkerHandle? { workers.worker(of: uniqueID) }

    /// Whether it was turned on for sessions or movies, and not off since.
    func isOwed(_ device: String) -> Bool {
        worker(device).map { deviceStore.table[$0.device.identity.uniqueID]?[keyPath: control.mark] ?? false } ?? false
    }

    /// Turns it on, and tells when that has been done, or can't be.
    func turnOn(_ device: String, lock: Lock?, then body: @escaping (_ isOn: Bool) -> Void) {
        guard let uniqueID = worker(device)?.device.identity.uniqueID else { return body(false) }
        if busy.contains(uniqueID) || turnOn(device, lock: lock) && busy.contains(uniqueID) {
            waiting[uniqueID, default: []].append((lock, body))
        } else {
            body(worker(device)?.value(of: control) == control.on)
        }
    }

    /// Turns it on.
    ///
    /// - Parameter lock: under which it is done; nil: one for just this.
    /// - Returns: false: it can't be done now, and is to be asked for again when the device, or its lock, is otherwise.
    func turnOn(_ device: String, lock: Lock?) -> Bool {
        guard let worker = ready(device, control.on, lock) else { return false }
        // One that was on before the sessions came is on when they have gone.
        guard worker.value(of: control) != control.on else { return true }
        let identity = worker.device.identity
        mark(identity, true)
        busy.insert(identity.uniqueID)
        // On the disk before it is so: whoever comes after this process knows whom it is on for. Where nothing is kept
        // at all, what is set isn't either.
        deviceStore.save { [weak self] isKept in
            guard let self else { return }
            guard isKept || deviceStore.directory == nil else {
                return turnedOn(identity, Self.notWritten, mayPass: true)
            }
            set(control.on, identity, lock) { [weak self] error in
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
        .internalError,
        "The present value of an automatic control could not be written to the disk, so the control was not "
            + "changed; see the coordinator's log.")

    /// Turns it off if it was turned on for sessions or movies; what is in the way is waited for. It is not held
    /// against a client that has set the control itself.
    func turnOff(_ device: String, lock: Lock?) {
        guard isOwed(device), let worker = ready(device, control.off, lock) else { return }
        let identity = worker.device.identity
        guard worker.value(of: control) != control.off else { return mark(identity, false) }
        busy.insert(identity.uniqueID)
        set(control.off, identity, lock) { [weak self] error in
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
    private func ready(_ device: String, _ value: JSONValue, _ lock: Lock?) -> WorkerHandle? {
        guard let worker = worker(device), worker.isRunning, !busy.contains(worker.device.identity.uniqueID),
            retries[worker.device.identity.uniqueID] == nil,
            control.isSupported(worker.status["supports"]?[control.name.rawValue] ?? false, value),
            lock != nil || owner.held(device) == nil
        else { return nil }
        return worker
    }

    private func set(
        _ value: JSONValue, _ identity: DeviceIdentity, _ lock: Lock?, _ body: @escaping (BusError?) -> Void
    ) {
        guard let device = workerOf(identity.uniqueID)?.device.id else {
            return body(BusError(.deviceNotFound, "The device was disconnected."))
        }
        let change: JSONValue = [
            "device": .string(device), "controls": .object([control.name.rawValue: value]),
        ]
        owner.carryOut(change, of: device, lock) { result in
            if case .failure(let error) = result { body(error) } else { body(nil) }
        }
    }

    /// - Returns: whether it is tried again.
    @discardableResult
    private func failed(_ identity: DeviceIdentity, _ error: BusError, mayPass: Bool) -> Bool {
        let uniqueID = identity.uniqueID
        logger.notice(
            "\(control.title) can't be set for sessions",
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
        if let worker = workerOf(uniqueID) { owner.automaticControlChanged(control, worker.device.id, isOpen: isOpen) }
    }

    private func mark(_ identity: DeviceIdentity, _ isLent: Bool) {
        guard (deviceStore.table[identity.uniqueID]?[keyPath: control.mark] ?? false) != isLent else { return }
        deviceStore.change { [control] table in
            table.update(identity.uniqueID, name: identity.localizedName, at: DeviceStore.now) {
                $0[keyPath: control.mark] = isLent
            }
        }
    }
}

/// A camera control that the bus turns on for sessions or movies.
enum AutomaticControl: CaseIterable {
    case stabilization, smoothFocus

    var name: CameraControlName { self == .stabilization ? .videoStabilizationMode : .smoothAutoFocusEnabled }

    var on: JSONValue { self == .stabilization ? "standard" : true }
    var off: JSONValue { self == .stabilization ? "off" : false }

    /// What clients set it by.
    var names: Set<String> {
        [name.rawValue, self == .stabilization ? "image_stabilization" : "smooth_focus"]
    }

    /// For the log.
    var title: String { self == .stabilization ? "stabilization" : "smooth focus" }

    var mark: WritableKeyPath<DeviceTable.Entry, Bool> { self == .stabilization ? \.isStabilized : \.isSmooth }

    /// - Parameter supports: of the device: false, true, or the words that it takes.
    func isSupported(_ supports: JSONValue, _ value: JSONValue) -> Bool {
        supports.bool ?? supports.array?.contains(value) ?? false
    }
}

extension WorkerHandle {
    func value(of control: AutomaticControl) -> JSONValue? { status["controls"]?[control.name.rawValue] }
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
