import CameraBusTesting
import Glibc
import LinuxIO
import Testing

@Suite struct MemoryRooms {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    /// The machine has 1000 MiB, of which 600 can be had.
    private func room(_ group: String?, _ files: [String: String] = [:]) throws -> MemoryRoom? {
        try folder.write("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 512000 kB\nSwapFree:  102400 kB\n")
        if let group { try folder.write("proc/self/cgroup", "1:name=systemd:/other\n0::\(group)\n") }
        for (name, text) in files { try folder.write("groups/\(name)", text) }
        return MemoryRoom.now(processes: "\(folder.path)/proc", groups: "\(folder.path)/groups")
    }

    @Test func `without a control group it is what the machine has left`() throws {
        #expect(try room(nil) == MemoryRoom(bytes: 600 << 20, limit: .machine))
        #expect(try room("/") == MemoryRoom(bytes: 600 << 20, limit: .machine))
    }

    @Test func `the narrowest control group counts, less what goes when the room is needed`() throws {
        let files = [
            "system.slice/memory.max": "\(300 << 20)\n", "system.slice/memory.current": "\(250 << 20)\n",
            "system.slice/memory.stat":
                "anon 5\nfile \(99 << 20)\nshmem \(60 << 20)\ninactive_file \(30 << 20)\nactive_file \(10 << 20)\n",
            "system.slice/bus.service/memory.max": "max\n",
            "system.slice/bus.service/memory.current": "\(200 << 20)\n",
        ]
        let room = try room("/system.slice/bus.service", files)
        #expect(room == MemoryRoom(bytes: 90 << 20, limit: .group("/system.slice")))
        #expect(room?.remedy.contains("/system.slice") == true && room?.remedy.contains("MemoryMax=") == true)
    }

    @Test(arguments: ["/", "/a"])
    func aContainersOwnLimitIsThatOfItsRoot(_ group: String) throws {
        let files = ["memory.max": "\(90 << 20)", "memory.current": "\(50 << 20)", "a/memory.max": "max"]
        #expect(try room(group, files) == MemoryRoom(bytes: 40 << 20, limit: .group("/")))
    }

    @Test(arguments: [
        ("100", "200", "", UInt64(0)), ("100", "18446744073709551615", "", 0), ("100", "50", "inactive_file 90\n", 100),
        ("100", "50", "inactive_file -3\nactive_file x\n", 50),
    ])
    func whatIsOverdrawnIsNothing(_ limit: String, _ used: String, _ given: String, _ left: UInt64) throws {
        let files = ["a/memory.max": limit, "a/memory.current": used, "a/memory.stat": given]
        #expect(try room("/a", files)?.bytes == left)
    }

    @Test func `where nothing can be read nothing is known`() throws {
        let room = MemoryRoom.now(processes: "\(folder.path)/none", groups: "\(folder.path)/none")
        // But what the test itself may have at most.
        #expect(room == nil || room?.limit == .addressSpace || room?.limit == .fileSize)
    }
}
