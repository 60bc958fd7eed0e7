import JSON
import Testing

@testable import Doctor

/// The checks of a bus on another machine, over one that is made up.
@Suite struct RemoteCheckTests {
    private static func remote(_ change: (inout RemoteFacts) -> Void) -> Facts {
        var facts = CheckTests.sound
        facts.directories = []
        facts.busProcess = nil
        facts.bus.directory = "tcp://rig:7350"
        var remote = RemoteFacts(address: "tcp://rig:7350", host: "rig")
        (remote.name, remote.role, remote.roundTrip) = ("laptop", "control", 420_000)
        remote.clock = .init(offset: 300_000, uncertainty: 200_000, isKeptThere: true, isKeptHere: true)
        change(&remote)
        facts.remote = remote
        return facts
    }

    private func outcome(_ id: String, _ facts: Facts) -> Outcome? {
        Checkup.results(facts).first { $0.check == id }?.outcome
    }

    @Test func `the way to another machine is told, and this one's cameras are nobody's business`() {
        let facts = Self.remote { _ in }
        #expect(Checkup.results(facts).flatMap(\.findings).isEmpty)
        guard case .healthy(let text, _)? = outcome("remote", facts) else { return #expect(Bool(false)) }
        #expect(text == "tcp://rig:7350 accepts this client as 'laptop' with the role control, 0.42 ms round trip")
        #expect(outcome("clocks", facts) == .healthy("0.30 ms apart (± 0.20 ms)"))
        #expect(outcome("camera", facts) == .skipped("run the doctor on the other machine"))
        #expect(outcome("remote", CheckTests.sound) == nil && outcome("clocks", CheckTests.sound) == nil)
    }

    @Test(arguments: RemoteFacts.Problem.allCases)
    func `what stands in the way is one finding, and nothing else is blamed`(problem: RemoteFacts.Problem) {
        var facts = Self.remote { ($0.problem, $0.meaning, $0.key) = (problem, "It is so.", "K#Y") }
        facts.bus = BusReport()
        let findings = Checkup.results(facts).flatMap(\.findings)
        #expect(findings.map(\.id) == [problem.rawValue] && findings.first?.meaning == "It is so.")
        if problem == .key {
            #expect(findings[0].remedy == #"ssh -t rig 'sudo camerabus keys add NAME '\''K#Y'\'' --role control'"#)
        }
    }

    @Test func `a port that is shut, clocks that differ, and the bus's own complaints are told`() {
        let shut = Self.remote { $0.closedPorts = [7352] }
        #expect(
            outcome("remote", shut).map { CheckResult(check: "", outcome: $0).findings.map(\.id) } == [
                "remote-port-closed"
            ])
        let clocks = Self.remote { $0.clock?.offset = -2_000_000_000 }
        let apart = Checkup.results(clocks).flatMap(\.findings)
        #expect(apart.map(\.id) == ["clocks-apart"] && apart[0].meaning.contains("2000.00 ms behind"))
        var worker = Self.remote { _ in }
        worker.bus.devices = [CheckTests.device("cam0", ["worker": ["state": "failed", "restarts": 3]])]
        let down = Checkup.results(worker).flatMap(\.findings)
        #expect(down.map(\.id) == ["worker-down"] && down[0].remedy == "ssh -t rig 'journalctl -u camerabusd -n 50'")
        var pressed = Self.remote { _ in }
        pressed.bus.pressure = ["level": "serious", "factors": ["io"]]
        #expect(Checkup.results(pressed).flatMap(\.findings).first?.remedy == "ssh -t rig 'grep . /proc/pressure/io'")
    }

    @Test func `a key that is kept from the cameras isn't taken for a user of the other machine`() {
        var facts = Self.remote { _ in }
        facts.bus.videoPermission = "denied"
        let findings = Checkup.results(facts).flatMap(\.findings)
        #expect(findings.map(\.id) == ["permission-remote"] && findings[0].meaning.contains("laptop"))
        #expect(findings[0].remedy.hasPrefix("ssh -t rig 'sudoedit") && !"\(findings)".contains("1000"))
    }
}
