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
            'camerabus call bus.methods' lists the methods with the schemas of their parameters and results. A request \
            has at most 1 MiB. If a method has a parameter "lock" and you don't give it, the value of $CAMERABUS_LOCK \
            is used. If the parameters contain "wait" (milliseconds), the command waits that much longer than \
            --timeout.

            A lock from 'camerabus call device.lock' ends at once, because this program ends. To keep it, add "lease": \
            MILLISECONDS to the parameters, or use 'camerabus lock'.

            The result is printed in several lines, with --json in one line.

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

    func validate() throws {
        guard params != "-" else { return }
        do { _ = try Self.object(params) } catch { throw ValidationError(error.description) }
    }

    func run(_ client: Client) async throws {
        let given = try Self.object(params == "-" ? Self.standardInput() : params)
        let params = try Self.withLock(client.defaultLock, method, given)
        let answer = try await client.request(method, params, timeout: timeout + Self.wait(params))
        try Output.line((options.json ? answer.result.description : answer.result.indented).escapedInJSON)
        for attachment in answer.result["attachments"]?.array ?? [] {
            Output.note("left out: \(attachment)")
        }
        if let warning = Self.warning(method, params, pid: client.greeting.pid) { Output.note(warning) }
    }

    /// A warning about a lock that ends at once, because this process ends.
    ///
    /// - Parameter pid: of this process, as the bus sees it; 0: it doesn't.
    static func warning(_ method: String, _ params: JSONValue, pid: Int64) -> String? {
        guard method == "device.lock" || method == "device.takeOver", params["lease"] == nil else { return nil }
        let when = pid == 0 ? "in 10 s" : "now, with this program"
        return
            "This lock ends \(when). Use 'camerabus lock' to hold a lock while a command runs, "
            + "or \"lease\": 60000 for a lock of one minute."
    }

    private static func standardInput() throws -> String {
        String(decoding: try File.read("/dev/stdin", limit: BusLimits.maxRequestBytes), as: UTF8.self)
    }

    private static func object(_ text: String) throws(Failure) -> JSONValue {
        do throws(JSONError) {
            let value = try JSONValue(parsing: text)
            if value.object != nil { return value }
        } catch {
            throw Failure(status: ExitStatus.usage, description: "The parameters are not valid JSON: \(error).")
        }
        throw Failure(status: ExitStatus.usage, description: "The parameters must be a JSON object.")
    }

    /// Adds the lock that the environment names, for a method that takes one.
    static func withLock(_ token: String?, _ method: String, _ params: JSONValue) throws -> JSONValue {
        guard let token, var members = params.object, members["lock"] == nil,
            let schema = MethodTable[method]?.params.json, schema["properties"]?["lock"] != nil
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
