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
        abstract:
            "Finds faults of this machine's cameras, permissions, groups and limits, and shows how to repair them.",
        discussion: """
            One line per check: ✓ no fault, ✗ faults were found, – nothing to check. Each finding below a ✗ shows its \
            id, its subject, what it means, and after '$' the command that repairs it. The doctor changes nothing and \
            opens no camera.

            It works without a bus and without root. As root it also sees which devices other users' programs have \
            open. For a bus on another machine ($CAMERABUS_RUNTIME_DIR or --runtime-dir tcp://HOST:PORT) it checks the \
            connection (name, port, both keys, role, round-trip time, clocks) and what the bus reports about its \
            devices. Run the doctor on that machine to check the machine itself. Exit status: 0 no fault, 1 there are \
            findings.

            With --json: {"findings": count, "checks": [{"id", "outcome": healthy, faulty or skipped, "text", "notes", \
            "findings": [{"id", "subject", "meaning", "remedy", "advice"}]}]}. The ids do not change between versions.

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
                program: ProgramVersion.text, libraries: ["libzmq": ZeroMQ.libraryVersion()]))
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
