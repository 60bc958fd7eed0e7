import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import Testing

extension ProcessTests.Permission {
    private static func configuration(_ role: AuthorizationRole, viewHasSound: Bool) -> String {
        OtherUser.configuration
            + "[permission]\nview_sound = \(viewHasSound)\n[permission.users]\n\(user.uid) = \"\(role.rawValue)\"\n"
    }

    @Test func `every way to a local user keeps to the role, before and after the configuration is read again`()
        async throws
    {
        let bus = try await BusHarness(
            virtual: 1, microphones: 1, configuration: Self.configuration(.view, viewHasSound: true))
        let witness = try FrameReader(bus, "cam0", Self.witnessed)
        let pictures = try [Lane.frame, .buffer, .ring].map { try watch(bus, $0, as: Self.user, "gray:320x0") }
        let sounds = try [Lane.audio, .level].map { try watch(bus, $0, as: Self.user, "native", of: "mic0") }
        func isIn(_ program: RunningProgram) -> Bool { lines(program, "in").count > lines(program, "out").count }
        let steps: [(role: AuthorizationRole, viewHasSound: Bool)] = [
            (.view, true), (.view, false), (.control, false), (.none, true), (.view, false), (.view, true),
            (.ask, true), (.control, true),
        ]
        for (role, viewHasSound) in steps {
            try bus.write(Self.configuration(role, viewHasSound: viewHasSound), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            let sees = role >= .view
            let hears = role >= .control || (role == .view && viewHasSound)
            for (programs, isGiven) in [(pictures, sees), (sounds, hears)] {
                for program in programs {
                    try await eventually { isIn(program) == isGiven }
                    let count = lines(program, "frame").count
                    if isGiven {
                        try await eventually { lines(program, "frame").count > count + 3 }
                    } else {
                        try read(witness, 5)
                        #expect(lines(program, "frame").count == count, "\(role) \(viewHasSound)")
                    }
                    #expect(lines(program, "written").isEmpty)
                }
            }
            let status = try await bus.ask(as: Self.user, [("authorization.status", [:])]).replies[0]["result"]
            let words = [AuthorizationMedia.video, .audio].map { status?["authorization"]?[$0.rawValue] }
            #expect(words.map { $0 == "authorized" } == [sees, hears], "\(role): \(status ?? .null)")
        }
        for program in pictures + sounds { #expect(program.standardError == "") }
        try await bus.stop()
    }
}
