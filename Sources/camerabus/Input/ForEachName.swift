import ArgumentParser
import BusClient
import BusProtocol
import JSON

/// A command for several things, one after the other: what is refused of one keeps none of the others from being done.
enum ForEachName {
    /// - Parameters:
    ///   - names: of the things, as they were typed.
    ///   - command: that was typed, for ``ErrorText``.
    ///   - body: answers whether it went as wanted.
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
                let text = asJSON ? refusal.json.description : ErrorText(command: command).text(.refused(refusal))
                Output.note(Table.printable(text))
            }
        }
        if !isFine { throw ExitCode(ExitStatus.refused) }
    }
}
