import BusProtocol
import BusServer
import CaptureCore
import FrameRing
import Glibc
import JSON
import LinuxIO
import ZeroMQ

/// The socket at which local readers get a device's rings: `media/<device>.ring`.
///
/// An open connection counts as a subscription. A reader that doesn't take what it is given loses its connection, so that
/// nobody can make this process hold on to old rings.
final class RingDoor<Form: Hashable> {
    private final class Guest {
        let socket: PacketSocket
        var token: Loop.Token?
        var timer: Loop.Token?
        /// What it asked for, as it spelled it; nil before it did.
        var text: String?
        /// nil while what it asked for can't be made.
        var rendition: Form?
        /// The ring that it was given last.
        var ring = ""
        /// Why it gets no frames, as it was told last.
        var error: BusError?
        /// Rings that were sent while others lay unread.
        var unread = 0
        /// It will be closed in a moment, and gets nothing any more.
        var isCut = false
        let peer: ConnectionGuard.Peer
        let user: User

        init(_ socket: PacketSocket, _ peer: PeerCredentials) {
            self.socket = socket
            user = User(uid: peer.uid, gid: peer.gid)
            self.peer = ConnectionGuard.Peer(
                uid: peer.uid, pid: peer.pid, startTime: ProcessTable.startTime(of: peer.pid))
        }
    }

    /// Who was given a ring has its memory, whatever becomes of the connection.
    private struct User: Hashable {
        var uid: UInt32
        var gid: UInt32
    }

    private let loop: Loop
    private let listening: FileDescriptor
    private let path: String
    private var watch: Loop.Token?
    private var ledger: ConnectionLedger
    private var guests: [Int32: Guest] = [:]
    private var rings: [Form: RingWriter] = [:]
    /// Who was given which ring of a rendition last. That of the device's own frames lives on when nobody wants it, as long as its stream.
    private var given: [Form: (ring: String, users: Set<User>)] = [:]
    private var errors: [Form: BusError] = [:]
    /// Connections that were cut because their reader did not read.
    private(set) var cutCount: UInt64 = 0
    /// Whether that one may come in.
    var admits: (PeerCredentials) -> Bool = { _ in false }
    /// Somebody asks for a rendition, perhaps as the first.
    var onWish: (String) throws(BusError) -> Form = { (_: String) throws(BusError) -> Form in
        throw BusError(.shuttingDown, "The worker is ending.")
    }
    /// The last one who had asked for it has gone.
    var onLeave: (Form) -> Void = { _ in }

    private let lasting: Form?
    private let unauthorized: BusError

    private static var maximumRequestBytes: Int { 1024 }
    /// How long a client has to ask for a rendition.
    private static var patience: Int64 { 1000 }
    private static var acceptsPerTurn: Int { 16 }

    /// - Parameters:
    ///   - lasting: the rendition whose ring goes with the stream, and not with the last one who wanted it; nil: there is none.
    ///   - unauthorized: what those are told who may not come in.
    init(
        _ loop: Loop, path: String, mode: UInt32, group: UInt32?, perUser: Int, total: Int, lasting: Form?,
        unauthorized: BusError
    ) throws(SystemError) {
        self.loop = loop
        self.path = path
        self.lasting = lasting
        self.unauthorized = unauthorized
        ledger = ConnectionLedger(perUser: perUser, total: total)
        listening = try UnixSocket.listen(at: path, .packets, mode: mode, group: group)
        listen()
    }

    deinit { File.remove(path) }

    /// Connections that are open.
    var count: Int { guests.count }

    // MARK: Rings

    /// Gives a new ring to all who want that rendition, and to those who come later.
    func offer(_ rendition: Form, _ ring: RingWriter) {
        rings[rendition] = ring
        if given[rendition]?.ring != ring.plan.description.ring { given[rendition] = nil }
        for guest in guests.values where guest.rendition == rendition { give(ring, to: guest) }
    }

    /// There is no ring of that rendition any more.
    func withdraw(_ rendition: Form) {
        rings[rendition] = nil
        if rendition != lasting { given[rendition] = nil }
    }

    /// Ends the connections of all who may not be here any more.
    ///
    /// - Returns: the rings that one of them was given, and may still read: others are to be made in their place.
    func expel(unless admits: (_ uid: UInt32, _ gid: UInt32) -> Bool) -> [(rendition: Form, ring: String)] {
        let compromised = given.filter { !$0.value.users.allSatisfy { admits($0.uid, $0.gid) } }
            .map { ($0.key, $0.value.ring) }
        for guest in guests.values.filter({ !admits($0.user.uid, $0.user.gid) }) {
            tell(unauthorized, to: guest)
            close(guest)
        }
        return compromised
    }

    /// All that somebody wants rings of and can't have as things are now: to be called when it may have changed. Each is told its
    /// reason once, until there is another one.
    func failures(_ all: [(rendition: Form, error: BusError)]) {
        guard !all.isEmpty || !errors.isEmpty else { return }
        errors = Dictionary(all.map { ($0.rendition, $0.error) }) { first, _ in first }
        for guest in guests.values { tellError(guest) }
    }

    /// A place may have become free for those who were refused one.
    func retry() {
        for guest in guests.values where guest.rendition == nil && guest.text != nil { wish(guest) }
    }

    /// Who reads rings of which rendition, as it spelled it.
    var readers: [(peer: ConnectionGuard.Peer, rendition: String)] {
        guests.values.compactMap { guest in guest.rendition == nil ? nil : guest.text.map { (guest.peer, $0) } }
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
            // No descriptor is left: who waits, waits, and this loop is not to turn for it.
            loop.cancel(watch)
            loop.schedule(afterMilliseconds: 1000) { [weak self] in self?.listen() }
        }
    }

    private func admit(_ socket: PacketSocket) {
        guard let peer = PeerCredentials(of: socket.rawValue) else { return }
        let isAdmitted = admits(peer)
        if !isAdmitted { _ = try? socket.send(JSONValue.object(["error": unauthorized.headerJSON]).serialized) }
        guard
            ledger.open(descriptor: socket.rawValue, uid: peer.uid, pid: peer.pid)
        else { return }
        let guest = Guest(socket, peer)
        // It stays until its request is read, or its time is over: the kernel tells a connection that is closed over an unread one as
        // broken, before what was said on it.
        guest.isCut = !isAdmitted
        guests[socket.rawValue] = guest
        guest.token = loop.watch(.descriptor(socket.rawValue)) { [weak self, weak guest] in
            guard let self, let guest else { return }
            read(guest)
        }
        guest.timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak guest] in
            guard let self, let guest, guest.text == nil else { return }
            guard !guest.isCut else { return close(guest) }
            guest.text = "native"
            wish(guest)
        }
    }

    private func read(_ guest: Guest) {
        let packet: Packet?
        do throws(SystemError) {
            packet = try guest.socket.receive(maximumBytes: Self.maximumRequestBytes)
        } catch {
            if error.code == EMSGSIZE { tell(.invalidParams("", "a request has 1024 bytes at most"), to: guest) }
            return close(guest)
        }
        guard let packet else { return }
        if packet.isEnd { return close(guest) }
        guard !guest.isCut else { return close(guest) }
        guard guest.text == nil else { return }
        guard let request = packet.bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), request.object != nil else {
            tell(.invalidParams("", "a request is a JSON object"), to: guest)
            return close(guest)
        }
        guard let text = request["rendition"] == nil ? "native" : request["rendition"]?.string else {
            tell(.invalidParams("rendition", "a rendition is a text"), to: guest)
            return close(guest)
        }
        guest.text = text
        wish(guest)
    }

    private func wish(_ guest: Guest) {
        guard let text = guest.text, !guest.isCut else { return }
        do throws(BusError) {
            let rendition = try onWish(text)
            guest.rendition = rendition
            if let ring = rings[rendition] { give(ring, to: guest) }
            tellError(guest)
        } catch {
            tell(error, to: guest)
            if error.reason == .invalidParams { close(guest) }
        }
    }

    private func give(_ ring: RingWriter, to guest: Guest) {
        let plan = ring.plan
        guard !guest.isCut, guest.ring != plan.description.ring else { return }
        guest.ring = plan.description.ring
        guest.error = nil
        // What lies unread keeps its ring's memory: one may, and one more.
        guest.unread = guest.socket.hasUnread ? guest.unread + 1 : 0
        guard guest.unread < 2 else { return cut(guest) }
        if let rendition = guest.rendition {
            given[rendition, default: (guest.ring, [])].users.insert(guest.user)
        }
        let message: JSONValue = [
            "ring": .string(plan.description.ring), "size": JSONValue(plan.size),
            "slots": JSONValue(plan.description.slots), "slotBytes": JSONValue(plan.description.slotBytes),
            "keep": JSONValue(plan.description.keep),
        ]
        send(message, descriptor: ring.readerDescriptor, to: guest)
    }

    private func tellError(_ guest: Guest) {
        guard let rendition = guest.rendition else { return }
        if let error = errors[rendition] { tell(error, to: guest) } else { guest.error = nil }
    }

    // Who has not read the one before is told once it has: the next time that this is called, which is once a second.
    private func tell(_ error: BusError, to guest: Guest) {
        guard !guest.isCut, guest.error != error, !guest.socket.hasUnread else { return }
        guest.error = error
        send(["error": error.headerJSON], descriptor: nil, to: guest)
    }

    private func send(_ message: JSONValue, descriptor: Int32?, to guest: Guest) {
        if (try? guest.socket.send(message.serialized, descriptor: descriptor)) != true { cut(guest) }
    }

    // Not from within: it may be one of those that somebody is just going through, and its end changes what is wanted.
    private func cut(_ guest: Guest) {
        guest.isCut = true
        cutCount += 1
        loop.schedule(at: 0) { [weak self, weak guest] in
            guard let self, let guest else { return }
            close(guest)
        }
    }

    private func close(_ guest: Guest) {
        let descriptor = guest.socket.rawValue
        guard guests[descriptor] === guest else { return }
        guests[descriptor] = nil
        loop.cancel(guest.token)
        loop.cancel(guest.timer)
        _ = ledger.close(descriptor: descriptor)
        guard let rendition = guest.rendition, !guests.values.contains(where: { $0.rendition == rendition }) else {
            return
        }
        onLeave(rendition)
    }
}
