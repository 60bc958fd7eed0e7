import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests.Permission {
    @Test func `permission for sound is none for cameras, whatever they are named by`() async throws {
        let bus = try await bus()
        _ = try call(bus, "rig.set", ["name": "desk", "devices": ["cam0"]])
        let granted = try await bus.run("camerabus", ["allow", "\(Self.user.uid)", "audio"])
        try #require(granted.status == 0, "\(granted)")
        for arguments in [
            ["lock", "desk", "--", "true"], ["rigs", "delete", "desk"],
            ["rigs", "set", "other", "cam0"], ["profiles", "save", "day", "cam0"],
        ] {
            let result = try await bus.run("camerabus", arguments, as: Self.user)
            #expect(result.status == 1, "\(arguments): \(result)")
            #expect(result.standardError.contains("unauthorized"), "\(arguments): \(result)")
        }
        try await bus.stop()
    }

    @Test func `a session ends when its user may not use the camera any more`() async throws {
        let bus = try await bus()
        try await allow(bus, Self.user)
        let made = try await bus.run("camerabus", ["session", "create", "cam0", "--start"], as: Self.user)
        try #require(made.status == 0, "\(made)")
        let session = try #require(try call(bus, "session.list")["sessions"]?.array?.first?["id"]?.string)
        try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
        try await deny(bus, Self.user)
        try await bus.wait(for: "state/session/\(session)/") {
            $0?["state"] == "stopped" && $0?["error"]?["reason"] == "unauthorized"
        }
        try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == false }
        try await bus.stop()
    }

    @Test func `without permission a command changes nothing and prints advice; reading still works`() async throws {
        let bus = try await bus()
        // Before its worker has looked at it nothing is known of a camera.
        let before = try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["brightness"] != nil }?[
            "controls"]
        for arguments in [
            ["set", "cam0", "brightness=17"], ["lock", "cam0", "--", "true"], ["name", "cam0", "mine"],
            ["lock", "cam0", "--", "camerabus", "format", "cam0", "640x480"],
        ] {
            let result = try await bus.run("camerabus", arguments, as: Self.user)
            #expect(result.status == 1, "\(arguments): \(result)")
            #expect(result.standardError.contains("unauthorized"), "\(arguments): \(result)")
            #expect(
                result.standardError.contains("camerabus allow \(Self.user.uid) video"), "\(arguments): \(result)")
        }
        for arguments in [["devices"], ["status"], ["controls", "cam0"], ["locks"], ["who", "cam0"]] {
            let result = try await bus.run("camerabus", arguments, as: Self.user)
            #expect(result.status == 0, "\(arguments): \(result)")
        }
        #expect(try call(bus, "device.get", ["device": "cam0"])["device"]?["controls"] == before)
        // Nothing was asked: who changes things says so by a request.
        #expect(try call(bus, "authorization.list")["requests"] == [])
        try await allow(bus, Self.user)
        let result = try await bus.run("camerabus", ["set", "cam0", "brightness=17"], as: Self.user)
        #expect(result.status == 0, "\(result)")
        try await bus.stop()
    }

    @Test func `deny without a medium refuses all of them`() async throws {
        let bus = try await bus()
        let uid = "\(Self.user.uid)"
        for media in ["video", "audio", "libraryAdd", "library"] {
            _ = try await bus.run("camerabus", ["allow", uid, media])
        }
        let denied = try await bus.run("camerabus", ["deny", uid])
        #expect(denied.status == 0 && denied.standardOutput.contains("libraryAdd and library refused"), "\(denied)")
        let decisions = try call(bus, "authorization.list")["decisions"]?.array ?? []
        #expect(decisions.count == 4 && decisions.allSatisfy { $0["status"] == "denied" }, "\(decisions)")
        try await bus.stop()
    }

    @Test func `only administrators decide, and nobody for those whom the configuration decides about`()
        async throws
    {
        let configuration =
            OtherUser.configuration + "[permission.users]\n\(OtherUser.second.uid) = \"control\"\n"
        let bus = try await BusHarness(virtual: 1, configuration: configuration)
        for arguments in [["allow", "\(Self.user.uid)"], ["deny", "0"], ["permissions", "--reset", "0"]] {
            for user in [Self.user, OtherUser.second] {
                let result = try await bus.run("camerabus", arguments, as: user)
                #expect(result.status == 1 && result.standardError.contains("administrators"), "\(result)")
            }
        }
        for uid in ["0", "\(OtherUser.second.uid)"] {
            let result = try await bus.run("camerabus", ["deny", uid, "video"])
            #expect(result.status == 1 && result.standardError.contains("invalidParams"), "\(result)")
        }
        let result = try await bus.run("camerabus", ["set", "cam0", "brightness=17"], as: OtherUser.second)
        #expect(result.status == 0, "\(result)")
        try await bus.stop()
    }

    @Test func `roles look, are kept out, or rule, and a reload changes them at once`() async throws {
        func configuration(_ role: String) -> String {
            OtherUser.configuration + "[permission.groups]\n\(Self.user.gid) = \"\(role)\"\n"
                + "[permission.users]\nnobody-of-that-name = \"view\"\n"
        }
        let bus = try await BusHarness(virtual: 1, configuration: configuration("view"))
        #expect(try bus.problems() == ["userUnknown"])
        let stranger = try watch(bus, .frame, as: Self.user, "native")
        try await eventually { lines(stranger, "frame").count > 3 }
        let refused = try await bus.run("camerabus", ["set", "cam0", "brightness=17"], as: Self.user)
        #expect(refused.status == 1 && refused.standardError.contains("view"), "\(refused)")

        try bus.write(configuration("none"), to: "camerabus.toml")
        kill(bus.pid, SIGHUP)
        try await eventually { lines(stranger, "out").count == 1 }
        let status = try await bus.run("camerabus", ["ask", "video", "--reason", "please"], as: Self.user)
        #expect(status.status == 1 && status.standardOutput == "restricted\n", "\(status)")
        #expect(try call(bus, "authorization.list")["requests"] == [])

        try bus.write(configuration("admin"), to: "camerabus.toml")
        kill(bus.pid, SIGHUP)
        try await eventually { lines(stranger, "in").count == 2 }
        try await eventually {
            try await bus.run("camerabus", ["allow", "\(OtherUser.second.uid + 1)", "video"], as: Self.user).status
                == 0
        }
        try await bus.stop()
    }

    @Test func `locks of a user end when the permission is revoked`() async throws {
        let bus = try await bus()
        try await allow(bus, Self.user)
        let holder = try bus.start("camerabus", ["lock", "cam0"], as: Self.user)
        try await bus.wait(for: "state/device/cam0/") { $0?["lock"]?["id"] != nil }
        try await deny(bus, Self.user)
        try await bus.wait(for: "state/device/cam0/") { $0?["lock"] == .null }
        #expect(try await holder.end().status == 1)
        try await bus.stop()
    }
}
