package import BusProtocol
package import BusServer
package import CaptureCore
package import FrameRing
import Glibc
import JSON
package import LinuxIO
import ZeroMQ

/// The socket that gives a device's rings to readers on this machine: `media/<device>.ring`.
///
/// An open connection counts as a subscription. A reader that does not read its messages loses its connection, so that
/// no reader can make this process keep old rings.
package final class RingSocket<Form: Hashable> {
    private final class Reader {
        let socket: PacketSocket
        var token: Loop.Token?
        var timer: Loop.Token?
        /// The rendition that it requested, in its own spelling; nil before the request.
        var text: String?
        /// nil before the request.
        var rendition: Form?
        /// The last ring that it received.
        var ring = ""
        /// The ring that it has not received because its user has no room for it.
        var withheld = ""
        /// The last error that it received.
        var error: BusError?
        /// Rings that were sent while earlier messages were unread.
        var unread = 0
        /// Its connection will be closed in a moment; nothing more is sent.
        var isCut = false
        let peer: ConnectionGuard.Peer
        let user: RingRecipients<Form>.User
        /// The user that one of the bus's own processes reads for; nil: it reads for its own.
        var owner: UInt32?

        var client: RenditionClient {
            owner.map { RenditionClient(.recorder(socket.rawValue), uid: $0) }
                ?? RenditionClient(.reader(socket.rawValue), uid: user.uid)
        }

        init(_ socket: PacketSocket, _ peer: PeerCredentials) {
            self.socket = socket
            user = RingRecipients<Form>.User(uid: peer.uid, gid: peer.gid)
            self.peer = ConnectionGuard.Peer(
                uid: peer.uid, pid: peer.pid, startTime: ProcessTable.startTime(of: peer.pid))
        }
    }

    private let loop: Loop
    private let listening: FileDescriptor
    private let path: String
    private var watch: Loop.Token?
    private var table: ConnectionTable
    private var connected: [Int32: Reader] = [:]
    private var rings: [Form: RingWriter] = [:]
    private var account: RingAccount
    private var recipients = RingRecipients<Form>()
    private var errors: [Form: BusError] = [:]
    /// Connections that were ended because their reader did not read.
    package private(set) var cutCount: UInt64 = 0
    /// Whether a user may connect.
    package var admits: (PeerCredentials) -> Bool = { _ in false }
    /// Reads the rendition that a reader requests.
    package var form: (String) throws(BusError) -> Form = { (_: String) throws(BusError) -> Form in
        throw BusError(.shuttingDown, "The worker is ending.")
    }
    /// Called when a reader has requested a rendition, which may have other readers already.
    package var onRequest: (Form, RenditionClient) -> Void = { _, _ in }
    /// Called when a reader of a rendition has gone.
    package var onLeave: (Form, RenditionClient) -> Void = { _, _ in }

    /// Bytes of rings that count for each user.
    package private(set) var used: [UInt32: Int] = [:] { didSet { if used != oldValue { onUse() } } }
    /// Called when ``used`` has changed.
    package var onUse: () -> Void = {}

    private let unauthorized: BusError

    private static var maximumRequestBytes: Int { 1024 }
    /// How long a client may take to request a rendition, milliseconds.
    private static var patience: Int64 { 1000 }
    private static var acceptsPerTurn: Int { 16 }

    /// - Parameters:
    ///   - budget: bytes of the rings that one user may have; nil: depends on the memory.
    ///   - remainders: what users may still have of workers that have ended.
    ///   - unauthorized: the error for users without permission.
    package init(
        _ loop: Loop, path: String, mode: UInt32, group: UInt32?, perUser: Int, total: Int, budget: Int?,
        _ remainders: RingRemainders, unauthorized: BusError
    ) throws(SystemError) {
        self.loop = loop
        self.path = path
        account = RingAccount(budget: budget ?? RingAccount.defaultBudget, own: CurrentProcess.uid, remainders)
        self.unauthorized = unauthorized
        table = ConnectionTable(perUser: perUser, total: total)
        listening = try UnixSocket.listen(at: path, .packets, mode: mode, group: group)
        listen()
    }

    deinit { File.remove(path) }

    /// Connections that are open.
    package var count: Int { connected.count }

    // MARK: Rings

    /// Gives a new ring to all present and later readers of that rendition.
    package func offer(_ rendition: Form, _ ring: RingWriter) {
        rings[rendition] = ring
        for reader in connected.values where reader.rendition == rendition { give(ring, to: reader) }
    }

    /// That rendition has no ring any more.
    package func withdraw(_ rendition: Form) {
        rings[rendition] = nil
    }

    /// Whether the ring counts for any user. Further requests for its rendition must get the same ring.
    package func counts(_ ring: String) -> Bool { account.has(ring) }

    /// Forgets the rings that count no more, and gives rings to readers whose users have room by now. Call this once a
    /// second.
    package func sweep() {
        recipients.sweep()
        account.sweep(at: MonotonicClock.now())
        used = account.used(at: MonotonicClock.now())
        for reader in connected.values where !reader.withheld.isEmpty {
            if let rendition = reader.rendition, let ring = rings[rendition] { give(ring, to: reader) }
        }
    }

    /// Ends the connections of all users that lost permission.
    ///
    /// - Returns: the rings that such a user received, and in which frames may still come: they are to be replaced.
    package func expel(unless admits: (_ uid: UInt32, _ gid: UInt32) -> Bool) -> [(rendition: Form, ring: String)] {
        let leaving = connected.values.filter { !admits($0.user.uid, $0.user.gid) }
        // The end of one may have a ring made that another one is waiting for: by then none of them receives any.
        for reader in leaving {
            send(unauthorized, to: reader)
            reader.isCut = true
        }
        for reader in leaving { close(reader) }
        return recipients.rings(unless: admits)
    }

    /// Sets the requested renditions that fail at present. Call this when that may have changed. A reader receives each
    /// error once, until the error changes.
    package func setFailures(_ all: [(rendition: Form, error: BusError)]) {
        guard !all.isEmpty || !errors.isEmpty else { return }
        errors = Dictionary(all.map { ($0.rendition, $0.error) }) { first, _ in first }
        for reader in connected.values { sendError(reader) }
    }

    /// The process and the rendition of each reader, in the reader's spelling.
    package var readers: [(peer: ConnectionGuard.Peer, rendition: String)] {
        connected.values.compactMap { reader in reader.rendition == nil ? nil : reader.text.map { (reader.peer, $0) } }
    }

    // MARK: Connections

    private func listen() {
        watch = loop.watch(.descriptor(listening.rawValue)) { [weak self] in self?.accept() }
    }

    private func accept() {
        do throws(SystemError) {
            for _ in 0..<Self.acceptsPerTurn {
                guard let descriptor = try UnixSocket.accept(listening.rawValue) else { return }
                admit(PacketSocket(owning: descriptor))
            }
        } catch {
            // No descriptor is left: connections wait, and this loop must not spin for them.
            loop.cancel(watch)
            loop.schedule(afterMilliseconds: 1000) { [weak self] in self?.listen() }
        }
    }

    private func admit(_ socket: PacketSocket) {
        guard let peer = PeerCredentials(of: socket.rawValue) else { return }
        let isAdmitted = admits(peer)
        if !isAdmitted { _ = try? socket.send(JSONValue.object(["error": unauthorized.headerJSON]).serialized) }
        guard
            table.open(descriptor: socket.rawValue, uid: peer.uid, pid: peer.pid)
        else { return }
        let reader = Reader(socket, peer)
        // A refused connection stays until its request is read, or its time is over: if a connection is closed with
        // unread data, the peer gets a reset before it can read the error.
        reader.isCut = !isAdmitted
        connected[socket.rawValue] = reader
        reader.token = loop.watch(.descriptor(socket.rawValue)) { [weak self, weak reader] in
            guard let self, let reader else { return }
            read(reader)
        }
        reader.timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak reader] in
            guard let self, let reader, reader.text == nil else { return }
            guard !reader.isCut else { return close(reader) }
            reader.text = "native"
            serve(reader)
        }
    }

    private func read(_ reader: Reader) {
        let packet: Packet?
        do throws(SystemError) {
            packet = try reader.socket.receive(maximumBytes: Self.maximumRequestBytes)
        } catch {
            if error.code == EMSGSIZE { send(.invalidParams("", "a request has at most 1024 bytes"), to: reader) }
            return close(reader)
        }
        guard let packet else { return }
        if packet.isEnd { return close(reader) }
        guard !reader.isCut else { return close(reader) }
        guard reader.text == nil else { return }
        guard let request = packet.bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), request.object != nil else {
            send(.invalidParams("", "a request is a JSON object"), to: reader)
            return close(reader)
        }
        guard let text = request["rendition"] == nil ? "native" : request["rendition"]?.string else {
            send(.invalidParams("rendition", "must be a string"), to: reader)
            return close(reader)
        }
        reader.text = text
        if reader.user.uid == CurrentProcess.uid {
            reader.owner = request["owner"]?.integer.flatMap { UInt32(exactly: $0) }
        }
        serve(reader)
    }

    private func serve(_ reader: Reader) {
        guard let text = reader.text, !reader.isCut else { return }
        do throws(BusError) {
            let rendition = try form(text)
            reader.rendition = rendition
            onRequest(rendition, reader.client)
            if let ring = rings[rendition] { give(ring, to: reader) }
            sendError(reader)
        } catch {
            send(error, to: reader)
            close(reader)
        }
    }

    private func give(_ ring: RingWriter, to reader: Reader) {
        let plan = ring.plan
        let id = plan.description.ring
        guard let rendition = reader.rendition, !reader.isCut, reader.ring != id else { return }
        let now = MonotonicClock.now()
        do throws(BusError) {
            if reader.owner != nil {
                account.recorderLeft(reader.ring)
                account.giveRecorder(id, bytes: plan.size, ring.readers)
            } else {
                try account.give(
                    id, bytes: plan.size, ring.readers, to: reader.user.uid, replacing: reader.ring, at: now)
            }
        } catch {
            reader.withheld = id
            return send(error, to: reader)
        }
        recipients.add(reader.user, ring, rendition)
        used = account.used(at: now)
        reader.ring = id
        reader.withheld = ""
        reader.error = nil
        // An unread message keeps the memory of its ring: two are allowed.
        reader.unread = reader.socket.hasUnread ? reader.unread + 1 : 0
        guard reader.unread < 2, let descriptor = try? ring.readers.open() else { return cut(reader) }
        let message: JSONValue = [
            "ring": .string(plan.description.ring), "size": JSONValue(plan.size),
            "slots": JSONValue(plan.description.slots), "slotBytes": JSONValue(plan.description.slotBytes),
            "keep": JSONValue(plan.description.keep),
        ]
        send(message, descriptor: descriptor.rawValue, to: reader)
    }

    private func sendError(_ reader: Reader) {
        guard let rendition = reader.rendition else { return }
        if let error = errors[rendition] {
            send(error, to: reader)
        } else if reader.withheld.isEmpty {
            reader.error = nil
        }
    }

    // A reader that has not read the last message gets the error later: this is called again once a second.
    private func send(_ error: BusError, to reader: Reader) {
        guard !reader.isCut, reader.error != error, !reader.socket.hasUnread else { return }
        reader.error = error
        send(["error": error.headerJSON], descriptor: nil, to: reader)
    }

    private func send(_ message: JSONValue, descriptor: Int32?, to reader: Reader) {
        if (try? reader.socket.send(message.serialized, descriptor: descriptor)) != true { cut(reader) }
    }

    // Later, from the loop: a caller may be iterating over the readers, and the end of one changes the wanted
    // renditions.
    private func cut(_ reader: Reader) {
        reader.isCut = true
        cutCount += 1
        loop.schedule(at: 0) { [weak self, weak reader] in
            guard let self, let reader else { return }
            close(reader)
        }
    }

    private func close(_ reader: Reader) {
        let descriptor = reader.socket.rawValue
        guard connected[descriptor] === reader else { return }
        connected[descriptor] = nil
        loop.cancel(reader.token)
        loop.cancel(reader.timer)
        _ = table.close(descriptor: descriptor)
        if reader.owner != nil {
            account.recorderLeft(reader.ring)
        } else {
            account.left(reader.ring, by: reader.user.uid, at: MonotonicClock.now())
        }
        if let rendition = reader.rendition { onLeave(rendition, reader.client) }
    }
}
