import ArgumentParser
import BusClient
import BusProtocol
import Doctor
import JSON
import LinuxIO
import ZeroMQ

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Says what is wrong with this machine's cameras, permissions, groups and limits, and how to mend it.",
        discussion: """
            A line for each check: ✓ nothing is wrong, ✗ something is, – there was nothing to look at. Below a ✗ stands each finding: its id, \
            what it is about, what it means, and behind '$' the command that mends it. Nothing is changed, and no camera is opened.

            It works without a bus and without root; root sees more: what other users' programs have open. Of a bus on another machine \
            ($CAMERABUS_RUNTIME_DIR or --runtime-dir tcp://HOST:PORT) it looks at the way there (name, port, both keys, role, time there and back, clocks) and at \
            what the bus says of its devices; the machine itself is looked at by the doctor over there. Exit status: 0 nothing is \
            wrong, 1 there are findings.

            With --json: {"findings": how many, "checks": [{"id", "outcome": healthy, faulty or skipped, "text", "notes", "findings": [{"id", \
            "subject", "meaning", "remedy", "advice"}]}]}. The ids stay as they are.

            CHECKS:
              \(Checkup.checks.map(\.id).joined(separator: ", "))

            EXAMPLES:
              camerabus doctor
              sudo camerabus doctor
              camerabus doctor --json | jq -r '.checks[].findings[] | "\\(.id): \\(.remedy)"'
            """)

    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let (bus, directories, remote) = await BusReportReader(options).hold()
        var facts = Machine().facts(
            directories: directories, bus: bus,
            versions: VersionFacts(
                program: Camerabus.configuration.version, libraries: ["libzmq": ZeroMQ.libraryVersion()]))
        facts.remote = remote
        let results = Checkup.results(facts)
        let count = results.reduce(0) { $0 + $1.findings.count }
        if options.json {
            try Output.json(["findings": JSONValue(count), "checks": .array(results.map(\.json))])
        } else {
            for result in results { for line in Self.lines(result) { try Output.line(Table.printable(line)) } }
        }
        if count > 0 { throw ExitCode(ExitStatus.refused) }
    }

    /// What people read of a check.
    static func lines(_ result: CheckResult) -> [String] {
        var lines: [String] = []
        switch result.outcome {
        case .healthy(let text, let notes):
            lines = ["✓ \(result.check): \(text)"] + notes.map { "    note: \($0)" }
        case .skipped(let why): lines = ["– \(result.check): \(why)"]
        case .faulty(let findings, let notes):
            lines = ["✗ \(result.check): \(findings.count == 1 ? "1 finding" : "\(findings.count) findings")"]
            for finding in findings {
                lines.append("    \(finding.id)\(finding.subject.map { " \($0)" } ?? "")")
                lines.append("      \(finding.meaning)")
                lines.append("      $ \(finding.remedy)")
                if let advice = finding.advice { lines.append("      \(advice)") }
            }
            lines += notes.map { "    note: \($0)" }
        }
        return lines
    }
}
