import ArgumentParser
import BusClient
import BusProtocol
import JSON

/// Runs a command for several names, one after the other. An error of one name does not stop the others.
enum ForEachName {
    /// - Parameters:
    ///   - names: of the things, as they were typed.
    ///   - command: that was typed, for ``ErrorText``.
    ///   - body: returns whether it succeeded.
    /// - Throws: `ExitCode` when one did not; of a single one the refusal itself.
    static func run(
        _ names: [String], of command: String, asJSON: Bool, _ body: (String) async throws -> Bool
    ) async throws {
        var isFine = true
        for name in names {
            do {
                isFine = try await body(name) && isFine
            } catch ClientError.refused(let refusal) where names.count > 1 {
                isFine = false
                guard !asJSON else {
                    Output.note(refusal.json.description.escapedInJSON)
                    continue
                }
                Output.note(Table.printable(ErrorText(command: command).text(.refused(refusal))))
            }
        }
        if !isFine { throw ExitCode(ExitStatus.refused) }
    }
}
