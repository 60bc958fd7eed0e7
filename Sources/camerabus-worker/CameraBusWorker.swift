import ArgumentParser
import BusServer
import CaptureCore
import CaptureSources
import Delivery
import Glibc
import JSON
import LinuxIO
import Logging
import ServiceCommand
import Worker

@main
struct CameraBusWorker: StartedCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-worker",
        abstract:
            "Owns one camera or microphone of CameraBus. camerabusd starts it; do not start it by hand.",
        discussion: """
            Exit status: 0 ended in order, 1 failed, 64 usage, 74 a call of the driver has not returned for 10 s, 75 \
            another worker has the device.
            """)

    @Flag(help: "Print the cameras and microphones of this machine as JSON, and exit.")
    var list = false

    @Option(help: ArgumentHelp("The device's id in topics and socket names.", valueName: "id"))
    var device: String?

    @Option(help: ArgumentHelp("The directory of the bus's sockets.", valueName: "directory"))
    var runtimeDir: String?

    @Option(help: ArgumentHelp("Be the virtual camera with this number.", valueName: "number"))
    var virtual: Int?

    @Option(help: ArgumentHelp("Play this movie, or these pictures: {name, path, loop}.", valueName: "json"))
    var replay: String?

    @Option(help: ArgumentHelp("Show the frames of a client: the JSON of source.create.", valueName: "json"))
    var client: String?

    @Option(help: ArgumentHelp("The socket to which the client sends the frames of --client.", valueName: "path"))
    var push: String?

    @Option(help: ArgumentHelp("Misbehave at these times: [{at, fault, …}].", valueName: "json"))
    var faults: String?

    @Option(help: ArgumentHelp("The profile of the virtual camera: plain or iphone6.", valueName: "profile"))
    var virtualProfile = VirtualProfile.plain.rawValue

    @Option(help: ArgumentHelp("Own this camera: JSON as printed by --list.", valueName: "json"))
    var camera: String?

    @Option(help: ArgumentHelp("Own this microphone: JSON as printed by --list.", valueName: "json"))
    var microphone: String?

    @Option(help: ArgumentHelp("Be the virtual microphone with this number.", valueName: "number"))
    var virtualMicrophone: Int?

    @Option(help: ArgumentHelp("The permanent id of the camera or microphone.", valueName: "uniqueID"))
    var uniqueId: String?

    @Option(help: ArgumentHelp("The group that may connect to the media socket.", valueName: "name"))
    var group: String?

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = "info"

    @Option(help: ArgumentHelp("Distinct renditions that are made at the same time.", valueName: "count"))
    var renditions = 8

    @Option(help: ArgumentHelp("Memory of rings that one user may have.", valueName: "bytes"))
    var ringMemory: Int?

    @Option(
        help: ArgumentHelp("What users may have of ended workers: [[uid, minute, bytes], …].", valueName: "json"))
    var ringRemainders: String?

    @Option(help: ArgumentHelp("Close the device when unused for this time.", valueName: "milliseconds"))
    var idleCloseMs = 2000

    @Option(
        help: ArgumentHelp(
            "Reopen the device when a stream has had no frame for this time; 0: never.", valueName: "milliseconds"))
    var silenceLimitMs = 5000

    @Option(help: ArgumentHelp("The highest zoom factor that zoomValue 1 may stand for.", valueName: "factor"))
    var maxZoom = CameraControlMap.defaultMaxZoom

    @Option(help: ArgumentHelp("Connections of one user to the media socket.", valueName: "count"))
    var connectionsPerUser = 128

    @Option(help: ArgumentHelp("Connections to the media socket in total.", valueName: "count"))
    var connections = 1024

    @Option(help: ArgumentHelp("The configuration that an earlier worker had committed.", valueName: "json"))
    var configuration: String?

    @Option(help: ArgumentHelp("What an earlier worker had set for a photo.", valueName: "json"))
    var standIn: String?

    @Option(help: ArgumentHelp("The first access list; the coordinator may order another one.", valueName: "json"))
    var accessList: String?

    func validate() throws {
        guard !list else { return }
        guard device != nil, runtimeDir != nil else { throw ValidationError("--device and --runtime-dir are needed") }
        let sources =
            [virtual, virtualMicrophone].count { $0 != nil }
            + [camera, replay, client, microphone].count { $0 != nil }
        guard sources == 1, (camera == nil && microphone == nil) == (uniqueId == nil) else {
            throw ValidationError(
                "one of --virtual, --virtual-microphone, --replay, --client with --push, and --camera or --microphone "
                    + "with --unique-id is needed"
            )
        }
        if microphone != nil, microphoneFacts == nil {
            throw ValidationError("--microphone takes JSON as printed by --list")
        }
        if client != nil, clientSource == nil || push == nil {
            throw ValidationError("--client takes the JSON of source.create, with --push")
        }
        if replay != nil, replayDescription == nil { throw ValidationError("--replay takes {name, path, loop}") }
        if camera != nil, facts == nil { throw ValidationError("--camera takes JSON as printed by --list") }
        if let virtual, !(0..<64).contains(virtual) { throw ValidationError("--virtual takes a number from 0 to 63") }
        if let virtualMicrophone, !(0..<64).contains(virtualMicrophone) {
            throw ValidationError("--virtual-microphone takes a number from 0 to 63")
        }
        guard VirtualProfile(rawValue: virtualProfile) != nil else {
            throw ValidationError("there is no virtual profile '\(virtualProfile)'")
        }
        guard (1...1000).contains(maxZoom) else { throw ValidationError("--max-zoom takes a factor from 1 to 1000") }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level '\(logLevel)'")
        }
        guard (1...64).contains(renditions), (0...3_600_000).contains(idleCloseMs),
            (0...3_600_000).contains(silenceLimitMs), connectionsPerUser > 0, connections > 0
        else { throw ValidationError("a count is out of its range") }
    }

    func run() throws {
        // Before any other thread starts, so that no other thread receives a signal.
        let signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
        LoggingSystem.bootstrap(LineLogHandler.init(label:))
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
            // A coordinator that took over did not know yet which process has the device: nothing is lost.
            logger.log(level: error.ending == .deviceTaken ? .info : .critical, "\(error)")
            throw ExitCode(error.ending.rawValue)
        }
    }

    private func options() throws -> WorkerOptions {
        var options = WorkerOptions(device: device ?? "", runtimeDirectory: runtimeDir ?? "")
        options.group = group
        options.renditions = renditions
        options.ringBudget = ringMemory
        // Without a readable list nothing was left.
        if let json = ringRemainders.flatMap({ try? JSONValue(parsing: $0) }) {
            options.ringRemainders = RingRemainders(json: json)
        }
        options.idleCloseMilliseconds = idleCloseMs
        options.silenceLimitMilliseconds = silenceLimitMs
        options.maxZoom = maxZoom
        options.connectionsPerUser = connectionsPerUser
        options.connections = connections
        // Without a readable list nobody may connect until the coordinator orders one.
        options.accessList = accessList.flatMap { try? JSONValue(parsing: $0) }.flatMap(AccessList.init(json:))
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

    /// nil: the device is a camera.
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
                replay.identity, path: replay.path, loops: replay.loops, frameDuration: replay.frameDuration,
                maxGap: replay.maxGap)
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
            logger.warning("a node can't be read", metadata: ["node": "\(node.node)", "error": "\(node.why)"])
        }
        do throws(SystemError) {
            try FileDescriptor.writeAll(Array("\(survey.json)\n".utf8), to: STDOUT_FILENO)
        } catch {
            logger.error("the list of devices can't be printed", metadata: ["error": "\(error)"])
        }
    }
}
