import BusProtocol
import CaptureCore
import FrameRing
import JSON
import LinuxIO
import Testing

@testable import Delivery

@Suite("The memory of rings that users have")
struct RingAccountTests {
    private static let minute: Int64 = 60_000_000_000
    private static let own: UInt32 = 999
    private static let user: UInt32 = 1000
    private static let other: UInt32 = 1001
    private let memory: [SharedMemory]
    private var account = RingAccount(budget: 100, own: Self.own, RingRemainders())

    init() throws {
        memory = try (0..<8).map { _ in try SharedMemory(name: "test", count: 4096) }
    }

    private mutating func give(
        _ number: Int, _ bytes: Int, to uid: UInt32 = Self.user, replacing replaced: String = "", at minutes: Int64 = 0
    ) -> BusError? {
        do throws(BusError) {
            try account.give(
                "\(number)", bytes: bytes, memory[number].readers, to: uid, replacing: replaced,
                at: minutes * Self.minute)
            return nil
        } catch {
            return error
        }
    }

    private mutating func leave(_ number: Int, _ uid: UInt32 = Self.user, at minutes: Int64 = 0) {
        account.left("\(number)", by: uid, at: minutes * Self.minute)
    }

    @Test("a ring counts until ten minutes after its connection, although the kernel knows of no reader")
    mutating func unseen() throws {
        #expect(give(0, 60) == nil)
        #expect(give(1, 40) == nil)
        let error = give(2, 10)
        #expect(error?.reason == .limitExceeded && error?.data["limit"] == "ringBytes" && error?.data["maximum"] == 100)
        // Another user has a budget of his own, and what is given already costs nothing once more.
        #expect(give(2, 10, to: Self.other) == nil)
        #expect(give(0, 60) == nil)
        for ring in [0, 0, 1] { leave(ring, at: 1) }
        account.sweep(at: 10 * Self.minute)
        #expect(account.has("0") && account.has("1") && account.used(at: 10 * Self.minute)[Self.user] == 100)
        #expect(give(3, 10, at: 10) != nil)
        #expect(give(3, 10, at: 11) == nil)
        account.sweep(at: 11 * Self.minute)
        #expect(!account.has("0") && !account.has("1") && account.used(at: 11 * Self.minute)[Self.user] == 10)
    }

    @Test("it counts longer as long as somebody has a descriptor or a mapping of it")
    mutating func kept() throws {
        var held = [Holder(try memory[0].readers.open())]
        #expect(give(0, 100) == nil)
        leave(0)
        #expect(give(1, 10, at: 20) != nil)
        var view: SharedMemoryView? = try SharedMemoryView(held[0].descriptor.rawValue)
        held = []
        #expect(view != nil && give(1, 10, at: 20) != nil)
        view = nil
        #expect(give(1, 10, at: 20) == nil)
    }

    @Test("of the programs of its own user the kernel is believed")
    mutating func believed() throws {
        #expect(give(0, 100, to: Self.own) == nil)
        #expect(give(1, 10, to: Self.own) != nil)
        leave(0, Self.own)
        #expect(give(1, 10, to: Self.own) == nil)
        leave(1, Self.own)
        let held = try memory[1].readers.open()
        #expect(give(2, 95, to: Self.own) != nil)
        #expect(account.used(at: 0).isEmpty)
        _ = held.rawValue
    }

    @Test("of a ring that several users were given, it counts for each until ten minutes after his connection")
    mutating func several() throws {
        let held = try memory[0].readers.open()
        #expect(give(0, 100) == nil)
        #expect(give(0, 100, to: Self.other) == nil)
        leave(0, at: 1)
        #expect(give(1, 10, at: 10) != nil)
        #expect(give(1, 10, at: 11) == nil)
        #expect(give(2, 10, to: Self.other, at: 100) != nil)
        _ = held.rawValue
    }

    @Test("the kernel's reader may be a recorder, whose rings count for nobody")
    mutating func recorded() throws {
        let held = try memory[0].readers.open()
        account.giveRecorder("0", bytes: 1000, memory[0].readers)
        #expect(!account.has("0") && account.used(at: 0).isEmpty)
        #expect(give(0, 100) == nil)
        leave(0)
        account.sweep(at: 9 * Self.minute)
        #expect(give(1, 10, at: 9) != nil)
        account.sweep(at: 10 * Self.minute)
        #expect(give(1, 10, at: 10) == nil)
        leave(1, at: 10)
        // Without it, the reader is the user.
        account.recorderLeft("0")
        #expect(give(1, 10, at: 20) != nil)
        _ = held.rawValue
    }

    @Test("one ring is given in any case, and the next one to the same connection; the one before counts on")
    mutating func large() {
        #expect(give(0, 1000) == nil)
        #expect(give(1, 10) != nil)
        #expect(give(1, 1000, replacing: "0") == nil)
        #expect(account.used(at: 0)[Self.user] == 2000)
        #expect(give(2, 1000, replacing: "1") != nil)
        #expect(account.used(at: 10 * Self.minute)[Self.user] == 1000)
        #expect(give(2, 1000, replacing: "1", at: 10) == nil)
    }

    @Test("a connection that has gone on to another ring ends nothing of who came after it")
    mutating func handedOver() {
        #expect(give(0, 100) == nil)
        #expect(give(1, 0, replacing: "0") == nil)
        #expect(give(0, 100, at: 1) == nil)
        leave(1, at: 2)
        account.sweep(at: 60 * Self.minute)
        #expect(account.has("0"))
        #expect(give(2, 10, at: 60) != nil)
    }

    @Test("what was left of other workers counts for its user, and then no ring is given in any case")
    mutating func leftOver() {
        var left = RingRemainders()
        left.add([Self.user: 90, Self.other: 100], at: 0)
        account = RingAccount(budget: 100, own: Self.own, left)
        #expect(give(0, 50) == nil)
        #expect(give(1, 10) != nil)
        #expect(give(2, 50, to: Self.other) != nil)
        #expect(account.used(at: 0) == [Self.user: 50])
        #expect(give(1, 10, at: 10) == nil)
        #expect(give(2, 50, to: Self.other, at: 10) == nil)
    }

    @Test("who was given a ring is known until frames can come in it no more")
    func recipients() throws {
        func ring(_ id: String) throws -> RingWriter {
            let description = RingDescription(
                ring: id, stream: "s", device: "cam0", rendition: "native", format: 1, width: 8, height: 8,
                planes: [RingDescription.Plane(offset: 0, stride: 8, bytes: 64)], keep: 0, slots: 0, slotBytes: 4096)
            return try RingWriter(description, RingLedger(filling: 1, keep: 1, lending: 0))
        }
        var recipients = RingRecipients<String>()
        let first = try ring("0000000000000001")
        var second: RingWriter? = try ring("0000000000000002")
        recipients.add(.init(uid: Self.user, gid: 1), first, "native")
        recipients.add(.init(uid: Self.other, gid: 1), first, "native")
        if let second { recipients.add(.init(uid: Self.user, gid: 1), second, "bgr") }
        func rings(without uid: UInt32) -> [String] {
            recipients.sweep()
            return recipients.rings { other, _ in other != uid }.map(\.ring).sorted()
        }
        // Nobody has a descriptor.
        #expect(first.readers.isEmpty != false)
        #expect(rings(without: Self.user) == ["0000000000000001", "0000000000000002"])
        #expect(rings(without: Self.other) == ["0000000000000001"])
        #expect(rings(without: 1).isEmpty)
        second = nil
        #expect(rings(without: Self.user) == ["0000000000000001"])
        first.close(.replaced)
        #expect(rings(without: Self.user).isEmpty)
    }

    /// A descriptor that an array can have.
    private final class Holder {
        let descriptor: FileDescriptor
        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }
}
