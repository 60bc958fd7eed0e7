import BusProtocol
import JSON
import ZeroMQ

extension Client {
    /// Subscribes to a device's frames; on return the subscription is in force.
    ///
    /// - Parameters:
    ///   - device: its id.
    ///   - rendition: nil: `native`, and from another machine `jpeg`. `native`, or
    ///     `<format>[:<width>x<height>][@<rate>][;q=<1–100>][;rotate=<90|180|270>][;mirror]`:
    ///     `jpeg:640x360@10`.
    ///   - shared: takes the pixels from memory that all readers share, without a copy. The device overwrites a frame
    ///     when some more have come, four at least: use it at once, and then ask ``Payload/isIntact``. Where no shared
    ///     memory can be had, from a bus that knows none or for want of memory, frames come as usual, and
    ///     ``Payload/isShared`` is false. New rings, new formats and new workers are followed without a word.
    ///   - newest: how many frames are kept for a late reader; older ones are left out and counted. Of a format whose
    ///     frames build on one another (H.264) at least 64 are kept, since after a loss it resumes with a key frame
    ///     only.
    ///   - silence: ends with ``ClientError/silent(_:)`` when no frame comes for that long; nil: waits for ever. In any
    ///     case it ends with ``ClientError/ended(directory:)`` with the bus, and when neither bus nor worker gives a
    ///     sign of life.
    ///   - timeout: for the subscription itself.
    /// - Throws: ``ClientError/refused(_:)`` with `deviceNotFound`, or `invalidParams` for what can't be a topic.
    public func frames(
        _ device: String, _ rendition: String? = nil, shared: Bool = false, newest: Int = 1,
        silence: Duration? = nil,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Frames {
        try await frames(
            device, rendition, shared: shared, newest: newest, silence: silence, timeout: timeout, bell: nil)
    }

    /// The same for who waits for several at once.
    ///
    /// - Parameter bell: something is put into it whenever a frame has come, or the end.
    func frames(
        _ device: String, _ rendition: String?, shared: Bool, newest: Int, silence: Duration?, timeout: Duration,
        bell: Mailbox<Void>?
    ) async throws(ClientError) -> Frames {
        let takesRaw = rendition != nil
        let rendition = rendition ?? place.rendition
        guard case .media(let topic)? = Topic.parse(Topic.frame(device, rendition).bytes) else {
            throw .refused(
                DeviceID.isValid(device)
                    ? .invalidParams("rendition", "'\(rendition)' is not a rendition")
                    : .invalidParams("device", "'\(device)' is not a device id"))
        }
        let deadline = monotonic(after: timeout)
        // The socket of a device that isn't there would stay silent; the bus knows better.
        let media = try await self.device(device, timeout: timeout)["mediaType"]?.string ?? "video"
        // Who may not have it is not let in, and told nothing there. Who has not asked yet does so by coming.
        if greeting.authorization[media] != "authorized",
            let refusal = await lackOfPermission(media, waits: true)
        {
            throw refusal
        }
        let isShared = shared && greeting.features.contains(Feature.rings.rawValue)
        let ring = isShared ? directory.map { RingLink($0.ringSocket(device), rendition: rendition) } : nil
        let wish = ring != nil ? MediaTopic(.buffer, device: topic.device, renditionText: topic.renditionText) : topic
        let mailbox = Mailbox<RawFrame>(capacity: newest, bell: bell)
        let plan = Subscription.Plan(
            source: .media(device), topics: [wish.text], receiveHighWaterMark: max(2, newest),
            deadline: deadline, silence: silence?.clampedNanoseconds, heartbeatCounts: false, publisher: device,
            place: place, takesRaw: takesRaw)
        let number: UInt64
        do throws(ClientError) {
            number = try await openSubscription(plan, mailboxFinish: mailbox.finish) { message in
                if let frame = RawFrame(message) { mailbox.put(frame, room: frame.isChained ? Self.chainedFrames : 1) }
                return .goOn
            }
        } catch {
            if case .silent = error, let refusal = await lackOfPermission(media, waits: false) { throw refusal }
            throw error
        }
        return Frames(
            self, device: device, media: media, rendition: rendition, number: number, mailbox: mailbox, ring: ring)
    }

    /// Subscribes to topics of the events socket; on return the subscription is in force, and the current values of the
    /// `state/` topics are on their way.
    ///
    /// - Parameters:
    ///   - topics: whole topics, or beginnings of topics: `state/`, `event/device/cam0/`, `heartbeat/`.
    ///   - silence: ends with ``ClientError/silent(_:)`` when not even a heartbeat comes for that long; nil: waits for
    ///     ever, also for the next bus after one that was killed. One that ends in order ends it at once, with
    ///     ``ClientError/ended(directory:)``.
    ///   - timeout: for the subscription itself.
    public func watch(
        _ topics: [String], silence: Duration? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Messages {
        let mailbox = Mailbox<BusMessage>(capacity: Messages.capacity)
        let plan = Subscription.Plan(
            source: .events, topics: topics, receiveHighWaterMark: 1000,
            deadline: monotonic(after: timeout),
            silence: silence.map(\.clampedNanoseconds),
            heartbeatCounts: true,
            publisher: "the bus", place: place)
        let number = try await openSubscription(plan, mailboxFinish: mailbox.finish) { message in
            guard message.count >= 2, let topic = String(validating: message[0].bytes, as: UTF8.self),
                let json = try? JSONValue(parsing: message[1].bytes)
            else { return .goOn }
            return mailbox.put(BusMessage(topic: topic, json: json)) ? .goOn : .pause
        }
        return Messages(self, number: number, mailbox: mailbox)
    }

    /// Follows the bus's state; on return ``StateObserver/values`` is complete.
    ///
    /// - Parameters:
    ///   - topics: beginnings of topics: `state/`, `state/device/cam0/`; also events, `event/`.
    ///   - silence: as for ``watch(_:silence:timeout:)``.
    ///   - timeout: for the subscription, and for each snapshot that is needed.
    public func observe(
        _ topics: [String] = ["state/"], silence: Duration? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> StateObserver {
        // Holes are told by the heartbeat too.
        let messages = try await watch(topics + ["heartbeat/"], silence: silence, timeout: timeout)
        let observer = StateObserver(self, messages, topics: topics, timeout: timeout)
        try await observer.start()
        return observer
    }
}
