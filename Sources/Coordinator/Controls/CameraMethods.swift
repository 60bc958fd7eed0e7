import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `device.focus`, `expose`, `resetFocusAndExposure`, `zoomRamp`, `cancelZoomRamp`
extension Coordinator {
    static let cameraServices: [String: Service] = [
        "device.focus": { $0.focus }, "device.expose": { $0.expose },
        "device.resetFocusAndExposure": { $0.resetFocusAndExposure }, "device.zoomRamp": { $0.zoomRamp },
        "device.cancelZoomRamp": { $0.cancelZoomRamp },
    ]

    func focus(_ call: Call, _ respond: @escaping Responder) {
        let controls: [String: JSONValue] = [
            "focusPointOfInterest": call.params["point"] ?? .null, "focusMode": "autoFocus",
        ]
        underLock(call, respond) { [weak self] worker, fence, respond in
            self?.setControls(controls, worker.device.id, fence, respond)
        }
    }

    func expose(_ call: Call, _ respond: @escaping Responder) {
        let controls: [String: JSONValue] = [
            "exposurePointOfInterest": call.params["point"] ?? .null, "exposureMode": "continuousAutoExposure",
        ]
        let wantsLock = call.params["thenLock"]?.bool ?? false
        underLock(call, respond) { [weak self] worker, fence, respond in
            self?.setControls(controls, worker.device.id, fence) { result in
                guard let self, case .success(let value) = result, var members = value.object else {
                    return respond(result)
                }
                let holder = self.holder(call.caller)
                // Who lost the right to it meanwhile has nothing locked later on.
                let canLock =
                    worker.status["supports"]?["exposureMode"]?.array?.contains("locked") ?? false
                    && !self.isUnauthorized(holder, [worker.device.id])
                members["willLock"] = .bool(wantsLock && canLock)
                // A newer one is in force, whatever it wants.
                let isKept =
                    wantsLock && canLock
                    ? self.exposures.begin(worker, caller: holder, fence: fence) : self.exposures.cancel(worker)
                respond(.success(Self.told(isKept, .object(members))))
                // Not before the call's own lock is given back.
                self.exposures.changed(worker)
            }
        }
    }

    func resetFocusAndExposure(_ call: Call, _ respond: @escaping Responder) {
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
            setControls(controls, worker.device.id, fence) { [weak self] result in
                guard let self, case .success(let value) = result, var members = value.object else {
                    return respond(result)
                }
                members["reset"] = JSONValue(controls.keys.sorted())
                respond(.success(Self.told(exposures.cancel(worker), .object(members))))
            }
        }
    }

    func zoomRamp(_ call: Call, _ respond: @escaping Responder) {
        let target: ZoomRequest.Target
        switch (call.params["factor"]?.double, call.params["value"]?.double) {
        case (let factor?, nil): target = .factor(factor)
        case (nil, let value?): target = .value(value)
        case (nil, nil): return respond(.failure(.invalidParams("factor", "is missing; or pass value")))
        case (_?, _?): return respond(.failure(.invalidParams("value", "can't be passed beside factor")))
        }
        let wish = ZoomRequest(target: target, rate: call.params["rate"]?.double ?? 1)
        let holder = holder(call.caller)
        underLock(call, respond) { [weak self] worker, fence, respond in
            let owner = ZoomRampOwner(holder: holder, fence: fence)
            worker.order(.rampZoom(wish, by: owner.json), fence: fence) { result in
                guard let self, case .success(let value) = result else { return respond(result) }
                self.remember(worker)
                self.books.save { isKept in respond(.success(Self.told(isKept, value))) }
            }
        }
    }

    func cancelZoomRamp(_ call: Call, _ respond: @escaping Responder) {
        underLock(call, respond) { [weak self] worker, fence, respond in
            worker.cancelZoom(fence: fence) { result in
                guard let self, case .success = result else { return respond(result) }
                // Where it is now is what is committed.
                self.remember(worker)
                self.books.save { isKept in respond(.success(Self.told(isKept, [:]))) }
            }
        }
    }

    /// Ends the zoom ramp that runs at a device if it is of who may not change it any more, or if another process has the device
    /// to itself by now.
    func judgeZoom(_ worker: Worker) {
        guard let running = worker.status["zoomRamp"], let ramp = ZoomRampOwner(json: running) else {
            worker.endedZoom = nil
            return
        }
        let device = worker.device.id
        let isLocked = locks.table.lock(on: device).map(ramp.yields) ?? false
        guard ramp != worker.endedZoom, isLocked || isUnauthorized(ramp.holder, [device]) else { return }
        worker.endedZoom = ramp
        // Another's may have replaced it by now.
        worker.order(.cancelZoom(of: running)) { [weak worker] result in
            if case .failure = result { worker?.endedZoom = nil }
        }
    }

    // MARK: The parts

    private static func noCamera(_ device: String) -> BusError {
        BusError(
            .controlUnsupported,
            "\(device) is a microphone: it has no focus, exposure or zoom; device.controls lists what it has.",
            ["supported": []])
    }

    /// Does something with a device under the lock that the call shows, or under one for just this call.
    private func underLock(
        _ call: Call, _ respond: @escaping Responder,
        _ body: @escaping (_ worker: Worker, _ fence: UInt64, _ respond: @escaping Responder) -> Void
    ) {
        withWorker(call, respond) { [weak self] worker in
            if worker.device.identity.mediaType == .audio {
                return respond(.failure(Self.noCamera(worker.device.id)))
            }
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? Self.patience : 0) {
                guard let self else { return }
                if let token = call.string("lock") {
                    do throws(BusError) {
                        body(worker, try self.locks.authorize(token: token, devices: [worker.device.id]).fence, respond)
                    } catch {
                        respond(.failure(error))
                    }
                    return
                }
                let holder = self.holder(call.caller)
                self.locks.withTransientLock(on: [worker.device.id], for: holder, then: respond) { fence, done in
                    body(worker, fence, done)
                }
            }
        }
    }

    func setControls(
        _ controls: [String: JSONValue], _ device: String, _ fence: UInt64, _ respond: @escaping Responder
    ) {
        let change: JSONValue = ["device": .string(device), "controls": .object(controls)]
        carryOut(
            ConfigurationDesk.Batch(changes: [(device, change, "")], mode: .exact, isDryRun: false, fence: fence),
            respond)
    }
}
