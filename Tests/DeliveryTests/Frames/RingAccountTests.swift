import BusProtocol
import JSON
import LinuxIO
import Testing

@testable import Delivery

@Suite("The memory of rings that users have")
struct RingAccountTests {
    private static let minute: Int64 = 60_000_000_000
    private let memory: [SharedMemory]
    private var account = RingAccount<String>(budget: 100)
    private let user = RingAccount<String>.User(uid: 1000, gid: 1000)
    private let other = RingAccount<String>.User(uid: 1001, gid: 1000)

    init() throws {
        memory = try (0..<8).map { _ in try SharedMemory(name: "test", count: 4096) }
    }

    private mutating func give(
        _ number: Int, _ bytes: Int, to user: RingAccount<String>.User? = nil, replacing replaced: String = "",
        at now: Int64 = 0
    ) -> BusError? {
        do throws(BusError) {
            try account.give(
                "\(number)", "bgr", bytes: bytes, memory[number].readers, to: user ?? self.user, replacing: replaced,
                at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test("a ring counts as long as somebody has its memory, and no longer")
    mutating func released() throws {
        var held = [Holder(try memory[0].readers.open()), Holder(try memory[1].readers.open())]
        #expect(give(0, 60) == nil)
        #expect(give(1, 40) == nil)
        let error = give(2, 10)
        #expect(error?.reason == .limitExceeded && error?.data["limit"] == "ringBytes" && error?.data["maximum"] == 100)
        // Another user has a budget of his own, and what is given already costs nothing once more.
        #expect(give(2, 10, to: other) == nil)
        #expect(give(0, 60) == nil)
        for ring in ["0", "0", "1"] { account.closed(ring, of: user, at: 0) }
        #expect(give(3, 10, at: 20 * Self.minute) != nil)
        held.removeLast()
        #expect(give(3, 10, at: 20 * Self.minute) == nil)
        #expect(!account.has("1") && account.has("0"))
    }

    @Test("a mapping counts like a descriptor")
    mutating func mapped() throws {
        var view: SharedMemoryView?
        do {
            let descriptor = try memory[0].readers.open()
            view = try SharedMemoryView(descriptor.rawValue)
        }
        #expect(give(0, 100) == nil)
        #expect(give(1, 10) != nil)
        withExtendedLifetime(view) {}
        view = nil
        #expect(give(1, 10) == nil)
    }

    @Test("of a ring that several users were given, it counts for each until ten minutes after his connection")
    mutating func several() throws {
        let held = try memory[0].readers.open()
        #expect(give(0, 100) == nil)
        #expect(give(0, 100, to: other) == nil)
        account.closed("0", of: user, at: Self.minute)
        #expect(give(1, 10, at: 10 * Self.minute) != nil)
        #expect(give(1, 10, at: 11 * Self.minute) == nil)
        #expect(give(2, 10, to: other, at: 100 * Self.minute) != nil)
        #expect(account.rings(unless: { uid, _ in uid != 1000 }).map(\.ring).contains("0"))
        _ = held.rawValue
    }

    @Test("one ring is given in any case, and the next one to the same connection")
    mutating func large() throws {
        let held = try memory[0].readers.open()
        #expect(give(0, 1000) == nil)
        #expect(give(1, 10) != nil)
        #expect(give(1, 1000, replacing: "0") == nil)
        let second = try memory[1].readers.open()
        #expect(give(2, 1000, replacing: "1") != nil)
        _ = (held.rawValue, second.rawValue)
    }

    /// A descriptor that an array can have.
    private final class Holder {
        private let descriptor: FileDescriptor
        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }
}
