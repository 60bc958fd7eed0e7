import CaptureCore
import JSON
import Testing

@Suite struct ZoomRampOwnerTests {
    private static func holder(_ pid: Int32, started: UInt64? = 7, uid: UInt32 = 1, name: String = "a") -> LockHolder {
        LockHolder(uid: uid, gid: 1, pid: pid, startTime: started, name: name)
    }

    private static func lock(_ fence: UInt64, of holder: LockHolder, isTransient: Bool = false) -> Lock {
        Lock(
            id: "l", tokenHash: "t", devices: ["cam0"], holder: holder, fence: fence, since: 0, isTransient: isTransient
        )
    }

    @Test("a ramp yields to a newer lock of another process, and to no other")
    func yields() {
        let ramp = ZoomRampOwner(holder: Self.holder(5), fence: 10)
        #expect(ramp.yields(to: Self.lock(11, of: Self.holder(6))))
        #expect(ramp.yields(to: Self.lock(11, of: Self.holder(5, started: 8))))
        #expect(ramp.yields(to: Self.lock(11, of: Self.holder(5, uid: 2))))
        #expect(!ramp.yields(to: Self.lock(11, of: Self.holder(5))))
        #expect(!ramp.yields(to: Self.lock(11, of: Self.holder(5, name: "b"))))
        #expect(!ramp.yields(to: Self.lock(11, of: Self.holder(6), isTransient: true)))
        // Begun under that very lock, which was handed on.
        #expect(!ramp.yields(to: Self.lock(10, of: Self.holder(6))))
        // Of processes that are not known here, none is the same as another.
        let unknown = ZoomRampOwner(holder: Self.holder(0, started: nil), fence: 10)
        #expect(unknown.yields(to: Self.lock(11, of: Self.holder(0, started: nil))))
    }

    @Test("what is written is read back, and nothing else")
    func json() throws {
        for ramp in [
            ZoomRampOwner(holder: Self.holder(5), fence: 10),
            ZoomRampOwner(holder: Self.holder(0, started: nil), fence: 0),
        ] {
            #expect(ZoomRampOwner(json: try JSONValue(parsing: ramp.json.description)) == ramp)
        }
        for other: JSONValue in [.null, [:], ["fence": 3], ["fence": -1, "holder": Self.holder(5).keptJSON]] {
            #expect(ZoomRampOwner(json: other) == nil)
        }
    }
}
