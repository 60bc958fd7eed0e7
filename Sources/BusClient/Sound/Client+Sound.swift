import BusProtocol
import JSON
import ZeroMQ

extension Client {
    /// Pieces of sound that are kept for a late reader: some seconds, and of a microphone that gives a few frames at a
    /// time at least a moment.
    private static let soundCapacity = 1000

    /// Subscribes to a microphone's sound; on return the subscription is in force.
    ///
    /// - Parameters:
    ///   - device: its id.
    ///   - rendition: `native`: as the microphone is set; or `<s16|f32>[:<rate>x<channels>]`, as in `f32:16000x1`: made
    ///     for all who ask for it.
    ///   - silence: ends with ``ClientError/silent(_:)`` when no sound comes for that long; nil: waits for ever. In any
    ///     case it ends with ``ClientError/ended(directory:)`` with the bus, and when neither bus nor worker gives a
    ///     sign of life.
    ///   - timeout: for the subscription itself.
    /// - Throws: ``ClientError/refused(_:)`` with `deviceNotFound`, `unauthorized`, or `invalidParams` for what can't
    ///   be a topic.
    public func sound(
        _ device: String, _ rendition: String = "native", silence: Duration? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Sounds {
        let topic = MediaTopic(.audio, device: device, renditionText: rendition).text
        let mailbox = Mailbox<RawSound>(capacity: Self.soundCapacity)
        let number = try await subscribeToSound(
            device, topic, silence: silence, timeout: timeout, finish: mailbox.finish
        ) { message in
            if let sound = RawSound(message) { mailbox.put(sound) }
            return .goOn
        }
        return Sounds(self, device: device, number: number, mailbox: mailbox)
    }

    /// Subscribes to a microphone's level, ten times a second; parameters and errors are those of
    /// ``sound(_:_:silence:timeout:)``.
    public func levels(
        _ device: String, silence: Duration? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> SoundLevels {
        let mailbox = Mailbox<JSONValue>(capacity: 10)
        let number = try await subscribeToSound(
            device, Topic.level(device).text, silence: silence, timeout: timeout, finish: mailbox.finish
        ) { message in
            if message.count >= 2, let json = try? JSONValue(parsing: message[1].bytes) { mailbox.put(json) }
            return .goOn
        }
        return SoundLevels(self, device: device, number: number, mailbox: mailbox)
    }

    private func subscribeToSound(
        _ device: String, _ topic: String, silence: Duration?, timeout: Duration,
        finish: @escaping @Sendable (ClientError) -> Void,
        accept: @escaping @Sendable ([Message]) -> Subscription.Disposal
    ) async throws(ClientError) -> UInt64 {
        guard Topic.parse(Array(topic.utf8)) != nil else {
            throw .refused(
                DeviceID.isValid(device)
                    ? .invalidParams("rendition", "this is not a rendition")
                    : .invalidParams("device", "'\(device)' is not a device id"))
        }
        let deadline = monotonic(after: timeout)
        // The socket of a device that isn't there would stay silent; the bus knows better.
        let media = try await self.device(device, timeout: timeout)["mediaType"]?.string ?? "audio"
        // Who may not have it is not let in, and told nothing there. Who has not asked yet does so by coming.
        if greeting.authorization[media] != "authorized",
            let refusal = await lackOfPermission(media, waits: true)
        {
            throw refusal
        }
        let plan = Subscription.Plan(
            source: .media(device), topics: [topic], receiveHighWaterMark: Self.soundCapacity,
            deadline: deadline, silence: silence?.clampedNanoseconds, heartbeatCounts: false, publisher: device,
            place: place)
        do throws(ClientError) {
            return try await openSubscription(plan, mailboxFinish: finish, accept: accept)
        } catch {
            if case .silent = error, let refusal = await lackOfPermission(media, waits: false) { throw refusal }
            throw error
        }
    }
}
