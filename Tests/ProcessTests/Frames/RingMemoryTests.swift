import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// How much shared memory the programs of one user can make a worker spend.
    @Suite(.timeLimit(.minutes(5))) struct RingMemory {
        /// A control group of the memory alone, for one process; nil: this machine lets the test make none.
        private final class MemoryGroup {
            private let path: String

            init?(_ name: String, bytes: Int, pid: Int32) {
                let root = "/sys/fs/cgroup"
                let isUnified = access("\(root)/cgroup.controllers", F_OK) == 0
                path = isUnified ? "\(root)/\(name)" : "\(root)/memory/\(name)"
                guard isUnified || access("\(root)/memory/tasks", F_OK) == 0, mkdir(path, 0o755) == 0 else {
                    return nil
                }
                let limit = isUnified ? "memory.max" : "memory.limit_in_bytes"
                guard write("\(bytes)", limit), write("\(pid)", "cgroup.procs") else {
                    rmdir(path)
                    return nil
                }
            }

            deinit { rmdir(path) }

            private func write(_ text: String, _ name: String) -> Bool {
                guard let file = try? FileDescriptor(opening: "\(path)/\(name)", O_WRONLY) else { return false }
                return (try? FileDescriptor.writeAll(Array(text.utf8), to: file.rawValue)) != nil
            }
        }

        /// Asks for rings of ever new sizes, each over a connection of its own, which it closes; and keeps the memory,
        /// by its descriptor or by one of its path alone, which the kernel does not count as a reader.
        private static let keeper = #"""
            import array, json, os, signal, socket, sys
            path, wanted, connections, first, how = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
            kept, refused, held = [], 0, 0
            for number in range(wanted):
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connection.settimeout(20)
                connection.connect(path)
                width = first + 6 * (number // connections)
                connection.send(json.dumps({"rendition": f"bgr:{width}x0"}).encode())
                message, ancillary, _, _ = connection.recvmsg(65536, 64)
                if ancillary:
                    descriptor = array.array("i", ancillary[0][2])[0]
                    if os.fstat(descriptor).st_ino not in [os.fstat(other).st_ino for other in kept]:
                        held += os.fstat(descriptor).st_size
                    if how == "path":
                        kept.append(os.open(f"/proc/self/fd/{descriptor}", os.O_PATH))
                        os.close(descriptor)
                    else:
                        kept.append(descriptor)
                else:
                    error = json.loads(message)["error"]
                    refused += 1
                    print("refused", error["reason"], error["data"]["limit"], flush=True)
                connection.close()
            print("holds", len(kept), refused, held, flush=True)
            signal.pause()
            """#

        private static let budget = 100 << 20

        private func bus() async throws -> BusHarness {
            try await BusHarness(
                virtual: 1,
                configuration: OtherUser.configuration
                    + "[permission]\ndefault = \"view\"\n[limits]\nring_memory = \(Self.budget)\n")
        }

        private func keep(
            _ bus: BusHarness, _ wanted: Int, of device: String = "cam0", connections: Int = 1, from width: Int = 600,
            _ how: String
        ) throws -> RunningProgram {
            try bus.start(
                OtherUser.python,
                ["-c", Self.keeper, bus.directory.ringSocket(device), "\(wanted)", "\(connections)", "\(width)", how],
                as: .first)
        }

        private func numbers(_ program: RunningProgram) -> [Int]? {
            program.standardOutput.split(separator: "\n").last { $0.hasPrefix("holds") }
                .map { $0.split(separator: " ").dropFirst().compactMap { Int($0) } }
        }

        @Test(
            .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"),
            arguments: ["descriptor", "path"])
        func `a hundred kept rings of ever new sizes end no worker, and cost others no frame`(
            _ how: String
        ) async throws {
            let bus = try await bus()
            let worker = try #require(try bus.workerPID("cam0"))
            let group = MemoryGroup("camerabus-test-\(worker)", bytes: 400 << 20, pid: worker)
            let witness = try FrameReader(bus, "cam0", "gray:64x0")
            _ = try witness.next()
            let keeper = try keep(bus, 100, how)
            try await eventually { numbers(keeper) != nil || !keeper.standardError.isEmpty }
            let told = try #require(numbers(keeper), "\(keeper.standardError)")
            #expect(told[0] > 0 && told[1] > 0 && told[2] <= Self.budget, "\(told)")
            #expect(keeper.standardOutput.hasPrefix("refused limitExceeded ringBytes"), "\(keeper.standardOutput)")
            // Whoever needs no memory of his own gets frames as before.
            _ = try witness.next()
            _ = try FrameReader(bus, "cam0", "native").next()
            #expect(try bus.workerPID("cam0") == worker)
            withExtendedLifetime(group) {}
            keeper.process.send(SIGKILL)
            _ = try await keeper.end()
            try await bus.stop()
        }

        @Test(
            .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"),
            arguments: ["descriptor", "path"])
        func `a rendition that a reader keeps is given again in the same memory`(_ how: String) async throws {
            let bus = try await bus()
            let witness = try FrameReader(bus, "cam0", "native")
            _ = try witness.next()
            let keeper = try keep(bus, 60, connections: 60, how)
            try await eventually { numbers(keeper) != nil || !keeper.standardError.isEmpty }
            let told = try #require(numbers(keeper), "\(keeper.standardError)")
            #expect(told[0] == 60 && told[1] == 0 && told[2] <= Self.budget / 5, "\(told)")
            keeper.process.send(SIGKILL)
            _ = try await keeper.end()
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `what a user keeps of a worker that was killed or renamed counts at the next one`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            var (device, held) = ("cam0", 0)
            for round in 0..<4 {
                let witness = try FrameReader(bus, device, "gray:64x0")
                _ = try witness.next()
                let keeper = try keep(bus, 25, of: device, from: 500 + 6 * 25 * round, "path")
                try await eventually { numbers(keeper) != nil || !keeper.standardError.isEmpty }
                let told = try #require(numbers(keeper), "\(keeper.standardError)")
                held += told[2]
                withExtendedLifetime(witness) {}
                // One is given in any case.
                #expect(told[1] > 0 && held <= Self.budget + 20 << 20, "\(round): \(told), \(held)")
                keeper.process.send(SIGKILL)
                _ = try await keeper.end()
                if round == 0 {
                    // What a worker has not reported when it is killed is lost; it reports before it answers.
                    try client.call("device.controls", ["device": "cam0"])
                    let worker = try #require(try bus.workerPID(device))
                    kill(worker, SIGKILL)
                    try await eventually { try bus.workerPID("cam0").map { $0 != worker } ?? false }
                } else {
                    try client.call("device.rename", ["device": .string(device), "name": .string("name\(round)")])
                    device = "name\(round)"
                }
            }
            try await bus.stop()
        }
    }
}
