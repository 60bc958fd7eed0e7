import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `device.focus`, `expose`, `resetFocusAndExposure`, `zoomRamp`, `cancelZoomRamp`
final class ControlService: MethodService {
    private let resolver: DeviceResolver
    private let clients: ClientRegistry
    private let locks: LockService
    private let configurations: ConfigurationService
    private let exposures: ExposureLockRegistry
    private let access: DeviceAccess
    private let deviceStore: DeviceStore

    init(
        _ resolver: DeviceResolver, _ clients: ClientRegistry, _ locks: LockService,
        _ configurations: ConfigurationService, _ exposures: ExposureLockRegistry, _ access: DeviceAccess,
        _ deviceStore: DeviceStore
    ) {
        self.resolver = resolver
        self.clients = clients
        self.locks = locks
        self.configurations = configurations
        self.exposures = exposures
        self.access = access
        self.deviceStore = deviceStore
    }

    var methods: [String: Handler] {
        [
            "device.focus": .plain(focus), "device.expose": .plain(expose),
            "device.resetFocusAndExposure": .plain(resetFocusAndExposure), "device.zoomRamp": .plain(zoomRamp),
            "device.cancelZoomRamp": .plain(cancelZoomRamp),
        ]
    }

    private func focus(_ call: Call, _ respond: @escaping Responder) {
        let controls: [String: JSONValue] = [
            "focusPointOfInterest": call.params["point"] ?? .null, "focusMode": "autoFocus",
        ]
        underLock(call, respond) { [weak self] worker, fence, respond in
            self?.configurations.setControls(controls, worker.device.id, fence, respond)
        }
    }

    private func expose(_ call: Call, _ respond: @escaping Responder) {
        let controls: [String: JSONValue] = [
            "exposurePointOfInterest": call.params["point"] ?? .null, "exposureMode": "continuousAutoExposure",
        ]
        let wantsLock = call.params["thenLock"]?.bool ?? false
        underLock(call, respond) { [weak self] worker, fence, respond in
            self?.configurations.setControls(controls, worker.device.id, fence) { result in
                guard let self, case .success(let value) = result, var members = value.object else {
                    return respond(result)
                }
                let holder = self.clients.holder(call.caller)
                // A caller that lost its permission meanwhile has nothing locked later on.
                let canLock =
                    worker.status["supports"]?["exposureMode"]?.array?.contains("locked") ?? false
                    && !self.access.isUnauthorized(holder, [worker.device.id])
                members["willLock"] = .bool(wantsLock && canLock)
                // This request replaces an earlier one.
                let isKept =
                    wantsLock && canLock
                    ? self.exposures.begin(worker, caller: holder, fence: fence) : self.exposures.cancel(worker)
                respond(.success(JSONValue.object(members).marked(isKept: isKept)))
                // Only after the call's own lock is given back.
                self.exposures.changed(worker)
            }
        }
    }

    private func resetFocusAndExposure(_ call: Call, _ respond: @escaping Responder) {
        underLock(call, respond) { [weak self] worker, fence, respond in
            guard let self else { return }
            let supports = worker.status["supports"]
            var controls: [String: JSONValue] = [:]
            for (mode, word, point) in [
                ("focusMode", "continuousAutoFocus", "focusPointOfInterest"),
                ("exposureMode", "continuousAutoExposure", "exposurePointOfInterest"),
            ] {
                if supports?[mode]?.array?.contains(.string(word)) ?? false { controls[mode] = .string(word) }
                if supports?[point]?.bool ?? false { controls[point] = ["x": 0.5, "y": 0.5] }
            }
            configurations.setControls(controls, worker.device.id, fence) { [weak self] result in
                guard let self, case .success(let value) = result, var members = value.object else {
                    return respond(result)
                }
                members["reset"] = JSONValue(controls.keys.sorted())
                respond(.success(JSONValue.object(members).marked(isKept: exposures.cancel(worker))))
            }
        }
    }

    private func zoomRamp(_ call: Call, _ respond: @escaping Responder) {
        let target: ZoomRequest.Target
        switch (call.params["factor"]?.double, call.params["value"]?.double) {
        case (let factor?, nil): target = .factor(factor)
        case (nil, let value?): target = .value(value)
        case (nil, nil): return respond(.failure(.invalidParams("factor", "is missing; pass factor or value")))
        case (_?, _?): return respond(.failure(.invalidParams("value", "can't be combined with factor")))
        }
        let wish = ZoomRequest(target: target, rate: call.params["rate"]?.double ?? 1)
        let holder = clients.holder(call.caller)
        underLock(call, respond) { [weak self] worker, fence, respond in
            let owner = ZoomRampOwner(holder: holder, fence: fence)
            worker.order(.rampZoom(wish, by: owner.json), fence: fence) { result in
                guard let self, case .success(let value) = result else { return respond(result) }
                self.configurations.remember(worker)
                self.deviceStore.save { isKept in respond(.success(value.marked(isKept: isKept))) }
            }
        }
    }

    private func cancelZoomRamp(_ call: Call, _ respond: @escaping Responder) {
        underLock(call, respond) { [weak self] worker, fence, respond in
            worker.cancelZoom(fence: fence) { result in
                guard let self, case .success = result else { return respond(result) }
                // Where it is now is what is committed.
                self.configurations.remember(worker)
                self.deviceStore.save { isKept in respond(.success(JSONValue.object([:]).marked(isKept: isKept))) }
            }
        }
    }

    /// Ends a device's zoom ramp when its user may not change the device any more, or when another process has locked
    /// it.
    func reviewZoom(_ worker: WorkerHandle) {
        guard let running = worker.status["zoomRamp"], let ramp = ZoomRampOwner(json: running) else {
            worker.endedZoom = nil
            return
        }
        let device = worker.device.id
        let isLocked = locks.table.lock(on: device).map(ramp.yields) ?? false
        guard ramp != worker.endedZoom, isLocked || access.isUnauthorized(ramp.holder, [device]) else { return }
        worker.endedZoom = ramp
        // Another ramp may have replaced it by now.
        worker.order(.cancelZoom(of: running)) { [weak worker] result in
            if case .failure = result { worker?.endedZoom = nil }
        }
    }

    // MARK: The parts

    private static func noCamera(_ device: String) -> BusError {
        BusError(
            .controlUnsupported,
            "\(device) is a microphone: it has no focus, exposure or zoom; device.controls lists its controls.",
            ["supported": []])
    }

    /// Calls the body under the lock in the call, or under a lock for just this call.
    private func underLock(
        _ call: Call, _ respond: @escaping Responder,
        _ body: @escaping (_ worker: WorkerHandle, _ fence: UInt64, _ respond: @escaping Responder) -> Void
    ) {
        resolver.withWorker(call, respond) { [weak self] worker in
            if worker.device.identity.mediaType == .audio {
                return respond(.failure(Self.noCamera(worker.device.id)))
            }
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? WorkerHandle.patience : 0) {
                guard let self else { return }
                if let token = call.string("lock") {
                    do throws(BusError) {
                        body(worker, try self.locks.authorize(token: token, devices: [worker.device.id]).fence, respond)
                    } catch {
                        respond(.failure(error))
                    }
                    return
                }
                let holder = self.clients.holder(call.caller)
                self.locks.withTransientLock(on: [worker.device.id], for: holder, then: respond) { fence, done in
                    body(worker, fence, done)
                }
            }
        }
    }
}
