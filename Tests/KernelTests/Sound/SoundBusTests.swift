import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension SoundCardTests {
    /// The kernel's microphones on the bus.
    @Suite(.timeLimit(.minutes(10))) struct OnTheBus {
        /// For an answer: a worker that is started anew, by an emulated processor, comes first.
        private static let patience = Duration.seconds(120)

        /// The devices, once so many are there: emulated processors take their time.
        private func microphones(_ bus: BusHarness, _ client: Client) async throws -> [JSONValue] {
            var found: [JSONValue] = []
            try await eventually {
                found = try await client.devices(timeout: Self.patience).filter { $0["mediaType"] == "audio" }
                return found.count >= 3 && found.allSatisfy { $0["activeFormat"]?["rate"]?.integer != nil }
            }
            return found
        }

        @Test func theKernelsMicrophonesAreDevicesWhoseSoundComesWholeAndAsItIsSet() async throws {
            let bus = try await BusHarness(virtual: nil)
            let client = try await bus.connect()
            let found = try await microphones(bus, client)
            #expect(Set(found.map { $0["uniqueID"] }).count == found.count)
            #expect(found.allSatisfy { $0["node"]?.string?.hasPrefix("/dev/snd/pcm") == true })
            // snd-dummy has a mixer, a loop has none.
            let dummy = try #require(found.first { $0["name"]?.string?.contains("Dummy") == true })
            let id = dummy["id"]?.string ?? ""
            #expect(dummy["controls"]?["gain"] != nil, "\(dummy)")
            let name = try await client.rename(id, to: "desk", timeout: Self.patience)
            #expect(name["device"]?["id"] == "desk" && name["device"]?["uniqueID"] == dummy["uniqueID"])

            let loop = try #require(found.first { $0["name"]?.string?.contains("Loopback") == true })
            let device = loop["id"]?.string ?? ""
            let lock = try await client.lock([device], timeout: Self.patience)
            _ = try await client.configure(
                [["device": .string(device), "activeFormat": ["sampleFormat": "s16", "rate": 44100, "channels": 2]]],
                lock: lock.token, timeout: Self.patience)
            let sounds = try await client.sound(device, timeout: Self.patience)
            var last: SoundHeader?
            for _ in 0..<30 {
                let header = try await sounds.next().header
                #expect(header.rate == 44100 && header.channels == 2 && header.timestampSource == "status")
                if let last, header.overruns == last.overruns {
                    #expect(header.firstFrame == last.firstFrame + UInt64(last.frames))
                }
                last = header
            }
            try await bus.wait(for: "state/device/\(device)/") { $0?["isStreaming"] == true }
            sounds.close()
            try await bus.wait(for: "state/device/\(device)/") { $0?["isStreaming"] == false }
            await client.close()
            try await bus.stop()
        }
    }
}
