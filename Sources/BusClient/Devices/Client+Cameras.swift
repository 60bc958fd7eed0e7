import BusProtocol
public import JSON

// Where no lock is given and there is no ``defaultLock``, the bus takes one for just the call.
extension Client {
    /// The controls of the capture model that a device has, with what they take and their values; and by name what it
    /// can do at all.
    public func cameraControls(
        _ device: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> (controls: [JSONValue], supports: [String: JSONValue]) {
        let answer = try await call("device.controls", ["device": .string(device)], timeout: timeout)
        return (answer["cameraControls"]?.array ?? [], answer["supports"]?.object ?? [:])
    }

    /// Focuses once at a point.
    ///
    /// - Parameter point: in the camera's own picture, from (0, 0) at its top left to (1, 1).
    /// - Returns: as ``set(_:controls:lock:timeout:)``.
    @discardableResult
    public func focus(
        _ device: String, at point: PreviewLayout.Point, lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await act("device.focus", device, ["point": point.json], lock, timeout)
    }

    /// Exposes for a point, and has that exposure locked when it has settled.
    ///
    /// - Returns: `willLock` beside the rest: false where the camera can't lock it. If another client has the device
    ///   locked by then, the event `exposureLockFailed` says so.
    @discardableResult
    public func expose(
        _ device: String, at point: PreviewLayout.Point, thenLock: Bool = false, lock: String? = nil,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["point": point.json]
        if thenLock { params["thenLock"] = true }
        return try await act("device.expose", device, params, lock, timeout)
    }

    /// Has focus and exposure be continuous and centred again, as far as the camera can.
    ///
    /// - Returns: `reset`, the controls that were set, beside the rest.
    @discardableResult
    public func resetFocusAndExposure(
        _ device: String, lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await act("device.resetFocusAndExposure", device, [:], lock, timeout)
    }

    /// Where a zoom ramp goes.
    public enum ZoomTarget: Hashable, Sendable {
        /// A `videoZoomFactor`.
        case factor(Double)
        /// A `zoomValue`, 0 to 1.
        case value(Double)
    }

    /// Zooms smoothly; returns when it begins. `rampingVideoZoom` is true meanwhile.
    ///
    /// - Parameter rate: doublings a second.
    /// - Returns: {generation, from, to, rate, milliseconds, kept?}.
    @discardableResult
    public func zoomRamp(
        _ device: String, to target: ZoomTarget, rate: Double = 1, lock: String? = nil,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["rate": .number(rate)]
        switch target {
        case .factor(let factor): params["factor"] = .number(factor)
        case .value(let value): params["value"] = .number(value)
        }
        return try await act("device.zoomRamp", device, params, lock, timeout)
    }

    /// Leaves the zoom where it is.
    ///
    /// - Returns: {kept?}.
    @discardableResult
    public func cancelZoomRamp(
        _ device: String, lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await act("device.cancelZoomRamp", device, [:], lock, timeout)
    }

    private func act(
        _ method: String, _ device: String, _ params: [String: JSONValue], _ lock: String?, _ timeout: Duration
    ) async throws(ClientError) -> JSONValue {
        var params = params
        params["device"] = .string(device)
        if let token = lock ?? defaultLock { params["lock"] = .string(token) }
        return try await call(method, .object(params), timeout: timeout)
    }
}

extension PreviewLayout.Point {
    fileprivate var json: JSONValue { ["x": .number(x), "y": .number(y)] }
}
