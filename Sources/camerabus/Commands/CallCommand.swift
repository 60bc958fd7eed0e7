import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON
import LinuxIO

struct CallCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "call", abstract: "Calls any method of the bus and prints its result.",
        discussion: """
            'camerabus call bus.methods' lists the methods with the schemas of what they take and answer. A method that works under a lock \
            gets $CAMERABUS_LOCK unless 'lock' is among its parameters. The time that a method may 'wait' comes on top of --timeout.

            With --json the result is one line.

            EXAMPLES:
              camerabus call bus.ping
              camerabus call device.get '{"device": "cam0"}'
              echo '{"device": "cam0", "fault": "stall"}' | camerabus call fault.inject -
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The method's name.", completion: .list(MethodTable.all.map(\.name)))
    var method: String

    @Argument(
        help: ArgumentHelp("Its parameters, a JSON object; '-' reads them from standard input.", valueName: "json"))
    var params = "{}"

    func run(_ client: Client) async throws {
        let params = try Self.withLock(client.defaultLock, method, try readParams())
        let answer = try await client.request(method, params, timeout: timeout + Self.wait(params))
        try Output.line(options.json ? answer.result.description : answer.result.indented)
        for attachment in answer.result["attachments"]?.array ?? [] {
            Output.note("left out: \(attachment)")
        }
    }

    private func readParams() throws -> JSONValue {
        var text = params
        if text == "-" {
            text = String(decoding: try File.read("/dev/stdin", limit: BusLimits.maxRequestBytes), as: UTF8.self)
        }
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(parsing: text)
        } catch {
            throw ValidationError("The parameters are no JSON: \(error).")
        }
        guard value.object != nil else { throw ValidationError("The parameters must be a JSON object.") }
        return value
    }

    /// Adds the lock that the environment names, for a method that can do without one.
    static func withLock(_ token: String?, _ method: String, _ params: JSONValue) throws -> JSONValue {
        guard let token, var members = params.object, members["lock"] == nil,
            let schema = MethodTable[method]?.params.json, schema["properties"]?["lock"] != nil,
            !(schema["required"]?.array ?? []).contains("lock")
        else { return params }
        members["lock"] = .string(token)
        return .object(members)
    }

    /// How long the bus may hold the answer back.
    static func wait(_ params: JSONValue) -> Duration {
        guard let milliseconds = params["wait"]?.double, milliseconds > 0, milliseconds <= 86_400_000 else {
            return .zero
        }
        return .milliseconds(Int64(milliseconds.rounded(.up)))
    }
}
