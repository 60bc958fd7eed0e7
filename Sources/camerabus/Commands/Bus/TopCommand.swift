import ArgumentParser
import BusClient
import Glibc
import JSON
import LinuxIO

struct TopCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Shows rates, losses, readers and load of every device, live.",
        discussion: """
            RATE is the rate of the device: frames per second of a camera, samples per second and channel of a \
            microphone. LOST counts frames that the driver lost, DAMAGED frames that arrived damaged, and LEFT OUT \
            frames that there was no time for; all since 'camerabus top' began. READERS counts subscribers and readers \
            of shared memory; the latter also in brackets. The lines below a device show the renditions that are made \
            for its readers, and the pressure on the device or the machine. CPU is the share of one processor, MEMORY \
            the memory of the device's worker. Ctrl-C ends it.

            With --json: one line per interval, {monotonic, bus: {load, residentBytes, requestRate, connections}, \
            devices: [{id, state, systemPressureState, activeFormat, frameRate, lost, damaged, leftOut, subscriptions, \
            readers, sharedReaders, load, residentBytes, renditions}]}. A load of 1 is one whole processor.

            EXAMPLES:
              camerabus top
              camerabus top cam0
              camerabus top --interval 5 --json | jq -c '[.devices[] | {id, frameRate, load}]'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The devices to show (default: all).", completion: deviceCompletion)
    var devices: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The time between two updates, in seconds.", valueName: "seconds"))
    var interval: Seconds = 2

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after this many updates (default: never).", valueName: "count"))
    var number: Int?

    func validate() throws {
        // Workers report their counts once a second. More frequent updates would show nothing new.
        guard interval.value >= 1 else { throw ValidationError("--interval takes a number of seconds, 1 or more.") }
        if let number, number < 1 { throw ValidationError("--number takes a number greater than 0.") }
    }

    func run(_ client: Client) async throws {
        // The bus refuses an unknown name.
        for device in devices { _ = try await client.device(device, timeout: timeout) }
        let first = try await sample(client)
        var before = first
        var left = number ?? .max
        while left > 0 {
            try await Task.sleep(for: interval.duration)
            let now = try await sample(client)
            try show(BusActivity(since: first, from: before, to: now))
            before = now
            left -= 1
        }
    }

    private func sample(_ client: Client) async throws -> BusActivitySample {
        let counters = try await client.call("bus.metrics", timeout: timeout)["counters"]?.object ?? [:]
        let time = MonotonicClock.now()
        let all = try await client.devices(timeout: timeout)
        let wanted = all.filter { device in devices.isEmpty || device["id"]?.string.map(devices.contains) ?? false }
        return BusActivitySample(time: time, devices: wanted, counters: counters)
    }

    private func show(_ traffic: BusActivity) throws {
        if options.json { return try Output.json(traffic.json) }
        let isTerminal = isatty(STDOUT_FILENO) == 1
        // Overwrites the previous update: cursor home, then clear the screen below.
        let text = (isTerminal ? "\u{1B}[H\u{1B}[2J" : "") + traffic.lines.joined(separator: "\n") + "\n"
        try Output.bytes(Array(text.utf8))
        if !isTerminal { try Output.line("") }
    }
}
