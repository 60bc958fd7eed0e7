public import BusProtocol
public import JSON

extension CaptureSession {
    /// The session with another camera in place of its only one, its microphones as they are; its options are kept
    /// where the new one has them, else off.
    ///
    /// - Returns: and what was dropped: {path, value, why} each.
    /// - Throws: `deviceNotFound` or `cannotAddInput` {why}.
    public func switched(
        to device: String, in surroundings: Surroundings
    ) throws(BusError) -> (session: CaptureSession, dropped: [JSONValue]) {
        guard let old = camera, let place = inputs.firstIndex(of: old), old.device != device else { return (self, []) }
        guard surroundings.device(device)?.mediaType != .audio else {
            throw Self.cannotAddInput(device, "it is a microphone and no camera")
        }
        var session = self
        var dropped: [JSONValue] = []
        let connections = connections
        var actions: [(action: SessionAction, path: String)] = [(.removeInput(device: old.device), "switchCamera")]
        let wishes: [(String, JSONValue?, SessionInput)] = [
            ("activeFormat", old.activeFormat?.json, SessionInput(device: device, activeFormat: old.activeFormat)),
            ("frameRate", old.frameRate?.json, SessionInput(device: device, frameRate: old.frameRate)),
        ]
        var input = SessionInput(device: device, activeFormat: old.activeFormat, frameRate: old.frameRate)
        for (name, value, wish) in wishes {
            guard let value else { continue }
            // By itself first: a rate may go with the new camera though the format doesn't.
            var trial = CaptureSession(id: id, owner: owner, since: since, preset: .inputPriority)
            do throws(BusError) {
                try trial.configure([(.addInput(wish), "")], in: surroundings)
                continue
            } catch {
                guard [.formatUnsupported, .frameRateUnsupported].contains(error.reason) else { continue }
                dropped.append(["path": .string("\(device).\(name)"), "value": value, "why": .string(error.message)])
            }
            if name == "activeFormat" { input.activeFormat = nil } else { input.frameRate = nil }
        }
        // The format was its client's choice; without it the session is what it is by default.
        if old.activeFormat != nil, input.activeFormat == nil { actions.append((.preset(.high), "switchCamera")) }
        actions.append((.addInput(input), "switchCamera"))
        do throws(BusError) {
            try session.configure(actions, in: surroundings)
        } catch {
            guard [.formatUnsupported, .frameRateUnsupported].contains(error.reason) else { throw error }
            // Each is there, but not both together.
            if let rate = input.frameRate {
                dropped.append(
                    ["path": .string("\(device).frameRate"), "value": rate.json, "why": .string(error.message)])
            }
            input.frameRate = nil
            actions[actions.count - 1].action = .addInput(input)
            try session.configure(actions, in: surroundings)
        }
        if let added = session.inputs.indices.last {
            session.inputs.insert(session.inputs.remove(at: added), at: place)
        }
        session.join()
        for index in session.connections.indices where session.connections[index].input == device {
            let output = session.connections[index].output
            guard var connection = connections.first(where: { $0.output == output && $0.input == old.device }) else {
                continue
            }
            connection.input = device
            let stabilization = connection.preferredVideoStabilizationMode
            do throws(BusError) { try session.check(stabilization, of: device, in: surroundings) } catch {
                connection.preferredVideoStabilizationMode = .off
                dropped.append([
                    "path": .string("\(output).preferredVideoStabilizationMode"),
                    "value": .string(stabilization.rawValue), "why": .string(error.message),
                ])
            }
            session.connections[index] = connection
        }
        if let formats = surroundings.device(device)?.formats {
            for index in session.outputs.indices {
                guard let size = session.outputs[index].dimensions,
                    !formats.contains(where: {
                        $0.dimensions.width >= size.width && $0.dimensions.height >= size.height
                    })
                else { continue }
                session.outputs[index].dimensions = nil
                dropped.append([
                    "path": .string("\(session.outputs[index].id).width"),
                    "value": ["width": JSONValue(size.width), "height": JSONValue(size.height)],
                    "why": .string("\(device) has no format as large as \(size)."),
                ])
            }
        }
        for output in outputs where output.livePhoto.isEnabled {
            guard session.output(output.id)?.livePhoto.isEnabled == false else { continue }
            dropped.append([
                "path": .string("\(output.id).livePhotoCaptureEnabled"), "value": true,
                "why": .string(session.livePhotoObstacle(surroundings.device) ?? ""),
            ])
        }
        return (session, dropped)
    }
}
