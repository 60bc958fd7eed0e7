import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Logging

/// Makes the device misbehave as ordered, at once or at the times of a script.
final class FaultInjector {
    typealias Finish = (Result<JSONValue, BusError>) -> Void

    /// Has the device suffer something, and calls its last argument once.
    typealias Injection = (VirtualFault, @escaping (Result<Void, BusError>) -> Void) -> Void

    private let loop: Loop
    private let suffer: Injection
    private let logger: Logger
    private var script: FaultScript?
    private var timer: Loop.Token?
    /// When an unplugged device is to be plugged in again.
    private var replugTimer: Loop.Token?
    private var isUnplugged = false
    /// When the simulated pressure ends.
    private var pressureTimer: Loop.Token?
    private(set) var pressure = SystemPressureState.nominal
    /// The number of scripts so far: the result of a step belongs to its own script only.
    private var era = 0

    /// Whether the device is known to be gone, for whatever reason.
    var isGone: (() -> Bool)?
    /// ``pressure`` has changed.
    var onPressure: (() -> Void)?
    /// The device has come or gone, and has to be looked at.
    var onPresence: (() -> Void)?

    init(_ loop: Loop, logger: Logger, _ suffer: @escaping Injection) {
        self.loop = loop
        self.suffer = suffer
        self.logger = logger
    }

    /// Carries out {fault, …}, {script: […]}, {list} or {cancel}.
    func handle(_ json: JSONValue, _ finish: @escaping Finish) {
        do throws(BusError) {
            if let steps = json["script"] {
                try run(steps)
                finish(.success(["started": .integer(script?.started ?? 0)]))
            } else if json["list"] != nil {
                finish(.success(["script": script?.json ?? .null]))
            } else if json["cancel"] != nil {
                finish(.success(["cancelled": .bool(cancel())]))
            } else {
                let milliseconds = json["milliseconds"]?.integer
                inject(try VirtualFault(json: json), milliseconds: milliseconds) { finish($0.map { [:] }) }
            }
        } catch {
            finish(.failure(error))
        }
    }

    /// Begins a script, in the place of one that may run.
    func run(_ steps: JSONValue) throws(BusError) {
        let script = try FaultScript(json: steps, at: MonotonicClock.now())
        cancel()
        era += 1
        self.script = script
        arm()
    }

    /// Steps that are not due yet will not come. What was suffered stays.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    private func cancel() -> Bool {
        loop.cancel(timer)
        timer = nil
        defer { script = nil }
        return script?.nextTime != nil
    }

    private func arm() {
        timer = script?.nextTime.map { time in loop.schedule(at: time) { [weak self] in self?.step() } }
    }

    private func step() {
        timer = nil
        let begun = era
        for index in script?.due(at: MonotonicClock.now()) ?? [] {
            guard let step = script?.steps[index] else { continue }
            inject(step.fault, milliseconds: step.json["milliseconds"]?.integer) { [weak self] result in
                guard let self else { return }
                var state = FaultScript.State.done
                if case .failure(let error) = result {
                    state = .failed(error.message)
                    logger.warning("a fault could not be injected", metadata: ["error": "\(error.message)"])
                }
                if begun == era { script?.finish(index, state) }
            }
        }
        arm()
    }

    private func inject(
        _ fault: VirtualFault, milliseconds: Int64?, _ finish: @escaping (Result<Void, BusError>) -> Void
    ) {
        suffer(fault) { [weak self] result in
            if let self, case .success = result {
                if fault.changesPresence { presence(fault, milliseconds: milliseconds) }
                press(fault)
            }
            finish(result)
        }
    }

    private func press(_ fault: VirtualFault) {
        let (level, milliseconds): (SystemPressureLevel, Int?)
        switch fault {
        case .pressure(let wanted, let time): (level, milliseconds) = (wanted, time)
        case .none: (level, milliseconds) = (.nominal, nil)
        default: return
        }
        loop.cancel(pressureTimer)
        pressureTimer = milliseconds.map { time in
            loop.schedule(afterMilliseconds: Int64(time)) { [weak self] in
                self?.press(.pressure(level: .nominal, milliseconds: nil))
            }
        }
        let before = pressure
        pressure = SystemPressureState([.cameraTemperature: level])
        if pressure != before { onPressure?() }
    }

    private func presence(_ fault: VirtualFault, milliseconds: Int64?) {
        loop.cancel(replugTimer)
        replugTimer = nil
        let wasGone = isUnplugged || (fault == .replug && isGone?() == true)
        isUnplugged = fault == .unplug
        if wasGone != isUnplugged { onPresence?() }
        guard isUnplugged, let milliseconds else { return }
        replugTimer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
            self?.replugTimer = nil
            self?.inject(.replug, milliseconds: nil) { _ in }
        }
    }
}
