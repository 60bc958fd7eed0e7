import ArgumentParser
import CaptureCore
import CaptureSources
import Delivery
import Glibc
import JSON
import LinuxIO
import Logging
import Worker

@main
struct CameraBusWorker: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-worker",
        abstract:
            "The process that owns one camera or microphone of CameraBus. camerabusd starts it; there is no need to do so by hand.",
        discussion: """
            Exit status: 0 ended in order, 1 failed, 64 usage, 74 the driver has hung in a call for 10 s, 75 another worker \
            has the device.
            """)

    @Flag(help: "Print what cameras and microphones this machine has, as JSON, and end.")
    var list = false

    @Option(help: ArgumentHelp("The device's id in topics and socket names.", valueName: "id"))
    var device: String?

    @Option(help: ArgumentHelp("Where the bus has its sockets.", valueName: "directory"))
    var runtimeDir: String?

    @Option(help: ArgumentHelp("Be the virtual camera of that number.", valueName: "number"))
    var virtual: Int?

    @Option(help: ArgumentHelp("Play this movie, or these pictures: {name, path, loop}.", valueName: "json"))
    var replay: String?

    @Option(help: ArgumentHelp("Show the frames that this client sends, as source.create has it.", valueName: "json"))
    var client: String?

    @Option(help: ArgumentHelp("The socket that the client sends them to.", valueName: "path"))
    var push: String?

    @Option(help: ArgumentHelp("Misbehave at these times: [{at, fault, …}].", valueName: "json"))
    var faults: String?

    @Option(help: ArgumentHelp("What that virtual camera is like: plain or iphone6.", valueName: "profile"))
    var virtualProfile = VirtualProfile.plain.rawValue

    @Option(help: ArgumentHelp("Own this camera, as --list tells of it.", valueName: "json"))
    var camera: String?

    @Option(help: ArgumentHelp("Own this microphone, as --list tells of it.", valueName: "json"))
    var microphone: String?

    @Option(help: ArgumentHelp("Be the virtual microphone of that number.", valueName: "number"))
    var virtualMicrophone: Int?

    @Option(help: ArgumentHelp("The camera's or microphone's id for ever.", valueName: "uniqueID"))
    var uniqueId: String?

    @Option(help: ArgumentHelp("The group that may connect to the media socket.", valueName: "name"))
    var group: String?

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = "info"

    @Option(help: ArgumentHelp("Distinct renditions that are made at the same time.", valueName: "count"))
    var renditions = 8

    @Option(help: ArgumentHelp("Close the device when nobody has wanted it for so long.", valueName: "milliseconds"))
    var idleCloseMs = 2000

    @Option(
        help: ArgumentHelp(
            "Open the device anew when a stream has had no frame for so long; 0: never.", valueName: "milliseconds"))
    var silenceLimitMs = 5000

    @Option(help: ArgumentHelp("The zoom factor that zoomValue 1 stands for, at most.", valueName: "factor"))
    var maxZoom = CameraControlMap.defaultMaxZoom

    @Option(help: ArgumentHelp("Connections of one user to the media socket.", valueName: "count"))
    var connectionsPerUser = 128

    @Option(help: ArgumentHelp("Connections to the media socket in all.", valueName: "count"))
    var connections = 1024

    @Option(help: ArgumentHelp("What an earlier worker of the device had committed.", valueName: "json"))
    var configuration: String?

    @Option(help: ArgumentHelp("What an earlier worker of the device had set for a photo.", valueName: "json"))
    var standIn: String?

    @Option(help: ArgumentHelp("Who may come in until the coordinator says otherwise.", valueName: "json"))
    var doors: String?

    func validate() throws {
        guard !list else { return }
        guard device != nil, runtimeDir != nil else { throw ValidationError("--device and --runtime-dir are needed") }
        let sources =
            [virtual, virtualMicrophone].count { $0 != nil }
            + [camera, replay, client, microphone].count { $0 != nil }
        guard sources == 1, (camera == nil && microphone == nil) == (uniqueId == nil) else {
            throw ValidationError(
                "one of --virtual, --virtual-microphone, --replay, --client with --push, and --camera or --microphone with --unique-id is needed"
            )
        }
        if microphone != nil, microphoneFacts == nil {
            throw ValidationError("--microphone takes what --list prints of one")
        }
        if client != nil, clientSource == nil || push == nil {
            throw ValidationError("--client takes what source.create makes, with --push")
        }
        if replay != nil, replayDescription == nil { throw ValidationError("--replay takes {name, path, loop}") }
        if camera != nil, facts == nil { throw ValidationError("--camera takes what --list prints of one") }
        if let virtual, !(0..<64).contains(virtual) { throw ValidationError("--virtual takes a number from 0 to 63") }
        if let virtualMicrophone, !(0..<64).contains(virtualMicrophone) {
            throw ValidationError("--virtual-microphone takes a number from 0 to 63")
        }
        guard VirtualProfile(rawValue: virtualProfile) != nil else {
            throw ValidationError("there is no virtual profile '\(virtualProfile)'")
        }
        guard (1...1000).contains(maxZoom) else { throw ValidationError("--max-zoom takes a factor from 1 to 1000") }
        guard Logger.Level(rawValue: logLevel) != nil else { throw ValidationError("there is no level '\(logLevel)'") }
        guard (1...64).contains(renditions), (0...3_600_000).contains(idleCloseMs),
            (0...3_600_000).contains(silenceLimitMs), connectionsPerUser > 0, connections > 0
        else { throw ValidationError("a count is out of its range") }
    }

    func run() throws {
        // Before any other thread is started, so that no thread takes a signal away.
        let signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
        LoggingSystem.bootstrap(StreamLogHandler.standardError)
        var logger = Logger(label: "camerabus-worker")
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        if list { return printDevices(logger) }
        ProcessMemory.keepFreed(bytes: 256 << 20)
        do {
            if let source = audioSource {
                let worker = try MicrophoneWorker(try options(), source: source, logger: logger)
                throw ExitCode(worker.run(signals: signals).rawValue)
            }
            let worker = try Worker(try options(), source: try source(), logger: logger)
            throw ExitCode(worker.run(signals: signals).rawValue)
        } catch let error as StartError {
            // A coordinator that took over was not told yet who has the device: nothing is lost.
            logger.log(level: error.ending == .deviceTaken ? .info : .critical, "\(error)")
            throw ExitCode(error.ending.rawValue)
        }
    }

    private func options() throws -> WorkerOptions {
        var options = WorkerOptions(device: device ?? "", runtimeDirectory: runtimeDir ?? "")
        options.group = group
        options.renditions = renditions
        options.idleCloseMilliseconds = idleCloseMs
        options.silenceLimitMilliseconds = silenceLimitMs
        options.maxZoom = maxZoom
        options.connectionsPerUser = connectionsPerUser
        options.connections = connections
        // Without a list that can be read nobody comes in until there is one.
        options.doors = doors.flatMap { try? JSONValue(parsing: $0) }.flatMap(DoorList.init(json:))
        do {
            options.configuration = try configuration.map { try JSONValue(parsing: $0) }
        } catch {
            throw StartError.usage("--configuration is no JSON: \(error)")
        }
        do {
            options.standIn = try standIn.map { try JSONValue(parsing: $0) }
        } catch {
            throw StartError.usage("--stand-in is no JSON: \(error)")
        }
        do {
            options.faults = try faults.map { try JSONValue(parsing: $0) }
        } catch {
            throw StartError.usage("--faults is no JSON: \(error)")
        }
        return options
    }

    /// nil: it is to be a camera.
    private var audioSource: (any AudioSource)? {
        if let virtualMicrophone { return VirtualMicrophone(index: virtualMicrophone) }
        guard let facts = microphoneFacts, let uniqueId else { return nil }
        return ALSAMicrophone(uniqueID: uniqueId, facts: facts)
    }

    private var microphoneFacts: MicrophoneFacts? {
        microphone.flatMap { try? JSONValue(parsing: $0) }.flatMap(MicrophoneFacts.init(json:))
    }

    private func source() throws -> any VideoSource {
        if let facts, let uniqueId { return PluggedCamera(uniqueID: uniqueId, facts: facts) }
        if let replay = replayDescription {
            return ReplayCamera(
                replay.identity, path: replay.path, loops: replay.loops, frameDuration: replay.frameDuration)
        }
        if let source = clientSource, let push {
            let group = group.flatMap { CurrentProcess.groupID(named: $0) }
            do {
                return try ClientCamera(source, path: push, mode: group == nil ? 0o600 : 0o660, group: group)
            } catch {
                throw StartError.failed("\(error)")
            }
        }
        return VirtualCamera(index: virtual ?? 0, profile: VirtualProfile(rawValue: virtualProfile) ?? .plain)
    }

    private var clientSource: ClientSource? {
        client.flatMap { try? JSONValue(parsing: $0) }.flatMap(ClientSource.init(json:))
    }

    private var replayDescription: ReplayDescription? {
        replay.flatMap { try? JSONValue(parsing: $0) }.flatMap(ReplayDescription.init(json:))
    }

    private var facts: CameraFacts? { camera.flatMap { try? JSONValue(parsing: $0) }.flatMap(CameraFacts.init(json:)) }

    private func printDevices(_ logger: Logger) {
        let survey = CameraSurvey.ofThisMachine()
        for node in survey.unreadable + survey.unreadableSound {
            logger.warning("a node can't be looked at", metadata: ["node": "\(node.node)", "error": "\(node.why)"])
        }
        print(survey.json)
    }
}
